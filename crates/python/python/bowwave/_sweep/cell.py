"""Computes one cell, in a worker."""

import functools
import hashlib

from bowwave import _native
from bowwave._sweep.build import build

# Cells come trace by trace; with a few workers on two traces, each of them reads each trace once.
TRACES_KEPT = 2


def execute(cell):
    """The object of `bowwave replay --json`.

    Raises `ValueError` where another attempt would end the same way.
    """
    if cell.bowwave != build():
        raise ValueError(f"this worker has bowwave {build()}, the sweep has {cell.bowwave}; install the same wheel")
    if cell.device_sha256 and sha256(contents(cell.device)) != cell.device_sha256:
        raise ValueError(f"{cell.device} has changed since the sweep began; sweep again")
    trace = trace_of(cell.trace, cell.trace_sha256)
    try:
        return _native.simulate(
            trace,
            cell.policy,
            cell.device,
            cell.memory,
            elevator=cell.elevator,
            readahead_kb=cell.readahead_kb,
            pace=cell.pace,
        )
    except (Exception, KeyboardInterrupt, SystemExit):
        raise
    except BaseException as panic:
        # No exception to Python, so that it would end the worker.
        raise RuntimeError(f"the simulator has failed: {panic}") from None


@functools.lru_cache(maxsize=TRACES_KEPT)
def trace_of(path, checksum):
    """The trace, read once by each worker for many cells."""
    data = contents(path)
    if sha256(data) != checksum:
        raise ValueError(f"{path} has changed since the sweep began; sweep again")
    try:
        return _native.Trace.from_bytes(data)
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from None


def contents(path):
    with open(path, "rb") as file:
        return file.read()


def sha256(data):
    return hashlib.sha256(data).hexdigest()
