"""Reads traces of programs' reads, replays them in bowwave's simulator, and sweeps over many of them.

>>> trace = bowwave.read_trace("backup.trace")
>>> bowwave.simulate(trace, policy="adaptive", device="net")["seconds"]
"""

from bowwave._native import EXAMPLE, OPS, REASONS, REQUEST_OPS, Trace, __version__, read_trace, simulate
from bowwave._sweep import Failed, Sweep, sweep

__all__ = [
    "EXAMPLE",
    "OPS",
    "REASONS",
    "REQUEST_OPS",
    "Failed",
    "Sweep",
    "Trace",
    "__version__",
    "read_trace",
    "simulate",
    "sweep",
]
