"""Where cells are computed. An engine is a context; it takes cells (`submit`) and gives each back with its `Outcome`
(`next`), in any order. `capacity` is how many it can usefully hold.
"""

import collections

from bowwave._sweep.drive import Outcome, attempt, told
from bowwave._sweep.processes import Processes

# Enough for clusters that grow while they work, and little for a scheduler.
LEAST_ON_A_CLUSTER = 256
# One at work, others on their way.
FOR_EACH_PROCESSOR = 4


class Serial:
    """In this process, one after the other."""

    capacity = 1

    def __init__(self, execute, workers):
        self._execute = execute
        self._cells = collections.deque()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass

    def submit(self, cell):
        self._cells.append(cell)

    def next(self):
        cell = self._cells.popleft()
        return cell, attempt(self._execute, cell)


class Dask:
    """On the cluster of the current `dask.distributed.Client`; otherwise on one made here, which ends with the sweep.

    Dask itself gives a killed worker's cells to others, and says so (`KilledWorker`) if one kills several workers.
    """

    def __init__(self, execute, workers):
        distributed = needed("distributed", "Dask", "'dask[distributed]'")
        self._execute = execute
        self._own = []
        try:
            self._client = distributed.get_client()
        except ValueError:
            # With Dask's usual port, it would warn of any other cluster on this machine.
            cluster = distributed.LocalCluster(
                n_workers=workers, threads_per_worker=1, processes=True, dashboard_address="127.0.0.1:0"
            )
            self._client = distributed.Client(cluster)
            self._own = [self._client, cluster]
        self.capacity = capacity(sum(self._client.nthreads().values()))
        # Results travel while this thread does something else.
        self._ended = distributed.as_completed(loop=self._client.loop, with_results=True, raise_errors=False)
        self._cells = {}

    def __enter__(self):
        return self

    def __exit__(self, *_):
        # With a scheduler that is gone, nothing can be cancelled any more.
        if self._client.status == "running":
            self._client.cancel(list(self._cells))
        for own in self._own:
            own.close()

    def submit(self, cell):
        self._demand_scheduler()
        future = self._client.submit(attempt, self._execute, cell, pure=False)
        self._cells[future] = cell
        self._ended.add(future)

    def next(self):
        future, outcome = next(self._ended)
        self._demand_scheduler()
        cell = self._cells.pop(future)
        if future.status != "finished":
            outcome = Outcome(problem=told(future.exception()))
        return cell, outcome

    def _demand_scheduler(self):
        # It takes all cells in hand along, and they have not failed.
        if self._client.status in ("closing", "closed"):
            raise ConnectionError("Dask's scheduler is gone; sweep again when there is one: what is finished is found")


class Ray:
    """On the cluster that `ray.init` has joined or can find; otherwise on one made here, which ends with the sweep."""

    def __init__(self, execute, workers):
        self._ray = needed("ray", "Ray", "ray")
        self._execute = execute
        self._is_own = not self._ray.is_initialized()
        if self._is_own:
            self._join(workers)
        self.capacity = capacity(self._ray.cluster_resources().get("CPU", 0))
        # Failures are counted here.
        self._attempt = self._ray.remote(max_retries=0)(attempt)
        self._cells = {}

    def _join(self, workers):
        try:
            self._ray.init(address="auto", log_to_driver=False)
        except ConnectionError:
            self._ray.init(num_cpus=workers, include_dashboard=False, log_to_driver=False)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for reference in self._cells:
            self._ray.cancel(reference)
        if self._is_own:
            self._ray.shutdown()

    def submit(self, cell):
        self._cells[self._attempt.remote(self._execute, cell)] = cell

    def next(self):
        [reference], _ = self._ray.wait(list(self._cells), num_returns=1)
        cell = self._cells.pop(reference)
        try:
            return cell, self._ray.get(reference)
        except self._ray.exceptions.RayError as error:
            return cell, Outcome(problem=told(error))


ENGINES = {"processes": Processes, "serial": Serial, "dask": Dask, "ray": Ray}


def capacity(processors):
    """How many cells to give to a cluster at once."""
    return max(LEAST_ON_A_CLUSTER, FOR_EACH_PROCESSOR * int(processors))


def needed(module, name, package):
    """Imports what only one engine needs."""
    try:
        return __import__(module)
    except ImportError as error:
        raise ImportError(
            f"the engine {name.lower()!r} needs {name}, which is not installed: pip install {package}"
        ) from error
