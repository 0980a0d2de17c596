"""A worker process: takes cells from standard input until that ends, answers on standard output."""

import os
import pickle
import signal
import sys

from bowwave._sweep.drive import attempt


def main():
    # Ctrl-C reaches the sweep, too, which ends its workers.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    # What anybody prints is no answer.
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    questions = sys.stdin.buffer
    execute = pickle.load(questions)
    try:
        while True:
            cell = pickle.load(questions)
            pickle.dump(attempt(execute, cell), answers)
            answers.flush()
    except (EOFError, BrokenPipeError):
        # The sweep has ended. A second failure to write must not be told.
        os._exit(0)
