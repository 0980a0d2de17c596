"""Hands out cells, writes down what comes back, tries again what has failed."""

from __future__ import annotations

import collections
import dataclasses


@dataclasses.dataclass(frozen=True)
class Failed:
    """A cell without a result."""

    cell: str
    """Its trace and settings, for people."""
    problem: str
    """What the last attempt has come to, in one sentence."""
    attempts: int
    """How often it was tried."""


@dataclasses.dataclass(frozen=True)
class Outcome:
    """What an attempt has come to: figures or a problem."""

    figures: dict | None = None
    problem: str = ""
    # Another attempt would end the same way.
    is_final: bool = False


def attempt(execute, cell):
    """Runs in a worker; never raises, since not every exception can travel."""
    try:
        return Outcome(figures=execute(cell))
    except ValueError as error:
        return Outcome(problem=str(error), is_final=True)
    except Exception as error:
        return Outcome(problem=told(error))


def told(error):
    """An exception in one line."""
    return " ".join([f"{type(error).__name__}:", *str(error).splitlines()[:1]])


def drive(cells, engine, journal, retries, finished):
    """Computes cells until each is in the journal or has failed; gives those that have failed.

    Calls `finished` after each cell. `engine` keeps up to `engine.capacity` cells in hand.
    """
    waiting = collections.deque(cells)
    attempts = collections.Counter()
    failed = {}
    in_hand = 0
    while waiting or in_hand:
        while waiting and in_hand < engine.capacity:
            engine.submit(waiting.popleft())
            in_hand += 1
        cell, outcome = engine.next()
        in_hand -= 1
        attempts[cell.key] += 1
        if outcome.figures is not None:
            journal.add(cell.key, outcome.figures)
        elif not outcome.is_final and attempts[cell.key] <= retries:
            waiting.append(cell)
            continue
        else:
            failed[cell.key] = Failed(str(cell), outcome.problem, attempts[cell.key])
        finished()
    # In the order of the cells, whenever they have failed.
    return [failed[cell.key] for cell in cells if cell.key in failed]
