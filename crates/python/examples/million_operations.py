"""How long a trace of a million operations takes to read, to become a table, and to simulate.

    python crates/python/examples/million_operations.py        with the package and pyarrow installed
"""

import random
import time

import bowwave

OPERATIONS = 1_000_000
# Of 1,000 files of 16 MiB; a program reads each in 100 places, then closes it.
READS_PER_FILE = 100
FILE_BYTES = 16 << 20


def text():
    """The trace as text: files are read forward and at random in turn."""
    place = random.Random(1)
    lines = ["file_bytes,file"]
    lines += [f"{FILE_BYTES},/srv/{file}" for file in range(1000)]
    lines.append("time_us,process,file,op,offset,bytes")
    for number in range(OPERATIONS):
        file = number // READS_PER_FILE % 1000
        offset = number % READS_PER_FILE * 65536 if file % 2 else place.randrange(FILE_BYTES >> 12) << 12
        lines.append(f"{number * 100},reader,/srv/{file},read,{offset},16384")
    return ("\n".join(lines) + "\n").encode()


def timed(name, call):
    """Calls it, prints how long that took, and gives its result."""
    started = time.perf_counter()
    result = call()
    seconds = time.perf_counter() - started
    print(f"{name:32} {seconds:8.3f} s  {seconds / OPERATIONS * 1e9:8.0f} ns an operation", flush=True)
    return result


def main():
    data = text()
    trace = timed("read the text", lambda: bowwave.Trace.from_bytes(data))
    assert len(trace) == OPERATIONS
    timed("columns()", trace.columns)
    timed("to_arrow()", trace.to_arrow)
    for policy in ("linux-6", "adaptive"):
        for device in ("hdd", "ssd"):
            timed(f"simulate, {policy} on {device}", lambda: bowwave.simulate(trace, policy, device))


main()
