"""Tables of an S3 server and of Lance: the same index as of the table itself.

Both run in processes of their own: their threads would stay in this one, which other tests fork.
"""

import os
import subprocess
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from s3 import CREDENTIALS, s3_server

from antisparse import Index

N = 600
X = np.random.default_rng(0).standard_normal((N, 8)).astype(np.float32)
TABLE = pa.table(
    {
        "id": [f"key {i}" for i in range(N)],
        "vector": pa.FixedSizeListArray.from_arrays(pa.array(X.reshape(-1)), 8),
        "year": list(range(N)),
    }
)
BUILD = (
    "import sys; from antisparse import Index, errors\n"
    "for place, out in zip(sys.argv[1::2], sys.argv[2::2], strict=True):\n"
    "    try:\n"
    "        index = Index.build(place, 4, path=out, key='id', columns=['year'], random_state=0)\n"
    "        print(len(index)); index.close()\n"
    "    except errors.AntisparseError as error:\n"
    "        print(type(error).__name__, error)\n"
)


def built(*places: str, environment: dict[str, str] | None = None) -> list[str]:
    done = subprocess.run(
        [sys.executable, "-c", BUILD, *places],
        capture_output=True,
        text=True,
        timeout=120,
        env=os.environ | (environment or {}),
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def assert_same(folder: Path, **named: object) -> None:
    plain = Index.build(TABLE, 4, key="id", columns=["year"], random_state=0, **named)
    with Index.open(folder) as index:
        assert index.codec == plain.codec
        np.testing.assert_array_equal(index.codes(index.ids), plain.codes(plain.ids))
        assert index.items().equals(plain.items())


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    """The host and port of an S3 server."""
    if find_spec("moto") is None:
        pytest.skip("moto, an S3 server, is not installed")
    with s3_server() as server:
        yield server


def test_files_of_an_s3_server(server: str, tmp_path: Path) -> None:
    files = []
    for number in range(3):
        files.append(str(tmp_path / f"{number}.parquet"))
        pq.write_table(TABLE.slice(number * N // 3, N // 3), files[-1])
    put = (
        "import sys; from pyarrow import fs\n"
        f"far = fs.S3FileSystem(endpoint_override={server!r}, scheme='http', allow_bucket_creation=True)\n"
        "far.create_dir('books')\n"
        "for number, file in enumerate(sys.argv[1:]):\n"
        "    for place in ('part', 'deep/part', 'part/.hidden')[: 3 if number == 0 else 1]:\n"
        "        fs.copy_files(file, f'books/{place}/{number}.parquet', destination_filesystem=far)\n"
    )
    subprocess.run([sys.executable, "-c", put, *files], check=True, env=os.environ | CREDENTIALS, timeout=120)
    where = f"?scheme=http&endpoint_override={server}&region=us-east-1"
    places = [
        "part",
        "part/*.parquet",
        "p*/**/*.parquet",
        "**/0.parquet",
        "none",
        "part/x*.parquet",
        "part/none.parquet",
    ]
    words = [word for n, place in enumerate(places) for word in (f"s3://books/{place}{where}", str(tmp_path / f"i{n}"))]
    said = built(*words, environment=CREDENTIALS)
    assert said[:4] == [str(N)] * 3 + ["InputError key 'key 0' is there already; use update to replace it"]
    assert all(line.startswith("MissingFileError X = 's3://books/") for line in said[4:]) and len(said) == 7
    for number in range(3):
        assert_same(tmp_path / f"i{number}")


@pytest.mark.skipif(find_spec("lance") is None, reason="Lance (pylance) is not installed")
def test_a_table_of_lance(tmp_path: Path) -> None:
    pq.write_table(TABLE, tmp_path / "table.parquet")
    write = (
        "import sys, lance, pyarrow.parquet as pq\n"
        "lance.write_dataset(pq.read_table(sys.argv[1]), sys.argv[2], max_rows_per_file=250)\n"
    )
    place = str(tmp_path / "table.lance")
    subprocess.run([sys.executable, "-c", write, str(tmp_path / "table.parquet"), place], check=True, timeout=120)
    said = built(place, str(tmp_path / "index"), str(tmp_path / "none.lance"), str(tmp_path / "none"))
    assert said[0] == str(N) and said[1].startswith("MissingFileError X = ")
    assert_same(tmp_path / "index")
