"""`simulate` gives what `bowwave replay --json` prints."""

import json
import os
import subprocess
import sys
import threading
import time

import pytest

import bowwave


def replay(*words):
    """What the command prints."""
    binary = os.environ.get("BOWWAVE_BINARY")
    if not binary:
        pytest.skip("BOWWAVE_BINARY does not name a built bowwave")
    return json.loads(subprocess.check_output([binary, "replay", *words, "--json"]))


def test_the_same_as_the_command_by_default(example):
    rows = replay(example)
    trace = bowwave.read_trace(example)
    assert [bowwave.simulate(trace, row["policy"]) for row in rows] == rows
    assert [row["policy"] for row in rows] == ["linux-6", "adaptive"]


def test_the_same_as_the_command_with_each_option(example):
    options = ["--policy", "adaptive-v16:ratio=50,hit-rate=2", "--device", "net", "--memory", "16M"]
    options += ["--elevator", "noop", "--readahead", "512", "--pace", "none", "--log"]
    [row] = replay(example, *options)
    simulated = bowwave.simulate(
        bowwave.read_trace(example),
        "adaptive-v16:ratio=50,hit-rate=2",
        "net",
        16 << 20,
        elevator="noop",
        readahead_kb=512,
        pace="none",
        log=True,
    )
    assert simulated == row
    assert row["log"] and row["memory_bytes"] == 16 << 20


def test_wrong_values_are_one_sentence_that_says_what_is_possible(example):
    trace = bowwave.read_trace(example)
    wrong = [
        ({"policy": "wrong"}, "linux-6, adaptive"),
        ({"device": "wrong"}, "hdd, hdd-fifo, net"),
        ({"device": "/nonexistent.toml"}, "/nonexistent.toml"),
        ({"elevator": "wrong"}, "noop, linus"),
        ({"memory": "1"}, "between 1M and 64G"),
        ({"memory": 1}, "between 1M and 64G"),
        ({"memory": "much"}, "optionally followed by K, M or G"),
        ({"memory": -1}, "between 1M and 64G"),
        ({"memory": 1 << 64}, "between 1M and 64G"),
        ({"readahead_kb": 1 << 64}, "a multiple of 4"),
        ({"readahead_kb": 130}, "a multiple of 4"),
        ({"readahead_kb": -4}, "a multiple of 4"),
        ({"pace": "wrong"}, "write trace or none"),
    ]
    for values, expected in wrong:
        with pytest.raises(ValueError, match=expected) as error:
            bowwave.simulate(trace, **values)
        assert "\n" not in str(error.value)


def test_a_memory_that_is_no_size_is_one_sentence(example):
    trace = bowwave.read_trace(example)
    for memory in (1e9, None, ["1G"]):
        with pytest.raises(TypeError, match="; give bytes, or text such as") as error:
            bowwave.simulate(trace, memory=memory)
        assert "\n" not in str(error.value)


def test_other_threads_run_meanwhile(example):
    """This thread goes on while another one is within the simulator."""
    trace = bowwave.read_trace(example)
    expected = bowwave.simulate(trace, "oracle")
    interval = sys.getswitchinterval()
    # The interpreter takes its lock from nobody now: the other thread has to give it back by itself.
    sys.setswitchinterval(1000)
    try:
        # On a busy machine, this thread may not run at once.
        assert any(turns_beside(trace, expected) > 0 for _ in range(20))
    finally:
        sys.setswitchinterval(interval)


def turns_beside(trace, expected):
    """How often this thread goes round while another one simulates."""
    has_ended = threading.Event()
    results = []

    def simulate():
        results.append(bowwave.simulate(trace, "oracle"))
        has_ended.set()

    thread = threading.Thread(target=simulate)
    thread.start()
    turns = 0
    while not has_ended.is_set():
        turns += 1
        # The other one needs the lock to end.
        time.sleep(0.0001)
    thread.join()
    assert results == [expected]
    return turns
