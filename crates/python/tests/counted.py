"""Ways to compute a cell that tell, by files, that they were called. Workers import this module."""

import os
import pathlib
import signal
import sys
import uuid

from bowwave._sweep.cell import execute

# Beside the traces.
FOLDER = "executions"


class Executions:
    """What the files tell."""

    def __init__(self, folder):
        self._folder = folder

    def of_each(self):
        """How often each cell was executed."""
        counts = {}
        for file in self._folder.iterdir():
            key = file.name.split(".")[0]
            counts[key] = counts.get(key, 0) + 1
        return counts

    def total(self):
        return sum(self.of_each().values())


def count(cell):
    """Returns how often this cell was executed before."""
    folder = pathlib.Path(cell.trace).parent / FOLDER
    before = len(list(folder.glob(f"{cell.key}.*")))
    (folder / f"{cell.key}.{uuid.uuid4()}").touch()
    return before


def counting(cell):
    count(cell)
    return execute(cell)


def is_chosen(cell):
    """Four of the cells of test_sweep."""
    return cell.policy == "adaptive" and cell.trace.endswith("1.csv")


def killed_once(cell):
    """Kills its worker at the first attempt of one cell."""
    if count(cell) == 0 and is_chosen(cell):
        os.kill(os.getpid(), signal.SIGKILL)
    return execute(cell)


def killed_always(cell):
    count(cell)
    if is_chosen(cell):
        os.kill(os.getpid(), signal.SIGKILL)
    return execute(cell)


def leaving_always(cell):
    """Ends its worker at each attempt of some cells."""
    count(cell)
    if is_chosen(cell):
        sys.exit(3)
    return execute(cell)


def failing_once(cell):
    if count(cell) == 0 and is_chosen(cell):
        raise OSError("the server does not answer")
    return execute(cell)


def failing_always(cell):
    count(cell)
    if is_chosen(cell):
        raise OSError("the server does not answer")
    return execute(cell)
