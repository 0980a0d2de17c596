"""The results as a table, in the order of the cells."""

from __future__ import annotations

import dataclasses
import os
import pathlib

from bowwave import _native
from bowwave._arrow import pyarrow
from bowwave._sweep.drive import Failed
from bowwave._sweep.journal import unwritable

# Rows that are in memory at once.
GROUP_ROWS = 4096


@dataclasses.dataclass(frozen=True)
class Sweep:
    """What a sweep has come to."""

    path: pathlib.Path
    """The results as Parquet: a row for each cell that has not failed."""
    computed: int
    """Cells computed by this sweep."""
    found: int
    """Cells that an earlier sweep had finished."""
    failed: list[Failed]
    """Cells without a result, in the order of the cells."""

    def table(self):
        """The results as a `pyarrow.Table`."""
        pyarrow()
        from pyarrow import parquet

        return parquet.read_table(self.path)


def schema():
    """The columns: the trace, then what `bowwave replay --json` gives."""
    pa = pyarrow()
    text, count, number = pa.string(), pa.int64(), pa.float64()
    cause = pa.struct([("cause", text), *((name, count) for name in _native.CAUSE_COUNTS)])
    process = pa.struct([("process", text), ("ended_s", number), ("stalled_s", number)])
    return pa.schema(
        [
            ("trace", text),
            ("trace_sha256", text),
            ("policy", text),
            ("device", text),
            ("memory_bytes", count),
            ("readahead_kb", count),
            ("elevator", text),
            ("pace", text),
            ("seconds", number),
            ("stalled_s", number),
            ("mb_per_s", number),
            ("pages_needed", count),
            ("pages_read", count),
            ("pages_read_again", count),
            ("pages_refaulted", count),
            ("pages_read_alone", count),
            ("decisions", count),
            ("causes", pa.list_(cause)),
            ("processes", pa.list_(process)),
        ]
    )


def write(folder, cells, journal):
    """Writes the finished ones of the cells to `results.parquet`, whole or not at all; gives its path."""
    pa = pyarrow()
    from pyarrow import parquet

    path = pathlib.Path(folder, "results.parquet")
    unfinished = path.with_suffix(".unfinished")
    finished = [cell for cell in cells if cell.key in journal]
    try:
        with parquet.ParquetWriter(unfinished, schema()) as writer:
            for start in range(0, len(finished), GROUP_ROWS):
                rows = [row(cell, journal[cell.key]) for cell in finished[start : start + GROUP_ROWS]]
                writer.write_table(pa.Table.from_pylist(rows, schema()))
        os.replace(unfinished, path)
    except OSError as error:
        raise unwritable(path, error) from error
    finally:
        unfinished.unlink(missing_ok=True)
    return path


def row(cell, figures):
    return {"trace": cell.trace, "trace_sha256": cell.trace_sha256, **figures}
