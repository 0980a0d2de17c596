"""Which cells a sweep has."""

import dataclasses
import hashlib
import itertools
import json
import os

from bowwave import _native
from bowwave._sweep.build import build

# What `bowwave replay` takes where nothing is given.
DEFAULTS = {
    "policy": ["linux-6", "adaptive"],
    "device": ["hdd"],
    "memory": ["1G"],
    "readahead_kb": [128],
    "elevator": ["mq-deadline"],
    "pace": ["trace"],
}


@dataclasses.dataclass(frozen=True)
class Cell:
    """One replay. Workers may be on other machines, so that paths are absolute."""

    trace: str
    trace_sha256: str
    policy: str
    device: str
    # Of the file that describes the device; empty for one of the catalogue.
    device_sha256: str
    memory: int
    readahead_kb: int
    elevator: str
    pace: str
    bowwave: str

    @property
    def key(self):
        """What tells this cell from all others: the contents of its trace, not its place."""
        told = {name: value for name, value in dataclasses.asdict(self).items() if name != "trace"}
        return hashlib.sha256(json.dumps(told, sort_keys=True).encode()).hexdigest()

    def __str__(self):
        return (
            f"{self.trace}, {self.policy} on {self.device}, {self.memory} bytes of memory, "
            f"{self.readahead_kb} KiB, {self.elevator}, pace {self.pace}"
        )


def cells(traces, grid):
    """All cells in their order: trace by trace, and in each the grid's values in the order of DEFAULTS.

    Raises `ValueError` if a value is wrong and `OSError` if a file cannot be read.
    """
    grid = settings(grid)
    devices = {device: described(device) for device in grid.pop("device")}
    combinations = list(itertools.product(grid.pop("policy"), devices.values(), *grid.values()))
    for policy, (device, _), *others in combinations:
        check(policy, device, **dict(zip(grid, others)))
    found = []
    for path in paths(traces):
        trace_sha256 = checksum(path, "trace")
        for policy, (device, device_sha256), *others in combinations:
            found.append(
                Cell(
                    trace=path,
                    trace_sha256=trace_sha256,
                    policy=policy,
                    device=device,
                    device_sha256=device_sha256,
                    bowwave=build(),
                    **dict(zip(grid, others)),
                )
            )
    return found


def check(policy, device, memory, readahead_kb, elevator, pace):
    _native.check(policy, device, memory, elevator=elevator, readahead_kb=readahead_kb, pace=pace)


def settings(grid):
    """The grid with defaults: for each key a list without repetition."""
    unknown = sorted(set(grid) - set(DEFAULTS))
    if unknown:
        raise ValueError(f"the grid has no {unknown[0]!r}; it takes {', '.join(DEFAULTS)}")
    full = {}
    for name, default in DEFAULTS.items():
        values = grid.get(name, default)
        values = [values] if isinstance(values, (str, int)) else list(values)
        if not values:
            raise ValueError(f"the grid has no value of {name}; leave it out for {default[0]}")
        if name == "memory":
            values = [_native.memory_bytes(memory) for memory in values]
        full[name] = list(dict.fromkeys(values))
    return full


def paths(traces):
    """The traces as absolute paths, each once."""
    given = [traces] if isinstance(traces, (str, os.PathLike)) else traces
    found = list(dict.fromkeys(os.path.abspath(os.fspath(path)) for path in given))
    if not found:
        raise ValueError("there is no trace to sweep over; give a list of paths")
    for path in found:
        try:
            path.encode()
        except UnicodeEncodeError:
            raise ValueError(f"the name {path!r} is not UTF-8, and the results name it; rename it") from None
    return found


def described(device):
    """A device's name, or the absolute path of the file that describes it, with its checksum."""
    if "/" not in device and not device.endswith(".toml"):
        return device, ""
    path = os.path.abspath(device)
    return path, checksum(path, "device")


def checksum(path, what):
    try:
        with open(path, "rb") as file:
            sha256 = hashlib.sha256()
            while block := file.read(1 << 20):
                sha256.update(block)
            return sha256.hexdigest()
    except OSError as error:
        raise type(error)(error.errno, f"cannot read the {what} {path}: {error.strerror}") from error
