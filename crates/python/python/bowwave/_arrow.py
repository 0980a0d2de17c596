"""Traces and results as Arrow tables."""

from bowwave._native import OPS, REASONS, REQUEST_OPS


def pyarrow():
    """The module, if it is installed."""
    try:
        import pyarrow
    except ImportError as error:
        raise ImportError("tables need pyarrow, which is not installed: pip install pyarrow") from error
    return pyarrow


def operations(trace):
    """The operations of a trace."""
    return table(trace.columns(), {"process": trace.processes, "file": files(trace), "op": OPS})


def windows(trace):
    """What the kernel brought into its cache."""
    return table(trace.windows(), {"process": trace.processes, "file": files(trace), "reason": REASONS})


def requests(trace):
    """The requests that block devices completed."""
    return table(trace.requests(), {"device": trace.devices, "op": REQUEST_OPS})


def files(trace):
    return [name for name, _ in trace.files]


def table(columns, names):
    """A table of columns, of which some are indices into names: these are dictionaries. Numbers are not copied again.

    An index below 0 names nothing, and is null.
    """
    pa = pyarrow()

    def array(name, column):
        if name in names:
            return pa.DictionaryArray.from_arrays(indices(column), pa.array(names[name], pa.string()))
        return plain(column, pa.int64() if name.endswith("_ns") else pa.uint64())

    def indices(column):
        if column.itemsize == 1:
            return plain(column, pa.int8())
        numbers = plain(column, pa.int32())
        return nulls_below_zero(numbers) if column.format == "i" else numbers

    def nulls_below_zero(numbers):
        import pyarrow.compute as pc

        return pc.if_else(pc.less(numbers, 0), pa.scalar(None, pa.int32()), numbers)

    def plain(column, kind):
        return pa.Array.from_buffers(kind, len(column), [None, pa.py_buffer(column)])

    return pa.table({name: array(name, column) for name, column in columns.items()})
