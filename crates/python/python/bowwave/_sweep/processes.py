"""Worker processes on this machine, each with a thread here that talks to it.

`concurrent.futures.ProcessPoolExecutor` would lose all cells in hand with one killed worker, not know which of them
killed it, and need `if __name__ == "__main__"` in the caller's script. So its threads start the processes.
"""

import concurrent.futures
import pickle
import queue
import subprocess
import sys
import threading

from bowwave._sweep.drive import Outcome

# One at work and one on its way.
FOR_EACH_WORKER = 2
# Seconds after which a worker that does not end is killed: Python needs a fraction of one.
END_S = 10
# The worker finds what this process finds.
START = "import sys; sys.path[:] = sys.argv[1:]; from bowwave._sweep import worker; worker.main()"


class Processes:
    """As many cells at once as there are workers. A killed worker is replaced, and only its cell is affected."""

    def __init__(self, execute, workers):
        self.capacity = FOR_EACH_WORKER * workers
        self._execute = execute
        self._threads = concurrent.futures.ThreadPoolExecutor(workers, thread_name_prefix="bowwave-sweep")
        self._own = threading.local()
        self._outcomes = queue.SimpleQueue()
        self._lock = threading.Lock()
        self._workers = set()
        self._has_ended = False

    def __enter__(self):
        return self

    def __exit__(self, *_):
        with self._lock:
            self._has_ended = True
            for worker in self._workers:
                worker.kill()
        self._threads.shutdown(cancel_futures=True)
        for worker in self._workers:
            close(worker)

    def submit(self, cell):
        self._threads.submit(self._compute, cell)

    def next(self):
        cell, outcome = self._outcomes.get()
        # What a thread here could not do, for example start a process.
        if isinstance(outcome, Exception):
            raise outcome
        return cell, outcome

    def _compute(self, cell):
        try:
            self._outcomes.put((cell, self._ask(cell)))
        except Exception as error:
            self._outcomes.put((cell, error))

    def _ask(self, cell):
        """The outcome of a cell from this thread's worker."""
        worker = getattr(self._own, "worker", None) or self._start()
        try:
            pickle.dump(cell, worker.stdin)
            worker.stdin.flush()
            return pickle.load(worker.stdout)
        except (OSError, EOFError, pickle.UnpicklingError):
            status = self._bury(worker)
            how = f"was killed by signal {-status}" if status < 0 else f"ended with status {status}"
            return Outcome(problem=f"its worker {how}")

    def _start(self):
        """A worker for this thread."""
        with self._lock:
            if self._has_ended:
                raise RuntimeError("the sweep has ended")
            worker = subprocess.Popen(
                [sys.executable, "-c", START, *sys.path], stdin=subprocess.PIPE, stdout=subprocess.PIPE
            )
            self._workers.add(worker)
        self._own.worker = worker
        pickle.dump(self._execute, worker.stdin)
        return worker

    def _bury(self, worker):
        """Forgets a worker that has ended; gives its status."""
        self._own.worker = None
        with self._lock:
            self._workers.discard(worker)
        return close(worker)


def close(worker):
    """Waits for its end; gives its status. Whoever kills it at once never learns how it has ended by itself."""
    try:
        worker.stdin.close()
    except OSError:
        # It has not read everything.
        pass
    worker.stdout.close()
    try:
        return worker.wait(END_S)
    except subprocess.TimeoutExpired:
        worker.kill()
        return worker.wait()
