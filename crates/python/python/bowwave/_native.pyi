import os
from typing import Any, final

import pyarrow

__version__: str
EXAMPLE: str
"""A small trace to begin with, as text: what `bowwave replay --example` prints."""
OPS: tuple[str, ...]
"""The names of operations; the column `op` has their indices."""
CAUSE_COUNTS: tuple[str, ...]
"""The names of the counts of each cause of read-ahead."""

@final
class Trace:
    """The reads of programs, in the order of time. It never changes."""

    @staticmethod
    def from_bytes(data: bytes) -> Trace:
        """Reads a trace from what a file holds. Raises `ValueError` if it is no trace."""
    @property
    def processes(self) -> list[str]:
        """The names of the processes, in the order they appear."""
    @property
    def files(self) -> list[tuple[str, int]]:
        """Name and bytes of each file, in the order they are named."""
    @property
    def duration_s(self) -> float:
        """Seconds from the start of the first operation to the end of the last."""
    @property
    def pages_needed(self) -> int:
        """Pages of 4 KiB that are read, each counted once."""
    @property
    def notes(self) -> list[str]:
        """What a user of the trace should know, one sentence each: losses, reads beyond the end of a file."""
    @property
    def origin(self) -> dict[str, Any] | None:
        """What a recorded trace tells about itself: `bowwave`, `kernel`, `date`, `lost`, `is_complete` and
        `calls_per_record`. `None` of a text.
        """
    def __len__(self) -> int:
        """How many operations there are."""
    def columns(self) -> dict[str, memoryview]:
        """The operations as columns, which NumPy takes without a copy (`numpy.asarray`).

        `time_ns`, `took_ns`, `offset` and `bytes` have 64 bits; `process` and `file` are indices into `processes` and
        `files`, `op` is one into `bowwave.OPS`.
        """
    def to_arrow(self) -> pyarrow.Table:
        """The operations as a `pyarrow.Table`. Needs pyarrow."""

def read_trace(path: str | os.PathLike[str]) -> Trace:
    """Reads a trace: text (docs/trace.md), or what `bowwave record` has written.

    Raises `OSError` if the file cannot be read, and `ValueError` if it is no trace.
    """

def simulate(
    trace: Trace,
    policy: str = "adaptive",
    device: str = "hdd",
    memory: int | str = "1G",
    *,
    elevator: str = "mq-deadline",
    readahead_kb: int = 128,
    pace: str = "trace",
    log: bool = False,
) -> dict[str, Any]:
    """Replays a trace in the simulator. Gives the object that `bowwave replay --json` prints for this replay.

    Raises `ValueError` if a value is wrong. Other threads of Python run meanwhile.
    """

def memory_bytes(memory: int | str) -> int:
    """Bytes of a page cache, given as a number or, for example, as `"1G"`. Raises `ValueError` beyond 1M to 64G."""

def check(
    policy: str, device: str, memory: int | str, *, elevator: str, readahead_kb: int, pace: str
) -> None:
    """Raises `ValueError` if a replay with these values is not possible."""
