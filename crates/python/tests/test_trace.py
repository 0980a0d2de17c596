"""Traces are read as `bowwave` reads them."""

import array
import pathlib

import pytest

import bowwave

# crates/trace/tests/golden.rs makes it.
RECORDED = pathlib.Path(__file__).parents[2] / "trace/tests/golden/recorded.trace"

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
    assert trace.origin["kernel"] == "6.18.0"
    assert (trace.origin["lost"], trace.origin["is_complete"]) == (3, True)
    assert trace.notes == ["3 operations were lost when the trace was recorded"]
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
