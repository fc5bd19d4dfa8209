import hashlib
import io
import os
import subprocess
import sys
import tarfile
from pathlib import Path

import numpy as np
import pytest
from servers import Served, http_server

from antisparse import DownloadError, FormatError, InputError, InputTypeError
from antisparse.datasets import download, load, named, siftsmall, synthetic

RNG = np.random.default_rng(0)
PARTS = {
    "base": RNG.integers(0, 200, (50, 128)).astype("<f4"),
    "learn": RNG.integers(0, 200, (20, 128)).astype("<f4"),
    "query": RNG.integers(0, 200, (7, 128)).astype("<f4"),
    "groundtruth": RNG.integers(0, 50, (7, 100)).astype("<i4"),
}


def vecs(X: np.ndarray) -> bytes:
    return b"".join(len(row).to_bytes(4, "little") + row.tobytes() for row in X)


MEMBERS = {
    f"siftsmall/siftsmall_{part}.{'ivecs' if part == 'groundtruth' else 'fvecs'}": vecs(X) for part, X in PARTS.items()
}


def packed(members: dict[str, bytes]) -> bytes:
    """A tar.gz as TEXMEX packs them, with a folder and a stranger."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as tar:
        folder = tarfile.TarInfo("siftsmall")
        folder.type = tarfile.DIRTYPE
        tar.addfile(folder)
        for name, data in {"../escaped": b"!", "siftsmall/stranger.fvecs": b"!", **members}.items():
            info = tarfile.TarInfo(name)
            info.size = len(data)
            tar.addfile(info, io.BytesIO(data))
    return buffer.getvalue()


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "cache"
    monkeypatch.setenv("ANTISPARSE_DATA", str(folder))
    monkeypatch.setattr(download, "_PAUSE", 0.0)
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
    return folder


def publish(monkeypatch: pytest.MonkeyPatch, url: str, archive: bytes) -> None:
    """Let the archive be siftsmall."""
    digest = hashlib.sha256(archive).hexdigest()
    sizes = {name: len(data) for name, data in MEMBERS.items()}
    monkeypatch.setitem(named._ARCHIVES, "siftsmall", named._Archive(url, digest, sizes))


def test_synthetic_is_the_paper_s() -> None:
    data = load("synthetic")
    assert data.base.shape == (10_000, 16) and data.query.shape == (1_000, 16) and data.learn.shape == (10_000, 16)
    assert data.base.dtype == np.float64 and data.neighbors is None and data.name == "synthetic"
    for X in (data.base, data.query, data.learn):
        np.testing.assert_allclose(np.linalg.norm(X, axis=1), 1, rtol=1e-15)
        # Uniform: no direction is preferred, and every coordinate has variance 1/d.
        np.testing.assert_allclose(X.mean(0), 0, atol=5 / np.sqrt(16 * len(X)))
        np.testing.assert_allclose(X.T @ X / len(X), np.eye(16) / 16, atol=5 / 16 / np.sqrt(len(X) / 2))


def test_synthetic_streams_are_apart() -> None:
    data = synthetic(100, 5, 30, 20, 7)
    more = synthetic(200, 5, 40, 50, 7)
    np.testing.assert_array_equal(data.base, more.base[:100])
    np.testing.assert_array_equal(data.query, more.query[:30])
    np.testing.assert_array_equal(data.learn, more.learn[:20])
    rows = np.vstack([more.base, more.query, more.learn])
    assert len(np.unique(rows, axis=0)) == 290
    assert not np.isin(synthetic(100, 5, 30, 20, 8).base, data.base).any()


def test_synthetic_is_the_same_everywhere() -> None:
    first = [0.7796797160167585, -0.4838645709883654, 0.39746020854202774]  # of seed 0
    np.testing.assert_array_equal(load("synthetic", n=1, d=3).base, [first])


def test_names_and_options_are_checked() -> None:
    with pytest.raises(InputError, match="name = 'gist'; choose one of 'synthetic', 'siftsmall', 'sift1m'"):
        load("gist")
    with pytest.raises(InputTypeError, match=r"load\('synthetic'\): .*'size'; its options are n, d, queries"):
        load("synthetic", size=3)
    for option in ("n", "d"):
        with pytest.raises(InputError, match=f"{option} = 0"):
            load("synthetic", **{option: 0})
    with pytest.raises(InputError, match="random_state = -1"):
        synthetic(random_state=-1)
    with pytest.raises(InputTypeError, match="queries must be an integer"):
        synthetic(queries=1.5)


def test_an_archive_is_fetched_once_and_unpacked(cache, monkeypatch) -> None:
    archive = packed(MEMBERS)
    with http_server(Served(archive, cuts=[1000])) as served:
        url = served.url.replace("file.bin", "siftsmall.tar.gz")
        publish(monkeypatch, url, archive)
        data = load("siftsmall", progress=False)
        assert served.starts == [None, 1000]
    assert data.name == "siftsmall"
    for part, X in zip(("base", "learn", "query", "neighbors"), PARTS.values(), strict=True):
        np.testing.assert_array_equal(getattr(data, part), X)
        assert isinstance(getattr(data, part), np.memmap)
    # Nothing but what was expected came out of the archive.
    assert {str(file.relative_to(cache)) for file in cache.rglob("*") if file.is_file()} == {
        "siftsmall.tar.gz",
        ".siftsmall.tar.gz.lock",
        *MEMBERS,
    }
    assert os.listdir(cache.parent) == ["cache"]
    # The server is gone: the files are enough, and so is the archive.
    os.remove(cache / "siftsmall.tar.gz")
    np.testing.assert_array_equal(siftsmall().base, PARTS["base"])
    (cache / "siftsmall.tar.gz").write_bytes(archive)
    os.truncate(cache / "siftsmall/siftsmall_base.fvecs", 516)
    np.testing.assert_array_equal(siftsmall().base, PARTS["base"])


def test_an_archive_placed_by_hand(cache, monkeypatch) -> None:
    archive = packed(MEMBERS)
    publish(monkeypatch, "http://127.0.0.1:9/siftsmall.tar.gz", archive)
    with pytest.raises(DownloadError, match=r"put it at .*cache.siftsmall\.tar\.gz") as caught:
        siftsmall()
    place = Path(str(caught.value).rpartition("put it at ")[2])
    place.write_bytes(archive)
    np.testing.assert_array_equal(siftsmall().query, PARTS["query"])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"siftsmall/siftsmall_query.fvecs": None}, r"there is no siftsmall/siftsmall_query\.fvecs in it"),
        ({"siftsmall/siftsmall_query.fvecs": b"short"}, r"siftsmall_query\.fvecs has 5 bytes, not 3612"),
    ],
)
def test_an_archive_that_lacks_a_file(cache, monkeypatch, change: dict, message: str) -> None:
    archive = packed({name: data for name, data in (MEMBERS | change).items() if data is not None})
    publish(monkeypatch, "http://127.0.0.1:9/siftsmall.tar.gz", archive)
    cache.mkdir()
    (cache / "siftsmall.tar.gz").write_bytes(archive)
    with pytest.raises(FormatError, match=message):
        siftsmall()


def test_links_in_an_archive_are_not_followed(cache, monkeypatch) -> None:
    buffer = io.BytesIO(packed({name: data for name, data in MEMBERS.items() if "base" not in name}))
    unzipped = io.BytesIO()
    with tarfile.open(fileobj=buffer) as tar, tarfile.open(fileobj=unzipped, mode="w:gz") as other:
        for member in tar.getmembers():
            other.addfile(member, tar.extractfile(member))
        link = tarfile.TarInfo("siftsmall/siftsmall_base.fvecs")
        link.type, link.linkname = tarfile.SYMTYPE, "siftsmall_learn.fvecs"
        other.addfile(link)
    publish(monkeypatch, "http://127.0.0.1:9/siftsmall.tar.gz", unzipped.getvalue())
    cache.mkdir()
    (cache / "siftsmall.tar.gz").write_bytes(unzipped.getvalue())
    with pytest.raises(FormatError, match=r"there is no siftsmall/siftsmall_base\.fvecs in it"):
        siftsmall()


WHOLE = packed(MEMBERS)


@pytest.mark.parametrize(
    "archive",
    [WHOLE[:3000], WHOLE[:-30], WHOLE[:3000] + b"!" * 50 + WHOLE[3050:], b"no archive at all", b""],
    ids=["cut early", "cut late", "overwritten", "no archive", "empty"],  # the bytes of an archive hold the time
)
def test_a_damaged_archive_is_a_format_error(tmp_path, archive: bytes) -> None:
    path = tmp_path / "x.tar.gz"
    path.write_bytes(archive)
    with pytest.raises(FormatError, match=r"x\.tar\.gz"):
        named._unpack(path, tmp_path, {name: len(data) for name, data in MEMBERS.items()})


def test_the_published_sizes() -> None:
    assert sum(named._ARCHIVES["siftsmall"].files.values()) == 18_152_000
    assert sum(named._ARCHIVES["sift1m"].files.values()) == 576_800_000
    assert list(named._ARCHIVES["sift1m"].files) == [
        "sift/sift_base.fvecs",
        "sift/sift_learn.fvecs",
        "sift/sift_query.fvecs",
        "sift/sift_groundtruth.ivecs",
    ]


def test_importing_is_cheap() -> None:
    code = (
        "import sys, antisparse; assert 'antisparse.datasets' not in sys.modules\n"
        "import antisparse.datasets; print([m for m in ('h5py', 'pyarrow', 'rich', 'sklearn') if m in sys.modules])"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "[]"
