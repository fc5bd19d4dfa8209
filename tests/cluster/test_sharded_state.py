"""Answers of shards, merged, are those of one process to the last bit: no engine is needed to see that."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from models import METRICS, NAMES, POOL, QUERIES, Model, assert_same, searches

from antisparse import Index, InputError, InputTypeError, UnsupportedError
from antisparse.cluster.assignment import assigned, segment_bytes
from antisparse.cluster.shard import Shard, UnknownStateError
from antisparse.cluster.sharded_state import ShardedState
from antisparse.index.manifest import FileEntry, Manifest, SegmentEntry
from antisparse.index.reader import Reader
from antisparse.index.staging import staging_of


class LocalShards(Reader):
    """Shards of an index in this process."""

    n_threads = 1
    _model = None

    def __init__(self, path: Path, shards: int) -> None:
        place = staging_of(path)
        manifest = place.manifest()
        self.shards = [Shard(str(path)) for _ in range(shards)]
        for shard, part in zip(self.shards, assigned(manifest, shards), strict=True):
            shard.prepare("state", part)
        snapshot = place.snapshot(replace(manifest, segments=()))
        self._held = ShardedState(snapshot.searcher, manifest, snapshot.schema, snapshot.model, self._ask)

    def _ask(self, question: str, *arguments: Any) -> list[Any]:
        return [shard.ask("state", question, arguments) for shard in self.shards]

    @property
    def _state(self) -> ShardedState:
        return self._held


def filled(path: Path, model: Model, cuts: list[int], removed: list[int]) -> Index:
    """An index of several segments, some of whose codes are deleted."""
    index = model.create(path)
    for first, last in zip([0, *cuts], [*cuts, len(POOL)], strict=True):
        if first < last:
            model.add(index, POOL[first:last])
    present = [i for i in removed if i in model.rows]
    if present:
        model.remove(index, sorted(set(present)))
    return index


def check_same(sharded: LocalShards, index: Index, model: Model, k: int, probes: int, seed: int) -> None:
    random = np.random.default_rng(seed)
    some = np.sort(random.choice(len(POOL), random.integers(1, len(POOL)), replace=False))
    filters: list[Any] = [None, model.given([i for i in some if i in model.rows]) or None, np.zeros(0, np.int64)]
    filters.append(np.isin(np.arange(len(POOL)), some))
    if model.keeps is not None:
        filters.append("half > 20 or half is null")
    for options in searches(model.name):
        ways: list[dict[str, Any]] = [options]
        if model.codec.n_cells > 1:
            ways.append({**options, "probes": probes})
        for way in ways:
            for allowed in filters:
                assert_same(
                    sharded.search(QUERIES, k, filter=allowed, **way), index.search(QUERIES, k, filter=allowed, **way)
                )
            assert_same(sharded.search(QUERIES[0], k, **way), index.search(QUERIES[0], k, **way))
    if "reconstruction" not in {options.get("method", "reconstruction") for options in searches(model.name)}:
        return
    assert_same(
        sharded.search(QUERIES, min(k, 20), rerank=POOL.__getitem__),
        index.search(QUERIES, min(k, 20), rerank=POOL.__getitem__),
    )
    radius = float(np.sort(index.search(QUERIES, 20)[0].reshape(-1))[50])
    for one, other in zip(
        sharded.range_search(QUERIES, radius, filter=filters[1]),
        index.range_search(QUERIES, radius, filter=filters[1]),
        strict=True,
    ):
        np.testing.assert_array_equal(one, other)


@settings(max_examples=40)
@given(
    name=st.sampled_from(NAMES),
    metric=st.sampled_from((None, *METRICS)),
    keeps=st.sampled_from((None, None, "text", "integer", "columns")),
    cuts=st.lists(st.integers(0, len(POOL)), max_size=6),
    removed=st.lists(st.integers(0, len(POOL) - 1), max_size=40),
    shards=st.integers(1, 5),
    k=st.sampled_from((1, 3, 10, 200, 5000)),
    probes=st.integers(1, 4),
    seed=st.integers(0, 1000),
)
def test_shards_answer_as_one_process_does(
    tmp_path_factory: pytest.TempPathFactory,
    name: str,
    metric: str | None,
    keeps: str | None,
    cuts: list[int],
    removed: list[int],
    shards: int,
    k: int,
    probes: int,
    seed: int,
) -> None:
    path = tmp_path_factory.mktemp("sharded") / "index"
    try:
        model = Model(name, metric, keeps=keeps)
    except (InputError, UnsupportedError):  # not every code has every metric
        model = Model(name, keeps=keeps)
    with filled(path, model, sorted(cuts), removed) as index:
        sharded = LocalShards(path, shards)
        check_same(sharded, index, model, k, probes, seed)
        assert len(sharded) == len(index) and sharded.stats() == index.stats()
        np.testing.assert_array_equal(sharded.ids, index.ids)
        ids = np.random.default_rng(seed).permutation(index.ids)[:30]
        np.testing.assert_array_equal(sharded.codes(model.given(ids)), index.codes(model.given(ids)))
        assert (3 in sharded) == (3 in index) and -1 not in sharded
        with pytest.raises(InputError, match="is not in the index"):
            sharded.codes(model.given([len(POOL) + 5]))
        if keeps is not None:
            assert sharded.items(model.given(ids)).equals(index.items(model.given(ids)))
            assert sharded.search(QUERIES, 3, items=True, method=zoo_method(name)).equals(
                index.search(QUERIES, 3, items=True, method=zoo_method(name))
            )


def zoo_method(name: str) -> Any:
    return searches(name)[0].get("method", "reconstruction")


def test_estimates_below_zero_keep_their_order(tmp_path: Path) -> None:
    """Distances alone could not be merged: those of vectors that are almost the same are all 0."""
    model, random = Model("codebooks nibble"), np.random.default_rng(0)
    X = np.repeat(POOL[:10], 12, axis=0) + 0.01 * random.standard_normal((120, POOL.shape[1]))
    with model.create(tmp_path / "index") as index:
        for part in range(4):
            model.add(index, random.permutation(X)[30 * part : 30 * part + 30])
        sharded = LocalShards(tmp_path / "index", 4)
        rebuilt = index.reconstruct(index.ids)
        found = index.search(rebuilt, 50)
        zeros = [ids[distances == 0] for distances, ids in zip(*found, strict=True)]
        assert any((np.diff(ids) < 0).any() for ids in zeros)
        assert_same(sharded.search(rebuilt, 50), found)


def test_what_cannot_be_asked_is_said_by_shards_too(tmp_path: Path) -> None:
    model = Model("codebooks")
    with model.create(tmp_path / "index") as index:
        model.add(index, POOL)
    sharded = LocalShards(tmp_path / "index", 3)
    with pytest.raises(UnsupportedError):
        sharded.search(QUERIES, method="hamming")
    with pytest.raises(InputError, match="Q contains NaN"):
        sharded.search(QUERIES * np.nan)
    for wrong in ((i for i in range(3)), [[1]], np.zeros(3)):
        with pytest.raises(InputTypeError, match="filter must be"):
            sharded.search(QUERIES, filter=wrong)
    with pytest.raises(InputError, match="Q has 2 columns"):
        sharded.search(QUERIES[:, :2])
    with pytest.raises(UnsupportedError, match="keeps no items"):
        sharded.items([1])
    with pytest.raises(UnsupportedError, match="is none of"):
        sharded._ask("close")
    with pytest.raises(UnknownStateError):
        sharded.shards[0].ask("another", "ids", ())


def test_a_shard_keeps_two_states_and_no_more(tmp_path: Path) -> None:
    model = Model("signs")
    with model.create(tmp_path / "index") as index:
        place, shard = staging_of(tmp_path / "index"), Shard(str(tmp_path / "index"))
        counts = []
        for state in range(4):
            model.add(index, POOL[: 10 * (state + 1)])
            shard.prepare(str(state), place.manifest())
            counts.append(len(model.rows))
            for earlier in range(4):
                if earlier in (state, state - 1):
                    assert len(shard.ask(str(earlier), "ids", ())) == counts[earlier]
                else:
                    with pytest.raises(UnknownStateError):
                        shard.ask(str(earlier), "ids", ())
        index.compact()
        with pytest.raises(FileNotFoundError):
            shard.prepare("gone", replace(place.manifest(), segments=(SegmentEntry(FileEntry("x", 1, 1), 1),)))


@given(
    sizes=st.lists(st.integers(1, 10**6), max_size=40),
    more=st.lists(st.integers(1, 10**6), max_size=20),
    shards=st.integers(1, 8),
)
def test_segments_are_dealt_out_by_bytes_and_stay(sizes: list[int], more: list[int], shards: int) -> None:
    entries = [SegmentEntry(FileEntry(f"{n}", size, 0), 1) for n, size in enumerate([*sizes, *more])]
    whole = Manifest(FileEntry("codec", 1, 1))
    before = assigned(replace(whole, segments=tuple(entries[: len(sizes)])), shards)
    loads = [sum(map(segment_bytes, part.segments)) for part in before]
    assert max(loads) - min(loads) <= max(sizes, default=0)
    kept = entries[len(sizes) // 3 :]
    after = assigned(replace(whole, segments=tuple(kept)), shards, before)
    assert sorted(e.codes.file for part in after for e in part.segments) == sorted(e.codes.file for e in kept)
    for one, other in zip(before, after, strict=True):
        stayed = {e.codes.file for e in one.segments} & {e.codes.file for e in kept}
        assert stayed <= {e.codes.file for e in other.segments}
