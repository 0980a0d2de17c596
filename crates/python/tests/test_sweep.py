"""A sweep computes each cell once, whoever is killed, and all engines give the same."""

import collections
import contextlib
import json
import pathlib
import resource
import shutil
import socket
import subprocess
import sys
import warnings

import pytest

import bowwave
import counted
from bowwave._sweep import api, cell, engines, journal, plan
from conftest import trace

pytest.importorskip("pyarrow")

GRID = {"policy": ["linux-6", "adaptive"], "device": ["hdd", "net"], "memory": "64M", "readahead_kb": [64, 128]}
CELLS = 3 * 2 * 2 * 2
PARALLEL = [
    "processes",
    "dask",
    pytest.param("ray", marks=pytest.mark.ray),
]


def sweep(traces, output, engine="serial", execute=cell.execute, grid=GRID, retries=2):
    if engine in ("dask", "ray"):
        pytest.importorskip("distributed" if engine == "dask" else engine)
    return api.sweep_with(execute, traces, grid, output, engine, 2, retries, False)


@pytest.fixture
def ground(engine, request, monkeypatch):
    """What an engine finds: for Dask a cluster, whose start takes longer than a test; for Ray the module `counted`."""
    monkeypatch.setenv("PYTHONPATH", str(pathlib.Path(counted.__file__).parent))
    if engine != "dask":
        yield
        return
    with request.getfixturevalue("client").as_current():
        yield


@pytest.fixture
def serial(traces, tmp_path):
    """The file that the serial engine writes."""
    return sweep(traces, tmp_path / "serial").path.read_bytes()


def test_each_cell_is_what_simulate_gives(traces, tmp_path):
    swept = sweep(traces, tmp_path / "out")
    rows = swept.table().to_pylist()
    assert (swept.computed, swept.found, swept.failed) == (CELLS, 0, [])
    expected = [
        {"trace": str(path), **bowwave.simulate(bowwave.read_trace(path), policy, device, "64M", readahead_kb=kib)}
        for path in traces
        for policy in GRID["policy"]
        for device in GRID["device"]
        for kib in GRID["readahead_kb"]
    ]
    for row in rows:
        assert len(row.pop("trace_sha256")) == 64
    assert rows == expected


@pytest.mark.parametrize("engine", PARALLEL)
def test_engines_start_their_workers_and_give_the_same_file(traces, tmp_path, serial, engine):
    assert sweep(traces, tmp_path / "out", engine).path.read_bytes() == serial


@pytest.mark.parametrize("engine", PARALLEL)
@pytest.mark.usefixtures("ground")
def test_a_killed_worker_loses_nothing(traces, tmp_path, serial, executions, engine):
    swept = sweep(traces, tmp_path / "out", engine, counted.killed_once)
    assert swept.failed == [] and swept.path.read_bytes() == serial
    of_each = executions.of_each()
    assert len(of_each) == CELLS
    if engine == "processes":
        # Only the cells of that worker's hands are computed again: one at a time.
        assert executions.total() == CELLS + 4


def test_a_cell_that_kills_its_workers_fails_alone(traces, tmp_path, executions):
    with pytest.warns(RuntimeWarning, match="4 of 24 cells have failed"):
        swept = sweep(traces, tmp_path / "out", "processes", counted.killed_always, retries=1)
    assert len(swept.failed) == 4 and swept.computed == CELLS - 4
    assert {(failed.attempts, failed.problem) for failed in swept.failed} == {(2, "its worker was killed by signal 9")}
    assert "1.csv, adaptive on hdd" in swept.failed[0].cell
    assert swept.table().num_rows == CELLS - 4


def test_a_worker_that_ends_by_itself_was_not_killed(traces, tmp_path, executions):
    with pytest.warns(RuntimeWarning, match="4 of 24 cells have failed"):
        swept = sweep(traces, tmp_path / "out", "processes", counted.leaving_always, retries=0)
    assert {failed.problem for failed in swept.failed} == {"its worker ended with status 3"}


@pytest.mark.parametrize("engine", ["serial", *PARALLEL])
@pytest.mark.usefixtures("ground")
def test_what_fails_once_is_tried_again(traces, tmp_path, serial, executions, engine):
    swept = sweep(traces, tmp_path / "out", engine, counted.failing_once)
    assert swept.failed == [] and swept.path.read_bytes() == serial
    assert collections.Counter(executions.of_each().values()) == {1: CELLS - 4, 2: 4}


def test_what_fails_always_is_told_and_tried_again_by_the_next_sweep(traces, tmp_path, serial, executions):
    with pytest.warns(RuntimeWarning, match="since OSError: the server does not answer"):
        swept = sweep(traces, tmp_path / "out", execute=counted.failing_always)
    assert [failed.attempts for failed in swept.failed] == [3] * 4
    again = sweep(traces, tmp_path / "out")
    assert (again.computed, again.found, again.failed) == (4, CELLS - 4, [])
    assert again.path.read_bytes() == serial


def test_nothing_is_computed_twice(traces, tmp_path, executions):
    output = tmp_path / "out"
    first = sweep(traces[:1], output, execute=counted.counting)
    before = first.path.read_bytes()
    second = sweep(traces, output, execute=counted.counting)
    assert (first.computed, second.computed, second.found) == (CELLS // 3, CELLS * 2 // 3, CELLS // 3)
    third = sweep(traces[:1], output, execute=counted.counting)
    assert third.computed == 0 and third.path.read_bytes() == before
    assert set(executions.of_each().values()) == {1} and executions.total() == CELLS


@pytest.mark.parametrize("engine", ["serial", "processes"])
def test_a_killed_sweep_goes_on_where_it_stopped(traces, tmp_path, serial, executions, engine):
    output = tmp_path / "out"
    script = (
        f"import sys; sys.path.insert(0, {str(pathlib.Path(counted.__file__).parent)!r})\n"
        "import os, signal, counted\n"
        "from bowwave._sweep import api, journal\n"
        "add, written = journal.Journal.add, []\n"
        "def add_ten(self, key, figures):\n"
        "    add(self, key, figures)\n"
        "    written.append(key)\n"
        "    if len(written) == 10: os.kill(os.getpid(), signal.SIGKILL)\n"
        "journal.Journal.add = add_ten\n"
        f"api.sweep_with(counted.counting, {[str(path) for path in traces]!r}, {GRID!r}, {str(output)!r},"
        f" {engine!r}, 2, 2, False)\n"
    )
    assert subprocess.run([sys.executable, "-c", script]).returncode == -9
    assert not (output / "results.parquet").exists()
    finished = {json.loads(line)["key"] for line in (output / "journal.jsonl").read_text().splitlines()[1:]}
    assert len(finished) == 10
    swept = sweep(traces, output, engine, counted.counting)
    assert (swept.found, swept.computed) == (10, CELLS - 10)
    assert swept.path.read_bytes() == serial
    of_each = executions.of_each()
    assert {of_each[key] for key in finished} == {1}


def test_half_a_line_of_a_killed_sweep_is_cut_off(traces, tmp_path, serial, executions):
    output = tmp_path / "out"
    sweep(traces, output)
    journal = output / "journal.jsonl"
    data = journal.read_bytes()
    for end in range(0, len(data), len(data) // 20):
        journal.write_bytes(data[:end])
        swept = sweep(traces, output)
        whole = max(data[:end].count(b"\n") - 1, 0)
        assert (swept.found, swept.computed) == (whole, CELLS - whole)
        assert swept.path.read_bytes() == serial


def test_another_content_of_a_trace_is_another_cell(traces, tmp_path):
    output = tmp_path / "out"
    sweep(traces, output)
    traces[1].write_text(trace(reads=40))
    swept = sweep(traces, output)
    assert (swept.found, swept.computed) == (CELLS * 2 // 3, CELLS // 3)
    moved = traces[1].rename(tmp_path / "moved.csv")
    swept = sweep([moved], output)
    assert (swept.found, swept.computed) == (CELLS // 3, 0)
    assert set(swept.table()["trace"].to_pylist()) == {str(moved)}


def test_another_bowwave_computes_again(traces, tmp_path, monkeypatch):
    output = tmp_path / "out"
    sweep(traces, output)
    for module in (plan, cell):
        monkeypatch.setattr(module, "build", lambda: "0.2.0+other")
    assert sweep(traces, output).found == 0
    # A worker with the wrong one refuses.
    monkeypatch.setattr(plan, "build", lambda: "0.3.0+other")
    with pytest.warns(RuntimeWarning, match="install the same wheel"):
        assert len(sweep(traces, output).failed) == CELLS


def test_a_device_file_is_known_by_its_content(traces, tmp_path):
    device = tmp_path / "mine.toml"
    source = pathlib.Path(__file__).parents[2] / "device/devices/net.toml"
    device.write_text(source.read_text())
    grid = {"policy": "linux-6", "device": [str(device)], "memory": "64M"}
    assert sweep(traces, tmp_path / "out", grid=grid).computed == 3
    assert sweep(traces, tmp_path / "out", grid=grid).computed == 0
    device.write_text(source.read_text() + "\n# slower\n")
    assert sweep(traces, tmp_path / "out", grid=grid).computed == 3


def test_a_wrong_trace_fails_at_once_and_alone(traces, tmp_path):
    traces[1].write_text("no trace\n")
    with pytest.warns(RuntimeWarning, match="1.csv: line 1"):
        swept = sweep(traces, tmp_path / "out")
    assert {failed.attempts for failed in swept.failed} == {1}
    assert (len(swept.failed), swept.computed) == (CELLS // 3, CELLS * 2 // 3)


def test_a_trace_that_changes_meanwhile_is_refused(traces, tmp_path):
    def changing(cell_):
        path = pathlib.Path(cell_.trace)
        path.write_text(path.read_text() + "# changed\n")
        return cell.execute(cell_)

    cell.trace_of.cache_clear()
    with pytest.warns(RuntimeWarning, match="has changed since the sweep began"):
        swept = sweep(traces[:1], tmp_path / "out", execute=changing)
    assert len(swept.failed) == CELLS // 3


def test_equal_cells_are_computed_once_and_told_twice(traces, tmp_path):
    traces[1].write_text(traces[0].read_text())
    swept = sweep(traces[:2], tmp_path / "out", grid={"policy": "linux-6", "memory": ["64M", 64 << 20]})
    assert swept.computed == 1
    assert swept.table()["trace"].to_pylist() == [str(path) for path in traces[:2]]


def test_two_sweeps_do_not_write_to_one_folder(traces, tmp_path):
    def nested(cell_):
        with pytest.raises(RuntimeError, match="another sweep is writing to"):
            sweep(traces, tmp_path / "out")
        return cell.execute(cell_)

    assert sweep(traces[:1], tmp_path / "out", execute=nested).failed == []


def test_dask_uses_the_client_that_is_there(traces, tmp_path, serial, client):
    with client.as_current():
        assert sweep(traces, tmp_path / "out", "dask").path.read_bytes() == serial
    assert client.status == "running"
    read = client.run(lambda: __import__("bowwave")._sweep.cell.trace_of.cache_info().misses)
    assert sum(read.values()) >= 3


def test_a_cluster_of_our_own_does_not_warn_of_others(traces, tmp_path, recwarn):
    with socket.socket() as other:
        # Somebody may have it already.
        with contextlib.suppress(OSError):
            other.bind(("127.0.0.1", 8787))
            other.listen()
        sweep(traces[:1], tmp_path / "out", "dask")
    assert [str(warning.message) for warning in recwarn if "8787" in str(warning.message)] == []


def test_a_scheduler_that_is_gone_is_told_and_what_is_finished_stays(traces, tmp_path, serial, client, monkeypatch):
    distributed = pytest.importorskip("distributed")
    add = journal.Journal.add

    def add_and_close(self, key, figures):
        add(self, key, figures)
        own.close()

    monkeypatch.setattr(journal.Journal, "add", add_and_close)
    with distributed.Client(client.scheduler.address, set_as_default=False) as own, own.as_current():
        with pytest.raises(ConnectionError, match="scheduler is gone; sweep again"):
            sweep(traces, tmp_path / "out", "dask")
    monkeypatch.undo()
    swept = sweep(traces, tmp_path / "out")
    assert swept.found == 1 and swept.path.read_bytes() == serial


def test_what_an_engine_needs_is_said(monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(ImportError, match="needs Ray, which is not installed: pip install"):
        engines.Ray(cell.execute, 1)


def test_numbers_and_paths_of_other_libraries_are_settings_like_any_other(traces, tmp_path):
    class Number:
        """As NumPy's numbers are: neither an int nor known to JSON."""

        def __init__(self, value):
            self._value = value

        def __index__(self):
            return self._value

    device = tmp_path / "disk.toml"
    device.write_text((pathlib.Path(__file__).parents[2] / "device/devices/net.toml").read_text())
    output = tmp_path / "out"
    grid = {"policy": "linux-6", "device": device, "memory": Number(64 << 20), "readahead_kb": [Number(64), 128]}
    swept = sweep(iter([bytes(traces[0])]), output, grid=grid)
    assert swept.table()["device"].to_pylist() == [str(device)] * 2
    same = {"policy": "linux-6", "device": str(device), "memory": "64M", "readahead_kb": [64, 128]}
    assert sweep(traces[0], output, grid=same).found == 2


@pytest.mark.parametrize(
    ("grid", "expected"),
    [
        ({"memory": 1e9}, "the memory is 1000000000.0; give bytes, or text such as"),
        ({"memory": [None]}, "the memory is None"),
        ({"readahead_kb": [128.5]}, "readahead_kb is 128.5; give whole numbers, for example 128"),
        ({"readahead_kb": "128"}, "readahead_kb is '128'"),
        ({"policy": [["linux-6"]]}, "policy is .*; give names, for example 'linux-6'"),
        ({"device": None}, "device is None; give names, for example 'hdd'"),
        (["linux-6"], "the grid is a dict of lists"),
    ],
)
def test_values_of_a_wrong_type_are_one_sentence(traces, tmp_path, grid, expected):
    with pytest.raises(TypeError, match=expected) as error:
        bowwave.sweep(traces, grid, output=tmp_path / "out")
    assert "\n" not in str(error.value)
    for name in ("workers", "retries"):
        with pytest.raises(TypeError, match=f"{name} is 1.5; give a whole number"):
            bowwave.sweep(traces, output=tmp_path / "out", **{name: 1.5})


def test_what_tells_a_cell_from_others_is_computed_once(traces, tmp_path, monkeypatch):
    dumps, told = json.dumps, []

    def counting(value, **options):
        told.extend(value.get("trace_sha256", "") and [1])
        return dumps(value, **options)

    monkeypatch.setattr(plan.json, "dumps", counting)
    sweep(traces, tmp_path / "out")
    assert len(told) == CELLS


@contextlib.contextmanager
def room(file_bytes):
    """Files of this process end there, as if the disk were full."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (file_bytes, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_a_full_disk_loses_nothing_and_is_told_with_the_file(traces, tmp_path, serial, executions):
    sweep(traces, tmp_path / "all")
    lines = (tmp_path / "all/journal.jsonl").read_bytes().splitlines(keepends=True)
    output = tmp_path / "out"
    # Room for whole lines, and for a part of one.
    for whole, more in [(4, 0), (7, 9)]:
        with room(sum(map(len, lines[: whole + 1])) + more):
            with pytest.raises(OSError, match="cannot write to .*/out/journal.jsonl: .*; make room"):
                sweep(traces, output, execute=counted.counting)
        assert (output / "journal.jsonl").read_bytes() == b"".join(lines[: whole + 1])
    swept = sweep(traces, output, execute=counted.counting)
    assert swept.found == 7 and swept.path.read_bytes() == serial


def test_results_that_do_not_fit_leave_the_older_ones(traces, tmp_path):
    output = tmp_path / "out"
    grid = {**GRID, "device": "hdd", "readahead_kb": 64}
    before = sweep(traces[:1], output, grid=grid).path.read_bytes()
    with room((output / "journal.jsonl").stat().st_size + 100):
        with pytest.raises(OSError, match="cannot write to .*/out/results.parquet: .*; make room"):
            sweep(traces[:1], output, grid=grid)
    assert {path.name for path in output.iterdir()} == {"journal.jsonl", "results.parquet"}
    assert (output / "results.parquet").read_bytes() == before


def test_a_folder_that_is_removed_meanwhile_is_told(traces, tmp_path):
    def removing(cell_):
        shutil.rmtree(tmp_path / "out", ignore_errors=True)
        return cell.execute(cell_)

    with pytest.raises(FileNotFoundError, match="cannot write to .*/results.parquet: No such file or directory; mend"):
        sweep(traces, tmp_path / "out", execute=removing)


def test_an_output_that_is_a_file_is_refused(traces):
    with pytest.raises(FileExistsError, match="cannot make the folder .*; give another output"):
        bowwave.sweep(traces, output=traces[0])


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ({"grid": {"policies": ["linux-6"]}}, "the grid has no 'policies'; it takes policy, device"),
        ({"grid": {"policy": []}}, "no value of policy"),
        ({"grid": {"policy": ["wrong"]}}, "linux-6, adaptive"),
        ({"grid": {"device": "wrong"}}, "hdd, hdd-fifo, net"),
        ({"grid": {"memory": ["1"]}}, "between 1M and 64G"),
        ({"grid": {"readahead_kb": [3]}}, "a multiple of 4"),
        ({"traces": []}, "there is no trace"),
        ({"engine": "threads"}, "use one of processes, serial, dask, ray"),
        ({"workers": 0}, "give 1 or more"),
        ({"retries": -1}, "give 0 or more"),
    ],
)
def test_wrong_values_are_one_sentence_before_anything_is_computed(traces, tmp_path, values, expected):
    output = tmp_path / "out"
    with pytest.raises(ValueError, match=expected) as error:
        bowwave.sweep(**{"traces": traces, "output": output, **values})
    assert "\n" not in str(error.value)
    assert not output.exists()


def test_missing_files_and_foreign_journals_are_refused(traces, tmp_path):
    with pytest.raises(FileNotFoundError, match="cannot read the trace .*/missing"):
        bowwave.sweep([*traces, tmp_path / "missing"], output=tmp_path / "out")
    with pytest.raises(FileNotFoundError, match="cannot read the device .*/missing.toml"):
        bowwave.sweep(traces, {"device": "./missing.toml"}, output=tmp_path / "out")
    output = tmp_path / "foreign"
    output.mkdir()
    (output / "journal.jsonl").write_text("mine\n")
    with pytest.raises(ValueError, match="is no journal of a sweep; give another output"):
        bowwave.sweep(traces, output=output)
    assert (output / "journal.jsonl").read_text() == "mine\n"


def test_a_call_needs_nothing_but_traces_and_output(example, tmp_path):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        swept = bowwave.sweep(example, output=tmp_path / "out")
    assert swept.table()["policy"].to_pylist() == ["linux-6", "adaptive"]
