"""The packed ids of a segment against NumPy, and lists that no writer makes: nothing outside them is read."""

import numpy as np
import pytest

from antisparse import _core
from antisparse.codes import cell_blocks
from antisparse.index.ids import SegmentIds

KINDS = ("consecutive", "gaps", "32 bits", "more than 32 bits", "63 bits", "clusters")
MOST = 2**63 - 2  # the largest id


def drawn(kind, n, random):
    """n distinct ids of a kind, ascending."""
    if kind == "consecutive":
        return np.arange(n) + 7
    if kind == "gaps":
        return np.flatnonzero(random.random(3 * n + 40) < 0.5)[:n]
    if kind == "clusters":
        return np.r_[: n // 2, 2**60 : 2**60 + n - n // 2]
    top = {"32 bits": 2**32, "more than 32 bits": 2**32 + 2, "63 bits": MOST + 1}[kind]
    ids = np.unique(random.integers(0, top, n))
    return np.unique(np.r_[0, top - 1, random.permutation(ids)[: n - 2]]) if n > 1 else ids


def placed(ids, cells, n_cells):
    """Ids by place, and where cells end."""
    _, rows, ends = cell_blocks(np.zeros((len(ids), 1), np.uint8), cells, n_cells)
    return np.where(rows >= 0, np.append(ids, -1)[rows], -1), ends


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("n_cells", [1, 2, 5, 300])
@pytest.mark.parametrize("n", [1, 2, 31, 32, 33, 1000, 70_000])
def test_ids_are_found_and_read_as_numpy_does(kind: str, n_cells: int, n: int) -> None:
    random = np.random.default_rng([n, n_cells, KINDS.index(kind)])
    ids = drawn(kind, n, random)
    cells = random.integers(n_cells, size=len(ids)) ** 2 // n_cells  # some have more, and some have none
    by_place, ends = placed(ids, cells, n_cells)
    packed = SegmentIds.pack(by_place, ends)
    assert (packed.rows, packed.lowest, packed.highest) == (len(ids), ids[0], ids[-1])
    np.testing.assert_array_equal(packed.by_place(), by_place)
    places = random.integers(len(by_place), size=100)
    np.testing.assert_array_equal(packed.at(places), by_place[places])
    near = np.r_[ids[:200], ids[-200:] + 1, ids[:200] - 1, random.integers(0, MOST, 50), -1, -(2**63), 2**63 - 1]
    wanted = np.r_[random.permutation(ids), near]
    found = packed.find(wanted)
    np.testing.assert_array_equal(found >= 0, np.isin(wanted, ids))
    np.testing.assert_array_equal(by_place[found[found >= 0]], wanted[found >= 0])
    metadata = {"lowest": str(packed.lowest), "highest": str(packed.highest)}
    assert SegmentIds.read(packed.rows, metadata, ends, packed.arrays).same(packed)


def test_ids_take_the_bits_they_need() -> None:
    def stored(ids, n_cells=1):
        cells = np.random.default_rng(0).integers(n_cells, size=len(ids))
        arrays = SegmentIds.pack(*placed(ids, cells, n_cells)).arrays
        return {name: array.nbytes for name, array in arrays.items()}

    assert stored(np.arange(3200) + 5) == {}
    with_gap = stored(np.r_[:1600, 1700:3300])  # blocks without a gap take no bits, only that they do
    assert with_gap == {"id_firsts": 400, "id_starts": 404, "id_words": 0}
    assert stored(np.r_[:1600, 2**40 : 2**40 + 1600])["id_firsts"] == 800
    even = stored(2 * np.arange(3200))  # up to 31 beyond the first and the place: 6 bits, as all ones mean none
    assert even["id_words"] == 3200 * 6 // 8
    in_cells = stored(np.arange(32_000), 16)
    assert in_cells["cell_slots"] <= 1.3 * 32_000 * 4 / 8 and in_cells["cell_seeds"] == 4


@pytest.mark.parametrize(
    ("ids", "message"),
    [
        ([3, 2], "do not ascend"),
        ([2, 2], "do not ascend"),
        ([2, -1, 3], "do not ascend"),
        ([-1, 3], "do not ascend"),
        ([3, 4, -2], "do not ascend"),
    ],
)
def test_ids_that_cannot_be_packed(ids, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        _core.pack_ids(np.r_[ids, np.full(32 - len(ids), -1)], 0)


def test_an_id_in_two_cells_is_refused() -> None:
    by_place, ends = placed(np.array([1, 5, 5, 9]), np.array([0, 0, 1, 1]), 2)
    with pytest.raises(ValueError, match="twice"):
        _core.map_cells(by_place, ends)


def sound(n_cells, wide):
    """The arguments of a list."""
    random = np.random.default_rng(n_cells)
    ids = np.unique(random.integers(0, 2**45 if wide else 2**31, 500))
    by_place, ends = placed(ids, random.integers(n_cells, size=len(ids)), n_cells)
    packed = SegmentIds.pack(by_place, ends)
    names = {"id_firsts": "wide_firsts" if wide else "firsts", "id_starts": "starts", "id_words": "words"}
    names |= {"cell_seeds": "seeds", "cell_slots": "cells"}
    return ids, ends, {names[name]: array for name, array in packed.arrays.items()}


@pytest.mark.parametrize("wide", [False, True])
@pytest.mark.parametrize("n_cells", [1, 3, 33])
def test_lists_that_lie_are_read_within_bounds(isa: str, n_cells: int, wide: bool) -> None:
    ids, ends, arrays = sound(n_cells, wide)
    random = np.random.default_rng(0)
    blocks = np.zeros((ends[-1], 1, 32), np.uint8)
    queries = _core.QueryTables(np.ones((2, 2, 16), np.int32), np.ones(2), np.zeros((2, n_cells)))
    wanted, places = np.r_[ids, random.integers(0, 2**62, 100)], np.arange(32 * ends[-1])
    for _ in range(300):
        lying = {name: array.copy() for name, array in arrays.items()}
        for name in random.choice(list(lying), 2):
            array = lying[name]
            most = np.iinfo(array.dtype).max
            extreme = np.array([0, 1, 31, 63, 64, 65, len(lying["words"]), most // 2, most - 1, most], array.dtype)
            at = random.integers(len(array), size=random.integers(1, len(array) + 1))
            anything = random.integers(0, most, len(at), array.dtype)
            array[at] = random.choice(extreme, len(at)) if random.random() < 0.5 else anything
        lowest, highest = int(ids[0]), int(random.choice([ids[0] + len(ids) - 1, ids[-1], MOST]))
        listed = _core.IdList(ends, len(ids), lowest, highest, **lying)
        read = listed.all()
        assert ((read == -1) | ((read >= lowest) & (read <= highest))).all()
        np.testing.assert_array_equal(listed.at(places), read)
        found = listed.find(wanted)
        assert (found < len(read)).all() and (read[found[found >= 0]] == wanted[found >= 0]).all()
        columns = _core.CodeColumns(blocks, 32 * int(ends[-1]), id_list=listed, cell_ends=ends)
        _, nearest = columns.search(queries, 20, 1)
        assert np.isin(nearest, [*read, -1]).all()


@pytest.mark.parametrize(
    "change",
    [
        lambda a: a.update(starts=a["starts"][:-1]),
        lambda a: a.update(firsts=a["firsts"][:-1]),
        lambda a: a.update(wide_firsts=a["firsts"].astype(np.uint64)),
        lambda a: a.update(words=None),
        lambda a: a.update(starts=None),
        lambda a: a.update(seeds=None),
        lambda a: a.update(cells=None),
        lambda a: a.update(seeds=None, cells=None),
        lambda a: a.update(seeds=a["seeds"][:0]),
        lambda a: a.update(cells=a["cells"][:0]),
        lambda a: a.update(cells=a["cells"][:-1]),
        lambda a: a.update(rows=0),
        lambda a: a.update(rows=10**9),
        lambda a: a.update(lowest=-1),
        lambda a: a.update(lowest=5, highest=4),
        lambda a: a.update(highest=2**63 - 1),
        lambda a: a.update(cell_ends=a["cell_ends"][:0]),
        lambda a: a.update(cell_ends=a["cell_ends"][::-1].copy()),
        lambda a: a.update(cell_ends=a["cell_ends"] - 100),
        lambda a: a.update(cell_ends=a["cell_ends"] + 2**50),
    ],
)
def test_lists_that_do_not_fit(change) -> None:
    ids, ends, arrays = sound(3, False)
    arguments = {"cell_ends": ends, "rows": len(ids), "lowest": int(ids[0]), "highest": int(ids[-1])} | arrays
    _core.IdList(**arguments)
    change(arguments)
    with pytest.raises(ValueError, match=r"ids|id |cell_ends"):
        _core.IdList(**arguments)


def test_places_beyond_a_list_are_refused() -> None:
    listed = _core.IdList(np.array([2]), 40, 5, 44)
    np.testing.assert_array_equal(listed.at(np.array([0, 39, 40, 63])), [5, 44, -1, -1])
    for place in (-1, 64, 2**62):
        with pytest.raises(ValueError, match="out of range"):
            listed.at(np.array([place]))


def test_ids_that_were_chosen_against_every_seed_are_found() -> None:
    """Two ids share all three slots by each of the hundred seeds that are tried; other ranges have other slots."""
    random, seeds, count = np.random.default_rng(0), 100, 200
    length = (count * 41 // 100 // 32 + 1) * 32
    chosen: set[int] = set()
    for seed in range(seeds):
        ids = random.integers(0, MOST, 8000)
        first = mixed(ids.astype(np.uint64), seed + 1)
        more = mixed(first, 0)
        thirds = [first & np.uint64(2**32 - 1), first >> np.uint64(32), more & np.uint64(2**32 - 1)]
        slots = sum(
            (third * np.uint64(length) >> np.uint64(32)) * np.uint64(length) ** i for i, third in enumerate(thirds)
        )
        order = np.argsort(slots)
        twin = int(np.flatnonzero(np.diff(slots[order]) == 0)[0])
        chosen |= {int(ids[order[twin]]), int(ids[order[twin + 1]])}
    ids = np.array(sorted(chosen))
    assert len(ids) == count
    by_place, ends = placed(ids, np.arange(count) % 5, 5)
    packed = SegmentIds.pack(by_place, ends)
    assert len(packed.arrays["cell_slots"]) > 3 * length // 32 * 3  # of three bits: a longer range than usual
    np.testing.assert_array_equal(by_place[packed.find(ids)], ids)


def mixed(numbers, seed):
    """SplitMix64, as docs/format.md has it."""
    with np.errstate(over="ignore"):
        z = numbers + np.uint64((seed + 1) * 0x9E3779B97F4A7C15 % 2**64)
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return z ^ (z >> np.uint64(31))
