"""The examples of docs/python.md and docs/fleet.md run as they are printed."""

import importlib.util
import pathlib
import re

import pytest

import bowwave
from conftest import trace

pytest.importorskip("pyarrow")

ROOT = pathlib.Path(__file__).parents[3]


def examples(page):
    return re.findall(r"```python\n(.*?)```", (ROOT / "docs" / page).read_text(), re.DOTALL)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Where somebody has two traces."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "traces").mkdir()
    for number in (1, 2):
        (tmp_path / f"traces/{number}.trace").write_text(trace(20 + number))
    return tmp_path


def test_the_examples_run_one_after_the_other(folder, client, capsys):
    (folder / "backup.trace").write_text(bowwave.EXAMPLE)
    client.write_scheduler_file(str(folder / "scheduler.json"))
    names = {}
    shown = examples("python.md")
    for example in shown:
        # The tests do without pandas where it is missing: it is large.
        if "to_pandas" not in example or importlib.util.find_spec("pandas"):
            exec(example, names)
    assert len(shown) == 5
    assert capsys.readouterr().out.startswith("290 0.7207 ['tac', 'column', 'lookup', 'copy'] []\n")
    # The last one sweeps over fewer cells, all of which are there.
    assert names["swept"].computed == 32
    assert names["swept"].table().num_rows == 8


def test_the_plan_for_a_fleet_sweeps(folder):
    (folder / "disk.toml").write_text((ROOT / "crates/device/devices/net.toml").read_text())
    names = {}
    [example] = examples("fleet.md")
    exec(example, names)
    assert names["swept"].computed == 2 * 2 * 4
