"""Traces and results as Arrow tables."""

from bowwave._native import OPS


def pyarrow():
    """The module, if it is installed."""
    try:
        import pyarrow
    except ImportError as error:
        raise ImportError("tables need pyarrow, which is not installed: pip install pyarrow") from error
    return pyarrow


def table(trace):
    """The operations of a trace; names are dictionaries, and nothing is copied a second time."""
    pa = pyarrow()
    columns = trace.columns()
    numbers = {"time_ns": pa.int64(), "took_ns": pa.int64(), "offset": pa.uint64(), "bytes": pa.uint64()}
    names = {"process": trace.processes, "file": [name for name, _ in trace.files], "op": list(OPS)}

    def array(name, column):
        if name in numbers:
            return plain(column, numbers[name])
        indices = plain(column, pa.int8() if column.itemsize == 1 else pa.int32())
        return pa.DictionaryArray.from_arrays(indices, pa.array(names[name], pa.string()))

    def plain(column, kind):
        return pa.Array.from_buffers(kind, len(column), [None, pa.py_buffer(column)])

    return pa.table({name: array(name, column) for name, column in columns.items()})
