"""What several tests need."""

import pytest

import bowwave
import counted


@pytest.fixture
def example(tmp_path):
    """The example trace as a file."""
    path = tmp_path / "example.csv"
    path.write_text(bowwave.EXAMPLE)
    return path


@pytest.fixture
def traces(tmp_path):
    """Three small traces, each another one."""
    paths = [tmp_path / f"{number}.csv" for number in range(3)]
    for number, path in enumerate(paths):
        path.write_text(trace(reads=20 + number))
    return paths


def trace(reads):
    lines = [f"{number * 1000},reader,/srv/file,read,{number * 65536},16384\n" for number in range(reads)]
    return "file_bytes,file\n16777216,/srv/file\ntime_us,process,file,op,offset,bytes\n" + "".join(lines)


@pytest.fixture
def executions(tmp_path):
    """Counts how often each cell is executed, in whichever process."""
    folder = tmp_path / counted.FOLDER
    folder.mkdir()
    return counted.Executions(folder)


@pytest.fixture(scope="session")
def client():
    """A client of a Dask cluster of two workers. It is the current one only where a test says so."""
    distributed = pytest.importorskip("distributed")
    cluster = distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None)
    with cluster, distributed.Client(cluster, set_as_default=False) as client:
        yield client
