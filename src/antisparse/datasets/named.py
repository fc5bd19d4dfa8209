"""Data sets by name: drawn from a seed, or fetched once and kept."""

import gzip
import inspect
import shutil
import tarfile
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from antisparse._arrays import Float64Array, boolean, choice, integer
from antisparse._files import open_regular, replacing
from antisparse.datasets.dataset import Dataset, read_dataset
from antisparse.datasets.download import cache_folder, fetch
from antisparse.errors import FormatError, InputTypeError


@dataclass(frozen=True)
class _Archive:
    """A tar.gz of vector files: where it is, its checksum, and the files in it with their bytes."""

    url: str
    sha256: str
    files: dict[str, int]


def _texmex(name: str, sha256: str, base: int, learn: int, query: int) -> _Archive:
    """An archive of http://corpus-texmex.irisa.fr: fvecs of 128 dimensions, ivecs of 100 neighbours."""
    return _Archive(
        f"ftp://ftp.irisa.fr/local/texmex/corpus/{name}.tar.gz",
        sha256,
        {
            f"{name}/{name}_base.fvecs": base * 516,
            f"{name}/{name}_learn.fvecs": learn * 516,
            f"{name}/{name}_query.fvecs": query * 516,
            f"{name}/{name}_groundtruth.ivecs": query * 404,
        },
    )


# The authors publish MD5 sums only. Each SHA-256 is the one on which several unrelated public repositories that fetch
# the same archive agree; for sift.tar.gz, one of them found it together with the authors' MD5.
_ARCHIVES = {
    "siftsmall": _texmex(
        "siftsmall", "b8f1e59b20319ac44279d5251706909dd3a5b8ca5ce2a11ddb1e73902252770e", 10_000, 25_000, 100
    ),
    "sift1m": _texmex(
        "sift", "92f1270c5e3a0cb46b89983e72b0511e4df065c31a9fa0276d8c9b1fca5bc81a", 1_000_000, 100_000, 10_000
    ),
}


def load(name: str, **options: Any) -> Dataset:
    """A data set by name.

    Parameters
    ----------
    name : {"synthetic", "siftsmall", "sift1m"}
        Which one.
    **options
        The parameters of the function of that name in `antisparse.datasets`.

    Examples
    --------
    >>> from antisparse import datasets
    >>> data = datasets.load("synthetic", n=500, d=8, random_state=3)
    >>> data.base.shape, data.query.shape
    ((500, 8), (1000, 8))
    """
    function = _NAMED[choice(name, "name", _NAMED)]
    signature = inspect.signature(function)
    try:
        signature.bind(**options)
    except TypeError as error:
        known = ", ".join(signature.parameters)
        raise InputTypeError(f"load({name!r}): {error}; its options are {known}") from None
    return function(**options)


def synthetic(
    n: int = 10_000, d: int = 16, queries: int = 1_000, learn: int = 10_000, random_state: int = 0
) -> Dataset:
    """Vectors uniform on the unit sphere, in float64: the paper's synthetic data.

    Base, learn and query come from streams of their own: the number of one does not change another, and fewer rows are
    the first of more. The neighbours are not computed (None).

    Parameters
    ----------
    n, queries, learn : int
        Rows of base, query and learn.
    d : int
        The dimension.
    random_state : int
        The same seed gives the same vectors on every machine of one numpy version.
    """
    d = integer(d, "d", 1)
    counts = [integer(n, "n", 1), integer(queries, "queries", 0), integer(learn, "learn", 0)]
    streams = np.random.SeedSequence(integer(random_state, "random_state", 0, below=2**128)).spawn(3)
    parts = [_sphere(np.random.default_rng(stream), count, d) for stream, count in zip(streams, counts, strict=True)]
    return Dataset(parts[0], parts[2], parts[1], None, "synthetic")


def siftsmall(*, progress: bool = True) -> Dataset:
    """The 10,000 SIFT descriptors of TEXMEX, 100 queries and 25,000 to learn from; 5 MB to fetch, once."""
    return _archived("siftsmall", progress)


def sift1m(*, progress: bool = True) -> Dataset:
    """The million SIFT descriptors of TEXMEX, 10,000 queries and 100,000 to learn from; 161 MB to fetch, once."""
    return _archived("sift1m", progress)


_NAMED: dict[str, Callable[..., Dataset]] = {"synthetic": synthetic, "siftsmall": siftsmall, "sift1m": sift1m}


def _sphere(generator: np.random.Generator, n: int, d: int) -> Float64Array:
    X = generator.standard_normal((n, d))
    squares = np.zeros(n)
    for j in range(d):  # in a fixed order: the order of a library's sum depends on the machine
        squares += X[:, j] ** 2
    X /= np.sqrt(squares)[:, None]
    return X


def _archived(name: str, progress: bool) -> Dataset:
    """The data set of an archive, from the cache, or fetched to it."""
    boolean(progress, "progress")
    archive = _ARCHIVES[name]
    folder = cache_folder()
    if not all(_has(folder / file, size) for file, size in archive.files.items()):
        packed = folder / archive.url.rpartition("/")[2]
        fetch(archive.url, packed, sha256=archive.sha256, progress=progress)
        _unpack(packed, folder, archive.files)
    found = read_dataset(folder / next(iter(archive.files)).partition("/")[0])
    return Dataset(found.base, found.learn, found.query, found.neighbors, name)


def _has(path: Path, size: int) -> bool:
    return path.is_file() and path.stat().st_size == size


def _unpack(packed: Path, folder: Path, files: dict[str, int]) -> None:
    """Copy the expected files, and nothing else, out of a tar.gz: no name in it decides where a byte goes."""
    missing = set(files)
    try:
        with open_regular(packed) as (archive, _), tarfile.open(fileobj=archive, mode="r:gz") as tar:
            for member in tar:
                source = tar.extractfile(member) if member.name in missing and member.isreg() else None
                if source is None:
                    continue
                expected = files[member.name]
                if member.size != expected:
                    raise FormatError(f"{packed}: {member.name} has {member.size} bytes, not {expected}")
                place = folder / member.name
                place.parent.mkdir(exist_ok=True)
                with replacing(place) as temporary, source, open(temporary, "wb") as target:
                    shutil.copyfileobj(source, target)
                missing.remove(member.name)
    except (tarfile.TarError, EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise FormatError(f"{packed}: not a sound tar.gz ({error}); remove it to fetch it again") from None
    if missing:
        raise FormatError(f"{packed}: there is no {', '.join(sorted(missing))} in it")
