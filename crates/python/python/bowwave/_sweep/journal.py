"""What is finished, on the disk: one line for each cell, written at once.

A line that a killed sweep has not written to its end is cut off by the next one.
"""

import errno
import fcntl
import json
import os
import pathlib

# A full disk, a full quota, a limit of the size of files.
NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)

HEAD = b'{"bowwave_sweep": 1}\n'


class Journal:
    """The finished cells by their keys. One sweep at a time may have it open."""

    def __init__(self, folder):
        """Raises `ValueError` if the file is none of ours, and `RuntimeError` if another sweep has it."""
        self.path = pathlib.Path(folder, "journal.jsonl")
        self._file = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o644)
        # Of each key, where its line is: a million results would not fit into memory.
        self._places = {}
        try:
            self._lock()
            self._read()
        except BaseException:
            os.close(self._file)
            raise

    def __enter__(self):
        return self

    def __exit__(self, *_):
        os.close(self._file)

    def __contains__(self, key):
        return key in self._places

    def __getitem__(self, key):
        """The figures of a finished cell."""
        start, length = self._places[key]
        return json.loads(os.pread(self._file, length, start))["figures"]

    def add(self, key, figures):
        """Writes a finished cell."""
        line = json.dumps({"key": key, "figures": figures}).encode() + b"\n"
        self._places[key] = (self._append(line), len(line))

    def _lock(self):
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise RuntimeError(
                f"another sweep is writing to {self.path.parent}; wait for its end, or give another output"
            ) from None

    def _read(self):
        with open(self.path, "rb") as file:
            head = file.readline()
            if not HEAD.startswith(head):
                raise ValueError(f"{self.path} is no journal of a sweep; give another output")
            end = len(head)
            for line in file:
                if line.endswith(b"\n"):
                    self._places[self._key(line)] = (end, len(line))
                    end += len(line)
        os.ftruncate(self._file, end if head == HEAD else 0)
        if head != HEAD:
            self._append(HEAD)

    def _key(self, line):
        try:
            return json.loads(line)["key"]
        except (ValueError, KeyError, TypeError):
            raise ValueError(f"{self.path} is damaged; remove it, or give another output") from None

    def _append(self, line):
        """Gives the line's place. A full disk may take a part of the line: that part goes."""
        start = os.fstat(self._file).st_size
        try:
            if os.write(self._file, line) < len(line):
                os.ftruncate(self._file, start)
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        except OSError as error:
            raise unwritable(self.path, error) from error
        return start


def unwritable(path, error):
    """What to raise where a part of the output cannot be written."""
    # Arrow tells more than one sentence.
    why = os.strerror(error.errno) if error.errno else str(error)
    remedy = "make room for it" if error.errno in NO_ROOM else "mend that"
    return OSError(error.errno, f"cannot write to {path}: {why}; {remedy} and sweep again")
