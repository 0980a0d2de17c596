"""Traces are read as `bowwave` reads them."""

import array
import pathlib

import pytest

import bowwave

# crates/trace/tests/golden.rs makes it, and has kept those of older formats.
GOLDEN = pathlib.Path(__file__).parents[2] / "trace/tests/golden"
RECORDED = GOLDEN / "recorded.trace"

TEXT = """\
file_bytes,file
1048576,/srv/a
time_us,process,file,op,offset,bytes,took_us
1,cat 8,/srv/a,advise random,0,0,0
2,cat 8,/srv/a,read,0,100,0.077
5,tar 7,/srv/a,read,4096,8192,0
"""


def test_a_text_is_read(tmp_path):
    path = tmp_path / "text.csv"
    path.write_text(TEXT)
    for given in (path, str(path)):
        trace = bowwave.read_trace(given)
        assert len(trace) == 3
        assert trace.processes == ["cat 8", "tar 7"]
        assert trace.files == [("/srv/a", 1 << 20)]
        assert trace.duration_s == pytest.approx(4e-6)
        assert trace.pages_needed == 3
        assert (trace.notes, trace.origin) == ([], None)
        assert "3 operations of 2 processes on 1 files" in repr(trace)


def test_a_recorded_trace_is_read():
    trace = bowwave.read_trace(RECORDED)
    assert trace.processes == ["cat 8", "tar 7"]
    assert trace.origin == {
        "bowwave": "0.1.0",
        "kernel": "6.18.0",
        "date": "2026-11-23",
        "lost": 3,
        "lost_pages": 40,
        "lost_requests": 2,
        "left_out": 0,
        "is_complete": True,
        "calls_per_record": 1,
    }
    assert trace.notes == [
        "3 operations were lost when the trace was recorded",
        "40 pages that the kernel brought in are missing in the trace",
        "2 requests of devices are missing in the trace",
    ]
    text = bowwave.Trace.from_bytes(TEXT.encode())
    assert {name: list(column) for name, column in trace.columns().items()} == {
        name: list(column) for name, column in text.columns().items()
    }


def test_columns_are_numbers_that_others_take_without_a_copy():
    columns = bowwave.Trace.from_bytes(TEXT.encode()).columns()
    assert list(columns["time_ns"]) == [1000, 2000, 5000]
    assert list(columns["took_ns"]) == [0, 77, 0]
    assert list(columns["offset"]) == [0, 0, 4096]
    assert list(columns["bytes"]) == [0, 100, 8192]
    assert list(columns["process"]) == [0, 0, 1]
    assert [bowwave.OPS[op] for op in columns["op"]] == ["advise random", "read", "read"]
    assert array.array("Q", columns["bytes"]).itemsize == columns["bytes"].itemsize == 8


def test_a_trace_is_a_table_of_arrow():
    pytest.importorskip("pyarrow")
    table = bowwave.Trace.from_bytes(TEXT.encode()).to_arrow()
    table.validate(full=True)
    assert table.column_names == ["time_ns", "took_ns", "process", "file", "op", "offset", "bytes"]
    assert table.to_pylist()[2] == {
        "time_ns": 5000,
        "took_ns": 0,
        "process": "tar 7",
        "file": "/srv/a",
        "op": "read",
        "offset": 4096,
        "bytes": 8192,
    }


def test_windows_are_what_the_kernel_brought_in():
    trace = bowwave.read_trace(RECORDED)
    windows = trace.windows()
    assert {name: list(column) for name, column in windows.items()} == {
        "time_ns": [4000, 4500],
        # The second one does nothing else in the trace.
        "process": [0, -1],
        "file": [0, 0],
        "reason": [bowwave.REASONS.index("read"), bowwave.REASONS.index("request")],
        "offset": [4096, 64 * 4096],
        "bytes": [32 * 4096, 8 * 4096],
        "asked_offset": [4096, 64 * 4096],
        "asked_bytes": [2 * 4096, 0],
    }
    assert array.array("Q", windows["bytes"]).itemsize == windows["bytes"].itemsize == 8


def test_windows_are_a_table_of_arrow():
    pytest.importorskip("pyarrow")
    table = bowwave.read_trace(RECORDED).windows_to_arrow()
    table.validate(full=True)
    first, second = table.to_pylist()
    assert first == {
        "time_ns": 4000,
        "process": "cat 8",
        "file": "/srv/a",
        "reason": "read",
        "offset": 4096,
        "bytes": 131072,
        "asked_offset": 4096,
        "asked_bytes": 8192,
    }
    assert (second["process"], second["reason"]) == (None, "request")
    assert table["process"].null_count == 1


def test_requests_are_what_devices_completed():
    trace = bowwave.read_trace(RECORDED)
    assert trace.devices == ["sda", "vdb"]
    assert bowwave.REQUEST_OPS == ("read", "write", "other")
    assert {name: list(column) for name, column in trace.requests().items()} == {
        "time_ns": [4100, 4200],
        "took_ns": [900, 700],
        "device": [0, 1],
        "op": [0, 1],
        "bytes": [131072, 4096],
    }


def test_requests_are_a_table_of_arrow():
    pytest.importorskip("pyarrow")
    table = bowwave.read_trace(RECORDED).requests_to_arrow()
    table.validate(full=True)
    assert table.to_pylist() == [
        {"time_ns": 4100, "took_ns": 900, "device": "sda", "op": "read", "bytes": 131072},
        {"time_ns": 4200, "took_ns": 700, "device": "vdb", "op": "write", "bytes": 4096},
    ]


def test_what_a_trace_does_not_tell_is_empty():
    """A text has neither windows nor requests, format 1 has no windows, and format 2 no requests."""
    text = bowwave.Trace.from_bytes(TEXT.encode())
    first = bowwave.read_trace(GOLDEN / "recorded-1.trace")
    second = bowwave.read_trace(GOLDEN / "recorded-2.trace")
    for trace, windows in ((text, 0), (first, 0), (second, 1)):
        assert trace.devices == []
        assert {len(column) for column in trace.windows().values()} == {windows}
        assert {len(column) for column in trace.requests().values()} == {0}


def test_tables_may_be_empty():
    pytest.importorskip("pyarrow")
    text = bowwave.Trace.from_bytes(TEXT.encode())
    recorded = bowwave.read_trace(RECORDED)
    for empty, full in (
        (text.windows_to_arrow(), recorded.windows_to_arrow()),
        (text.requests_to_arrow(), recorded.requests_to_arrow()),
    ):
        empty.validate(full=True)
        assert (empty.num_rows, empty.schema) == (0, full.schema)


def test_what_is_wrong_with_a_trace_is_one_sentence(tmp_path):
    missing = tmp_path / "missing"
    with pytest.raises(FileNotFoundError, match=f"cannot read the trace {missing}: No such file"):
        bowwave.read_trace(missing)
    with pytest.raises(OSError, match="cannot read the trace"):
        bowwave.read_trace(tmp_path)
    wrong = tmp_path / "wrong.csv"
    wrong.write_text("0,p,a,read,0,1\n")
    with pytest.raises(ValueError, match="wrong.csv: line 1: the line `time_us"):
        bowwave.read_trace(wrong)
    with pytest.raises(ValueError, match="it is damaged at byte"):
        bowwave.Trace.from_bytes(damaged(RECORDED.read_bytes()))
    with pytest.raises(TypeError):
        bowwave.read_trace(7)


def damaged(data):
    """With another byte in the block after the header."""
    place = data.index(b"/srv/a")
    return data[:place] + b"X" + data[place + 1 :]
