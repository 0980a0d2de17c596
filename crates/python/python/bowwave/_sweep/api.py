"""`bowwave.sweep`."""

from __future__ import annotations

import operator
import os
import pathlib
import warnings
from collections.abc import Iterable, Mapping
from typing import Any

from bowwave._arrow import pyarrow
from bowwave._sweep.cell import execute
from bowwave._sweep.drive import drive
from bowwave._sweep.engines import ENGINES
from bowwave._sweep.journal import Journal
from bowwave._sweep.plan import cells as plan
from bowwave._sweep.progress import bar
from bowwave._sweep.results import Sweep, write


def sweep(
    traces: str | os.PathLike[str] | Iterable[str | os.PathLike[str]],
    grid: Mapping[str, Any] | None = None,
    *,
    output: str | os.PathLike[str],
    engine: str = "processes",
    workers: int | None = None,
    retries: int = 2,
    progress: bool = True,
) -> Sweep:
    """Replays each trace with each combination of the grid's values: a cell each.

    `grid` has lists of `policy`, `device`, `memory`, `readahead_kb`, `elevator` and `pace`; what it leaves out is as
    `bowwave replay` has it. `output` is a folder. Cells that are finished there are not computed again, unless their
    trace (its contents), their device's file or bowwave is another one.

    `engine` is `"processes"`, `"serial"`, `"dask"` or `"ray"`; all give the same results, in the same order. `workers`
    is how many processes this machine starts, by default one for each processor; an existing cluster of Dask or Ray
    has its own. A cell that fails, or whose worker is killed, is tried again up to `retries` times; those that fail
    still are in `Sweep.failed`, and a warning says so.

    Raises `ValueError` and `TypeError` for wrong values, `OSError` for files that cannot be read or written,
    `ImportError` for what an engine or Parquet needs and is not installed, and `RuntimeError` if another sweep has the
    same output.
    """
    return sweep_with(execute, traces, grid, output, engine, workers, retries, progress)


def sweep_with(execute, traces, grid, output, engine, workers, retries, progress):
    """The sweep, with any function that computes a cell."""
    pyarrow()
    if engine not in ENGINES:
        raise ValueError(f"there is no engine {engine!r}; use one of {', '.join(ENGINES)}")
    workers = None if workers is None else whole("workers", workers, least=1)
    retries = whole("retries", retries, least=0)
    cells = plan(traces, grid or {})
    folder = pathlib.Path(output)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise type(error)(
            error.errno, f"cannot make the folder {folder}: {error.strerror}; give another output"
        ) from error
    with Journal(folder) as journal:
        distinct = {cell.key: cell for cell in cells}
        missing = [cell for key, cell in distinct.items() if key not in journal]
        failed = []
        if missing:
            workers = workers or len(os.sched_getaffinity(0))
            # What is finished stays in the journal, whatever happens.
            with ENGINES[engine](execute, workers) as started, bar(len(missing), progress) as advance:
                failed = drive(missing, started, journal, retries, advance)
        path = write(folder, cells, journal)
    if failed:
        first = failed[0]
        warnings.warn(
            f"{len(failed)} of {len(distinct)} cells have failed, the first ({first.cell}) since {first.problem}; "
            "Sweep.failed has all, and the same sweep tries them again",
            RuntimeWarning,
            stacklevel=3,
        )
    return Sweep(path, len(missing) - len(failed), len(distinct) - len(missing), failed)


def whole(name, value, least):
    """The value as Python's own int. Raises `TypeError` or `ValueError` if it is no whole number or below `least`."""
    try:
        number = operator.index(value)
    except TypeError:
        raise TypeError(f"{name} is {value!r}; give a whole number, or leave it out") from None
    if number < least:
        raise ValueError(f"{name} is {number}; give {least} or more, or leave it out")
    return number
