"""Sweeps: each trace with each policy, device, memory and window, on many processors.

    plan      which cells there are, and what tells each from all others
    cell      computes one, in a worker
    engines   where workers are: processes, Dask, Ray, or this process
    journal   what is finished, on the disk
    drive     hands out cells, takes results, retries
    results   the table
    progress  the bar
"""

from bowwave._sweep.api import sweep
from bowwave._sweep.drive import Failed
from bowwave._sweep.results import Sweep

__all__ = ["Failed", "Sweep", "sweep"]
