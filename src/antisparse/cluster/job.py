"""A build as a job: units of rows, each encoded and staged by a task of any engine, whoever runs it, and as often."""

import json
from dataclasses import asdict, dataclass
from hashlib import blake2b
from typing import Any

import numpy as np
import numpy.typing as npt

from antisparse.errors import FormatError, InputError, InputTypeError
from antisparse.index import stage
from antisparse.index.build import Learning
from antisparse.index.item_schema import ItemSchema
from antisparse.index.sources import source_of
from antisparse.index.staged import StagedEntry
from antisparse.index.staging import staging_of
from antisparse.index.table_files import TableFiles, Unit
from antisparse.index.tables import vectors_of

_LEAST_GROUPS, _LEAST_SHARE = 32, 20  # row groups, and times the training vectors, that a sample is drawn from


@dataclass(frozen=True)
class Job:
    """All that a task must know, beside its unit.

    Attributes
    ----------
    path : str
        The folder or the address of the index.
    files : TableFiles
    arrow_schema : pyarrow.Schema
        Of the files.
    vector : str
        The column of vectors.
    schema : ItemSchema or None
        What is kept beside the codes.
    name : str
        What tells it from other jobs: the files, what is kept of them, and how codes are made.
    n_threads : int
    """

    path: str
    files: TableFiles
    arrow_schema: Any
    vector: str
    schema: ItemSchema | None
    name: str
    n_threads: int

    @property
    def begun(self) -> str:
        """What the manifest has among its commits when this job was begun there."""
        return _digest([self.name, "begun"])

    def unit_note(self, unit: Unit) -> str:
        """The note that says that a unit is done."""
        return f"note-{self.name}-{_digest(unit.to_dict())}.json"


@dataclass(frozen=True)
class Done:
    """What became of a unit: the entry that `stage` returned."""

    unit: Unit
    entry: dict[str, Any]


def job_name(units: list[Unit], vector: str, schema: ItemSchema | None, how: Any) -> str:
    """The name of a job: the same for the same files, columns, and codec or learning."""
    kept = None if schema is None else asdict(schema.entry)
    return _digest([[unit.to_dict() for unit in units], vector, kept, how])


def _digest(value: Any) -> str:
    return blake2b(json.dumps(value, sort_keys=True).encode(), digest_size=16).hexdigest()


def stage_unit(job: Job, unit: Unit) -> Done:
    """The task: encode the rows of a unit, stage them, and note that it is done."""
    integer_keys = job.schema is not None and job.schema.key_is_id
    ids = None if integer_keys else np.arange(unit.first, unit.first + unit.rows)
    try:
        rows = job.files.part(unit, job.arrow_schema)
        entry = stage(job.path, rows, ids, vector=job.vector, n_threads=job.n_threads)
    except (InputError, InputTypeError, FormatError) as error:
        if unit.file in str(error):
            raise
        kind = next(kind for kind in (InputError, InputTypeError, FormatError) if isinstance(error, kind))
        raise kind(f"{unit.file}, rows from {unit.first}: {error}") from None
    staging_of(job.path).write_note(job.unit_note(unit), json.dumps(entry, sort_keys=True).encode())
    return Done(unit, entry)


def finished(job: Job, units: list[Unit], notes: dict[str, bytes], waiting: set[str]) -> list[Done]:
    """The units that notes say are done, and whose files still wait for the commit."""
    done = []
    for unit in units:
        note = notes.get(job.unit_note(unit))
        if note is not None:
            try:
                entry = StagedEntry.of(json.loads(note))
            except (ValueError, InputTypeError):
                raise FormatError(f"{job.path}: the note {job.unit_note(unit)} is damaged; remove it") from None
            if all(file.file in waiting for file in entry.files):
                done.append(Done(unit, entry.to_dict()))
    return done


def learn(job: Job, units: list[Unit], learning: Learning) -> bytes:
    """The task before all others: learn a codec from a sample of the rows, and give it as the bytes of its file."""
    total = sum(unit.rows for unit in units)
    vectors = _sample(job, learning.sample(total), np.random.default_rng(learning.random_state))
    return learning.codec(vectors, "source", total, False, None).to_bytes()  # by all threads: nothing else runs yet


def _sample(job: Job, count: int, random: np.random.Generator) -> npt.NDArray[Any]:
    """Some vectors, drawn from row groups that are drawn before, so that few of many files are read."""
    groups = job.files.units(1)
    chosen: list[Unit] = []
    for number in random.permutation(len(groups)):
        chosen.append(groups[number])
        if len(chosen) >= _LEAST_GROUPS and sum(group.rows for group in chosen) >= _LEAST_SHARE * count:
            break
    chosen.sort(key=lambda group: group.first)
    total = sum(group.rows for group in chosen)
    wanted = np.arange(total) if total <= count else np.sort(random.choice(total, count, replace=False))
    parts, before = [], 0
    for group in chosen:
        first, last = np.searchsorted(wanted, [before, before + group.rows])
        if first < last:
            table = source_of(job.files.part(group, job.arrow_schema), group.file)
            batches = table.batches([job.vector], wanted[first:last] - before)
            parts += [vectors_of(batch, job.vector) for batch in batches if len(batch)]
        before += group.rows
    if len({part.shape[1] for part in parts}) > 1:
        raise InputError(f"source has vectors of different lengths in column {job.vector!r}; all must have the same")
    return np.concatenate(parts)
