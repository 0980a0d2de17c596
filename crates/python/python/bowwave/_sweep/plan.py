"""Which cells a sweep has."""

import dataclasses
import functools
import hashlib
import itertools
import json
import operator
import os
from collections.abc import Iterable, Mapping

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

    @functools.cached_property
    def key(self):
        """What tells this cell from all others: the contents of its trace, not its place."""
        told = {field.name: getattr(self, field.name) for field in dataclasses.fields(self) if field.name != "trace"}
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
    if not isinstance(grid, Mapping):
        raise TypeError(f"the grid is a dict of lists, for example {{'policy': ['linux-6']}}, not {grid!r}")
    unknown = sorted(str(name) for name in set(grid) - set(DEFAULTS))
    if unknown:
        raise ValueError(f"the grid has no {unknown[0]!r}; it takes {', '.join(DEFAULTS)}")
    full = {}
    for name, default in DEFAULTS.items():
        values = [setting(name, value) for value in listed(grid.get(name, default))]
        if not values:
            raise ValueError(f"the grid has no value of {name}; leave it out for {default[0]}")
        full[name] = list(dict.fromkeys(values))
    return full


def listed(values):
    """The values of a key of the grid; a single one may stand without its list."""
    is_one = isinstance(values, (str, os.PathLike)) or not isinstance(values, Iterable)
    return [values] if is_one else values


def setting(name, value):
    """A value of the grid as Python's own int or str: numbers of NumPy and paths are not written into journals."""
    if name == "memory":
        return _native.memory_bytes(value)
    if name == "readahead_kb":
        try:
            return operator.index(value)
        except TypeError:
            raise TypeError(f"readahead_kb is {value!r}; give whole numbers, for example 128") from None
    if name == "device" and isinstance(value, os.PathLike):
        value = os.path.abspath(os.fsdecode(value))
    if not isinstance(value, str):
        raise TypeError(f"{name} is {value!r}; give names, for example {DEFAULTS[name][0]!r}")
    return str(value)


def paths(traces):
    """The traces as absolute paths, each once."""
    given = [traces] if isinstance(traces, (str, bytes, os.PathLike)) else traces
    found = list(dict.fromkeys(os.path.abspath(os.fsdecode(path)) for path in given))
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
    """SHA-256 of a file. `what` it is, for the message if it cannot be read."""
    try:
        with open(path, "rb") as file:
            sha256 = hashlib.sha256()
            while block := file.read(1 << 20):
                sha256.update(block)
            return sha256.hexdigest()
    except OSError as error:
        remedy = "; what sudo has recorded is root's: sudo chown gives it to you" * isinstance(error, PermissionError)
        raise type(error)(error.errno, f"cannot read the {what} {path}: {error.strerror}{remedy}") from error
