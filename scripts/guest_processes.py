"""Runs a guest with the servers of its disks, and leaves none of them behind."""

import os
import signal
import subprocess
import sys


def exit_status(words, output):
    """The exit status of a command, whose output goes to the file. Ctrl-C or SIGTERM ends all that it has started."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    process = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=output, stderr=output, start_new_session=True)
    try:
        return process.wait()
    except BaseException:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        raise
