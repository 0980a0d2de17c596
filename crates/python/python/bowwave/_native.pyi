import os
from typing import Any, final

import pyarrow

__version__: str
EXAMPLE: str
"""A small trace to begin with, as text: what `bowwave replay --example` prints."""
OPS: tuple[str, ...]
"""The names of operations; the column `op` has their indices."""
REASONS: tuple[str, ...]
"""Why the kernel brought pages in: the column `reason` of windows has their indices. `request` is the program's own,
such as `readahead(2)`; `read` and `fault` include what the kernel read ahead for them."""
REQUEST_OPS: tuple[str, ...]
"""What requests of devices ask for: their column `op` has the indices. `other` neither reads nor writes, for example to
flush the device's cache."""
CAUSE_COUNTS: tuple[str, ...]
"""The names of the counts of each cause of read-ahead."""

@final
class Trace:
    """The reads of programs, what the kernel brought into its cache, and the requests of block devices, each in the
    order of time. It never changes.
    """

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
    def devices(self) -> list[str]:
        """The names of the block devices that completed requests, for example `sda`. Only a recorded trace has some."""
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
        """What a recorded trace tells about itself; `None` of a text.

        `bowwave`, `kernel` and `date` tell who recorded it, on what and when. `lost` and `left_out` are numbers of
        operations, `lost_pages` is one of pages of 4 KiB, and `lost_requests` one of requests: all of these are missing
        in the trace. `is_complete` is false if the recorder did not come to its end. `calls_per_record` tells how many
        calls at most are one operation.
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
    def windows(self) -> dict[str, memoryview]:
        """What the kernel brought into its cache, as columns like those of `columns`. A row is a window: adjoining
        pages of a file that the kernel brought in at once.

        `time_ns` is when the first page entered the cache. `offset` and `bytes` are the window's place, in bytes;
        `asked_offset` and `asked_bytes` are the part of it for which the read or fault itself had asked (0 bytes if
        there is none). All are whole pages and have 64 bits. `process` is an index into `processes`, or -1 for a
        process that does nothing else in the trace; `file` is one into `files`, `reason` is one into `bowwave.REASONS`.

        Empty in a text, and in a trace that was recorded before Linux 6.18.
        """
    def windows_to_arrow(self) -> pyarrow.Table:
        """The windows as a `pyarrow.Table`; a `process` of -1 is null. Needs pyarrow."""
    def requests(self) -> dict[str, memoryview]:
        """The requests that block devices completed, of any program, as columns like those of `columns`.

        `time_ns` is when the device's driver got the request, `took_ns` how long it took from then until it was
        complete; `bytes` is how much it read or wrote, 0 if it did neither. These have 64 bits. `device` is an index
        into `devices`, `op` is one into `bowwave.REQUEST_OPS`.

        Empty in a text, and in a recorded trace of format 1 or 2.
        """
    def requests_to_arrow(self) -> pyarrow.Table:
        """The requests as a `pyarrow.Table`. Needs pyarrow."""

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
