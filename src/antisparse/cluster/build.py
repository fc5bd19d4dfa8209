"""Building an index by many machines: the driver plans, tasks encode and stage, one commit (docs/cluster.md)."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Literal

import numpy as np

from antisparse._arrays import boolean, folder_of, integer, optional_name, shown, texts
from antisparse._progress import bar
from antisparse.cluster.engine import RayEngine
from antisparse.cluster.job import Done, Job, finished, job_name, learn, stage_unit
from antisparse.codec.codec import Codec, codec_of
from antisparse.errors import FormatError, InputError, InputTypeError, StorageError
from antisparse.index import Index
from antisparse.index.build import Learning, appearing
from antisparse.index.item_schema import ItemSchema
from antisparse.index.objects import is_address
from antisparse.index.snapshot import Snapshot
from antisparse.index.staged import StagedEntry
from antisparse.index.staging import WEEK, staging_of
from antisparse.index.store import MemoryStore
from antisparse.index.table_files import TableFiles, Unit
from antisparse.index.tables import vector_column
from antisparse.metrics import MetricName
from antisparse.scan.search import Searcher

# What runs tasks: a function that is called as `map` is, and gives results in any order.
Engine = Callable[[Callable[[Any], Any], Sequence[Any]], Iterable[Any]]
UNIT_ROWS = 1 << 20


@dataclass(frozen=True)
class Built:
    """What was built.

    Attributes
    ----------
    path : str
    vectors : int
    segments : int
    resumed : int
        Units of these that an earlier call had done.
    codec : Codec
    """

    path: str
    vectors: int
    segments: int
    resumed: int
    codec: Codec


def build(
    source: Any,
    path: str | Path,
    n_bytes: int = 16,
    *,
    codec: Any = None,
    metric: MetricName = "l2",
    vector: str | None = None,
    key: str | None = None,
    columns: Any = None,
    cells: int | Literal["auto"] = "auto",
    symbols: str = "auto",
    effort: Literal[1, 2, 3] = 2,
    dimensions: int | None = None,
    train: int = 100_000,
    unit_rows: int = UNIT_ROWS,
    engine: Engine | None = None,
    progress: bool = False,
    random_state: int | None = 0,
    n_threads: int = 1,
) -> Built:
    """Make an index of tables in many files, by tasks of an engine.

    The driver, which is the process that calls this, plans units of rows and gives them their ids; tasks encode and
    stage them, and note it; one commit makes all of them an index. A task that dies is run again, and a call that is
    repeated after the driver died goes on where it was. The index is the same, whoever ran what and how often.

    Parameters
    ----------
    source : path, address, or sequence of paths
        Files of tables, a folder of them, a glob, or an address such as "s3://bucket/folder", that all machines see.
    path : path or address
        A folder that all machines see, or an address in an object store, where there is nothing yet but what an
        earlier call left. It is an index without vectors until the end.
    n_bytes, metric, cells, symbols, effort, dimensions, train
        As for `Index.build`. What is learned from is drawn from at least 32 row groups, so that few of many files are
        read.
    codec : Codec or fitted encoder, optional
        Use this one in place of one that is learned.
    vector, key, columns
        As for `Index.build`.
    unit_rows : int
        A unit is as many row groups of a file as have so many rows, and becomes a segment.
    engine : callable, optional
        What runs tasks: a function that is called as `map` is, and may give results in any order; `map` itself runs
        them here. By default Ray (`RayEngine`).
    progress : bool
        Show progress, with the time left, on standard error.
    random_state : int or None
        Of every random draw.
    n_threads : int
        Threads of a task.

    Returns
    -------
    Built
    """
    place = path if isinstance(path, str) and is_address(path) else str(folder_of(path))
    seed = None if random_state is None else integer(random_state, "random_state", 0, 2**32)
    integer(train, "train", 1)
    learning = Learning(n_bytes, metric, cells, symbols, effort, dimensions, train, seed)
    given = None if codec is None else codec_of(codec, None)
    files = TableFiles.of(source, "source")
    if files.base is not None and place.startswith(files.base + "/"):
        raise InputError(
            f"path = {place!r} lies in the folder of the source, of which it would be a part; choose another"
        )
    units = files.units(integer(unit_rows, "unit_rows", 1))
    if not units:
        raise InputError("source has no rows; an index is learned from vectors")
    arrow_schema = files.data_set().schema
    column = vector_column(arrow_schema, optional_name(vector, "vector"))
    kept = () if columns is None else texts(columns, "columns")
    schema = None if key is None and not kept else ItemSchema.of(arrow_schema, key, kept, column)
    how = given.digest if given is not None else {name: _spelled(one) for name, one in vars(learning).items()}
    name = job_name(units, column, schema, how)
    job = Job(place, files, arrow_schema, column, schema, name, integer(n_threads, "n_threads", 1))
    with _running(engine) as run:
        if not _begun(job):
            if given is None:
                with bar("learning", None, boolean(progress, "progress")):
                    given = _learned(run(partial(learn, job, units), [learning]))
            _begin(job, given)
        return _finish(job, units, run, progress)


def _spelled(value: Any) -> str:
    """An argument as part of a name: numbers of numpy are those of Python."""
    return shown(value.item() if isinstance(value, np.generic) else value)


def _learned(results: Any) -> Codec:
    """The codec that the one task gave, or, of an engine that runs tasks twice, the first."""
    found = list(_given(results))
    if not found or not isinstance(found[0], bytes):
        raise InputTypeError(f"engine gave {shown(found)}, which is not what the task returned")
    return Codec.from_bytes(found[0])


def _running(engine: Engine | None) -> AbstractContextManager[Engine]:
    if engine is None:
        return RayEngine()
    if not callable(engine):
        raise InputTypeError(f"engine must be a function that is called as map is, not {shown(engine)}")
    return engine if isinstance(engine, AbstractContextManager) else nullcontext(engine)


def _begun(job: Job) -> bool:
    """Whether this job was begun at its path; InputError if another was, or there is anything else."""
    staging = staging_of(job.path)
    if not staging.exists():
        return False
    try:
        manifest = staging.manifest()
    except FormatError as error:
        raise InputError(f"path = {job.path!r}: it exists already, and is no index ({error})") from None
    if {job.name, job.begun} & set(manifest.commits):
        return True
    what = "a build of other files, or with other arguments, was begun there"
    if manifest.segments:
        what = "an index, of other files or with other arguments"
    raise InputError(f"path = {job.path!r}: it exists already ({what}); remove it first, or choose another name")


def _begin(job: Job, codec: Codec) -> None:
    """Make an index without vectors, whose manifest says which job it is for."""
    empty = Index(MemoryStore(), Snapshot(Searcher(codec), schema=job.schema, commits=(job.begun,)), None, None)
    try:
        if is_address(job.path):
            empty.save(job.path)
        else:
            with appearing(Path(job.path)) as folder:
                empty.save(folder)
    except (InputError, StorageError):
        if not _begun(job):  # by another driver, meanwhile
            raise


def _finish(job: Job, units: list[Unit], run: Engine, progress: bool) -> Built:
    """Have all units staged, those that are not yet, and commit them."""
    staging = staging_of(job.path)
    manifest = staging.manifest()
    total, resumed = sum(unit.rows for unit in units), len(units)
    if job.name not in manifest.commits:
        if manifest.segments:
            raise InputError(
                f"path = {job.path!r}: others added vectors to it since the build was begun; remove it first"
            )
        done = finished(job, units, staging.notes(), staging.waiting())
        resumed, known = len(done), {one.unit for one in done}
        left = [unit for unit in units if unit not in known]
        with bar("encoding", total, progress) as advance:
            advance(sum(one.unit.rows for one in done))
            for one in _results(run, job, left):
                done.append(one)
                advance(one.unit.rows, f"{len(done)}/{len(units)} units")
        staging.commit([StagedEntry.of(one.entry) for one in done], WEEK, job.name)
    staging.discard(map(job.unit_note, units))
    return Built(job.path, total, len(units), resumed, staging.loader.codec(manifest.codec))


def _results(run: Engine, job: Job, units: list[Unit]) -> Iterator[Done]:
    """What became of units, each once, however often the engine says it."""
    left = set(units)
    for done in _given(run(partial(stage_unit, job), units)) if units else ():
        if not isinstance(done, Done):
            raise InputTypeError(f"engine gave {shown(done)}, which is not what the task returned")
        if done.unit in left:
            left.remove(done.unit)
            yield done
    if left:
        raise InputError(f"engine ended with {len(left)} of {len(units)} tasks not done")


def _given(results: Any) -> Iterable[Any]:
    if not isinstance(results, Iterable):
        raise InputTypeError(
            f"engine gave {shown(results)}; it must give the results of all tasks, one after the other"
        )
    return results
