"""How far a sweep is."""

import contextlib
import sys


@contextlib.contextmanager
def bar(cells, is_wanted):
    """Gives a function to call after each cell. Shows nothing where standard error is no terminal."""
    if not is_wanted or not sys.stderr.isatty():
        yield lambda: None
        return
    try:
        from tqdm import tqdm
    except ImportError:
        with line(cells) as advance:
            yield advance
        return
    with tqdm(total=cells, desc="sweep", unit="cell") as shown:
        yield shown.update


@contextlib.contextmanager
def line(cells):
    """The same without tqdm: a line that is written anew."""
    done = 0

    def advance():
        nonlocal done
        done += 1
        print(f"\rsweep: {done} of {cells} cells", end="", file=sys.stderr, flush=True)

    try:
        yield advance
    finally:
        print(file=sys.stderr)
