"""A sweep of 1,000 cells on each engine: the same results to the bit, whoever is killed, and how fast.

    make wheel
    python3 -m venv /tmp/venv
    /tmp/venv/bin/pip install target/wheels/bowwave-*.whl pyarrow 'dask[distributed]' ray
    /tmp/venv/bin/python crates/python/examples/thousand_cells.py

Each engine sweeps twice. The first sweep is timed. In the second, a worker is killed at a quarter of the cells, and
the whole sweep at half of them; then it goes on. Both must give what `serial` gives, and no finished cell may be
computed again. An engine that is not installed is left out, and that is said.
"""

import argparse
import importlib.util
import os
import pathlib
import random
import signal
import subprocess
import sys
import tempfile
import time

import bowwave

# Workers import this file by its name; as __main__ they could not.
import thousand_cells
from bowwave._sweep import api, cell

ENGINES = {"serial": None, "processes": None, "dask": "distributed", "ray": "ray"}
GRID = {
    "policy": ["linux-6", "adaptive"],
    "device": ["hdd", "net", "ssd", "sd", "array-2006"],
    "memory": ["64M", "1G"],
    "readahead_kb": [128, 512],
}
CELLS_PER_TRACE = 2 * 5 * 2 * 2
OPERATIONS = 600
# Files in this folder tell who was killed, and how many cells were executed.
FOLDER = "THOUSAND_CELLS_FOLDER"


def trace(seed):
    """Three programs that read a file each: forward, in strides and at random. The same for the same seed."""
    place = random.Random(seed)
    lines = ["file_bytes,file"] + [f"67108864,/srv/{name}" for name in ("forward", "strides", "anywhere")]
    lines.append("time_us,process,file,op,offset,bytes")
    for number in range(OPERATIONS // 3):
        at = number * 2000
        lines.append(f"{at},forward,/srv/forward,read,{number * 65536},65536")
        lines.append(f"{at},strides,/srv/strides,read,{number * (seed + 2) * 32768 % 67000000},32768")
        lines.append(f"{at},anywhere,/srv/anywhere,read,{place.randrange(16000) * 4096},4096")
    return "\n".join(lines) + "\n"


def executed():
    """How many cells were executed, by all workers together."""
    return len(list(pathlib.Path(os.environ[FOLDER]).glob("executed.*")))


def execute(a_cell):
    """Kills the worker at a quarter of the cells, once."""
    folder = pathlib.Path(os.environ[FOLDER])
    (folder / f"executed.{a_cell.key}").touch()
    if executed() >= int(os.environ["THOUSAND_CELLS"]) // 4:
        try:
            (folder / "killed").touch(exist_ok=False)
        except FileExistsError:
            pass
        else:
            os.kill(os.getpid(), signal.SIGKILL)
    return cell.execute(a_cell)


def unkilled(traces, output, engine, workers):
    started = time.perf_counter()
    swept = bowwave.sweep(traces, GRID, output=output, engine=engine, workers=workers, progress=False)
    seconds = time.perf_counter() - started
    assert not swept.failed, swept.failed[0]
    return swept, seconds


def killed(traces, output, engine, workers, cells):
    """A sweep in a process of its own, killed when half of the cells are in its journal; then another one."""
    words = [sys.executable, __file__, "--child", engine, "--workers", str(workers), "--output", str(output), *traces]
    child = subprocess.Popen(words, start_new_session=True)
    journal = output / "journal.jsonl"
    while child.poll() is None and lines(journal) < cells // 2:
        time.sleep(0.02)
    os.killpg(child.pid, signal.SIGKILL)
    child.wait()
    finished = max(lines(journal) - 1, 0)
    assert engine == "serial" or (pathlib.Path(os.environ[FOLDER]) / "killed").exists(), "no worker was killed"
    swept, _ = unkilled(traces, output, engine, workers)
    assert swept.found >= finished - 1, "a finished cell was computed again"
    assert lines(journal) == cells + 1, "a finished cell was computed again"
    return swept


def lines(path):
    """How many whole lines a file has; 0 if there is none."""
    return path.read_bytes().count(b"\n") if path.exists() else 0


def child(engine, workers, output, traces):
    # Serial has no worker but the sweep itself.
    how = cell.execute if engine == "serial" else thousand_cells.execute
    api.sweep_with(how, traces, GRID, output, engine, workers, 2, False)


def compare(engines, cells, workers):
    """Sweeps with each engine, undisturbed and killed; prints how fast, and ends at the first difference."""
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        traces = [folder / f"{number}.csv" for number in range(cells // CELLS_PER_TRACE)]
        for number, path in enumerate(traces):
            path.write_text(trace(number))
        traces = [str(path) for path in traces]
        cells = len(traces) * CELLS_PER_TRACE
        os.environ["THOUSAND_CELLS"] = str(cells)
        print(f"{cells} cells, {OPERATIONS} operations each, {workers} workers", flush=True)
        print("engine      seconds  cells/s  a worker and the sweep killed, then resumed", flush=True)
        expected = None
        for engine in engines:
            os.environ[FOLDER] = str(folder / f"{engine}-told")
            os.mkdir(os.environ[FOLDER])
            swept, seconds = unkilled(traces, folder / engine, engine, workers)
            expected = expected or swept.path.read_bytes()
            assert swept.path.read_bytes() == expected, f"{engine} differs from serial"
            resumed = killed(traces, folder / f"{engine}-killed", engine, workers, cells)
            assert resumed.path.read_bytes() == expected, f"{engine}, resumed, differs from serial"
            print(
                f"{engine:10} {seconds:8.2f} {cells / seconds:8.1f}  {resumed.found} found, {resumed.computed} computed;"
                " equal to serial to the bit",
                flush=True,
            )


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--cells", type=int, default=1000)
    arguments.add_argument("--workers", type=int, default=2)
    arguments.add_argument("--engines", default=",".join(ENGINES))
    arguments.add_argument("--child", help=argparse.SUPPRESS)
    arguments.add_argument("--output", help=argparse.SUPPRESS)
    arguments.add_argument("traces", nargs="*", help=argparse.SUPPRESS)
    given = arguments.parse_args()
    if given.child:
        return child(given.child, given.workers, given.output, given.traces)
    engines = []
    for engine in given.engines.split(","):
        module = ENGINES[engine]
        if module and not importlib.util.find_spec(module):
            print(f"{engine}: left out, since {module} is not installed")
        else:
            engines.append(engine)
    compare(engines, max(given.cells, 2 * CELLS_PER_TRACE), given.workers)


if __name__ == "__main__":
    main()
