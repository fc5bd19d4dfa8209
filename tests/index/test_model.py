import os
import shutil
import signal
import tempfile
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)
from interrupts import Interrupter
from models import (
    METRICS,
    NAMES,
    POOL,
    QUERIES,
    Fields,
    Model,
    check_holds,
    check_probes,
    check_search,
    forked_threads,
    same_items,
)
from zoo import methods

from antisparse import Index, InputError, LockedError, StorageError, UnsupportedError

picks = st.lists(st.integers(0, len(POOL) - 1), max_size=12) | st.integers(20, 70).map(lambda n: list(range(n)))
seeds = st.integers(0, 2**32 - 1)
ways = st.sampled_from(["default", "own", "codes", "iterator"])
deeds = st.tuples(st.integers(0, 3), picks, ways, seeds)  # what, and what with


class Failure(Exception):
    pass


def overwritten(*arrays):
    """A caller uses its arrays again: nothing of the index may be a view of them."""
    for array in arrays:
        array[...] = 99


class Machine(RuleBasedStateMachine):
    """An index and a dictionary, changed alike; readers, each with the dictionary of when it was opened.

    Every array that is passed is overwritten after the call, also while a batch is open.
    """

    on_disk = True
    keeps = None

    @initialize(name=st.sampled_from(NAMES), metric=st.sampled_from(METRICS))
    def begin(self, name, metric):
        self.folder = tempfile.TemporaryDirectory()
        self.path = Path(self.folder.name) / "index" if self.on_disk else None
        self.model = Model(name, metric, keeps=self.keeps)
        self.index = self.model.create(self.path)
        self.readers = []
        self.stale = []

    def teardown(self):
        if hasattr(self, "folder"):
            self.index.verify()
            self.index.close()
            self.folder.cleanup()

    def some(self, seed, most=12):
        """Some of the ids that are there."""
        random = np.random.default_rng(seed)
        return random.permutation(self.model.ids)[: random.integers(most)]

    # What may be done; each does it to the index and to the model given.

    def do_add(self, model, picked, way, seed):
        X, random = POOL[picked], np.random.default_rng(seed)
        codes = model.encode(X)
        ids = random.permutation(np.setdiff1d(np.arange(4000), model.ids))[: len(X)]
        given, rows = ids.astype(np.uint16 if way == "codes" else np.int64), codes.copy()
        if self.keeps is not None:
            ids = model.own_ids(ids)
            returned = self.add_items(model, X, ids, rows, way)
        elif way == "default":
            ids = model.next_id + np.arange(len(X))
            returned = self.index.add(X)
        elif way == "own":
            returned = self.index.add(X, given)
        elif way == "codes":
            returned = self.index.add_codes(rows, given)
        else:
            returned = self.index.add(self.reused(X), given)
        assert returned.dtype == np.int64
        np.testing.assert_array_equal(returned, ids)
        overwritten(X, rows, given, returned)
        model.put(codes, ids)

    def add_items(self, model, X, ids, rows, way):
        """Add vectors and items: apart, as a table, as code rows and items, or as an iterator of tables."""
        items, named = model.items(ids, rows), {} if self.keeps != "columns" else {"ids": ids}
        if way == "default" or (self.keeps == "columns" and way != "codes"):
            return self.index.add(X, items=items, **named)
        if way == "own":
            return self.index.add(model.table(X, ids, rows))
        if way == "codes":
            return self.index.add_codes(rows, items=items, **named)
        cuts = [slice(at, at + 5) for at in range(0, len(X), 5)]
        return self.index.add(model.table(X[cut], ids[cut], rows[cut]) for cut in cuts)

    def reused(self, X):
        """Parts of an array, all in the same buffer."""
        buffer = np.empty_like(X[:5])
        for at in range(0, len(X), 5):
            part = buffer[: len(X) - at]
            part[...] = X[at : at + 5]
            yield part
            overwritten(part)

    def do_update(self, model, ids, seed):
        X, given = np.random.default_rng(seed).permutation(POOL)[: len(ids)], ids.copy()
        model.update(self.index, X, given)
        overwritten(X, given)

    def do_remove(self, model, ids):
        given = ids.copy()
        model.remove(self.index, given)
        overwritten(given)

    def do(self, model, kind, picked, way, seed):
        """One of them, or to compact."""
        ids = np.random.default_rng(seed).permutation(model.ids)[:5]
        if kind == 0:
            self.do_add(model, picked, way, seed)
        elif kind == 1:
            self.do_update(model, ids, seed)
        elif kind == 2:
            self.do_remove(model, ids)
        else:
            self.index.compact()

    @rule(picked=picks, way=ways, seed=seeds)
    def add(self, picked, way, seed):
        self.do_add(self.model, picked, way, seed)

    @rule(seed=seeds)
    def update(self, seed):
        self.do_update(self.model, self.some(seed), seed)

    @rule(seed=seeds, most=st.sampled_from([3, 12, 100]))
    def remove(self, seed, most):
        self.do_remove(self.model, self.some(seed, most))

    @rule(parts=st.lists(deeds, max_size=5), fails=st.booleans(), closes=st.booleans())
    def batch(self, parts, fails, closes):
        model = self.model.copy()
        with suppress(Failure), self.index.batch():
            for deed in parts:
                self.do(model, *deed)
            check_holds(self.index, self.model)  # not yet
            if closes:
                with pytest.raises(UnsupportedError, match="leave the batch first"):
                    self.index.close()
            if fails:
                raise Failure
            self.model = model

    @rule(parts=st.lists(deeds, min_size=1, max_size=3), batch=st.booleans(), share=st.floats(0, 1))
    def interrupted(self, parts, batch, share):
        """Ctrl-C at any line: what was done is done on the disk and in memory, or in neither."""
        models, over = [self.model.copy()], []

        def work():
            for deed in parts:
                models.append(models[-1].copy())
                self.do(models[-1], *deed)
            over.append(True)

        with Interrupter(int(share * 800 * len(parts))) as tracer:
            try:
                if batch:
                    with self.index.batch():
                        work()
                else:
                    work()
            except KeyboardInterrupt:
                assert tracer.raised
        if not tracer.raised:
            states = [models[-1]]
        elif batch:  # all of it, or nothing
            states = [models[0], *models[-1:] * len(over)]
        elif over or len(models) == 1:
            states = [models[-1]]
        else:  # the model was not told of the last one
            states = [models[-2], self.after(models[-2].copy(), *parts[len(models) - 2])]
        found = Index.open(self.path, read_only=True) if self.on_disk else self.index
        self.model = next(model for model in states if self.is_state(found, model))
        check_holds(self.index, self.model)

    def after(self, model, kind, picked, way, seed):
        """What the model is after an operation."""
        index, self.index = self.index, model.create(None)
        try:
            model.fill(self.index)
            self.index._writer.snapshot = replace(self.index.snapshot, next_id=model.next_id)
            self.do(model, kind, picked, way, seed)
        finally:
            self.index = index
        return model

    @staticmethod
    def is_state(index, model):
        return (
            index.snapshot.next_id == model.next_id
            and np.array_equal(index.ids, model.ids)
            and np.array_equal(index.codes(model.ids), model.codes(model.ids))
            and same_items(index, model)
        )

    @precondition(lambda self: self.on_disk)
    @rule(name=st.sampled_from(NAMES), moved=st.booleans(), picked=picks)
    def recreated(self, name, moved, picked):
        """Someone makes another index in the place of this one; its writer must not touch that."""
        if moved:
            self.path.rename(self.path.with_name(f"moved-{len(os.listdir(self.folder.name))}"))
        else:
            shutil.rmtree(self.path)
        self.stale = [*self.stale, (self.index, self.model)][-2:]
        self.model = Model(name, keeps=self.keeps)
        self.index = self.model.create(self.path)
        self.model.add(self.index, POOL[picked])

    @precondition(lambda self: self.stale)
    @rule()
    def stale_writer(self):
        for index, model in self.stale:
            with pytest.raises(StorageError, match="removed or replaced"):
                model.copy().add(index, POOL[:3])
            with pytest.raises(StorageError, match="removed or replaced"), index.batch():
                index.remove(model.ids)
            check_holds(index, model)  # what it has it still finds

    @precondition(lambda self: hasattr(os, "fork"))
    @rule(deed=deeds)
    def forked(self, deed):
        """A child finds what is there, writes nothing to the folder of its parent, and does not give away its lock."""
        child = os.fork()
        if child == 0:
            status = 1
            try:
                signal.alarm(60)
                if self.on_disk:
                    with pytest.raises(UnsupportedError, match="its parent writes to it"):
                        self.model.copy().add(self.index, POOL[:3])
                else:
                    self.do(self.model, *deed)  # to a copy of its own
                check_holds(self.index, self.model)
                for reader, _ in self.readers:
                    reader.refresh()
                    check_holds(reader, self.model)
                self.index.close()
                if self.on_disk:
                    with pytest.raises(LockedError):
                        Index.open(self.path)
                status = 0
            finally:
                os._exit(status)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0

    @rule(seed=seeds)
    def refused(self, seed):
        there, X = self.some(seed), POOL[:12]
        nowhere = 5000 + int(self.model.next_id)
        for ids in ([*there, nowhere], [nowhere]):
            with pytest.raises(InputError, match="is not in the index"):
                self.index.remove(self.model.given(ids))
            with pytest.raises(InputError, match="is not in the index"):
                self.model.copy().update(self.index, POOL[: len(ids)], ids)
        if len(there) and self.keeps is not None:
            model, codes = self.model.copy(), self.model.encode(X)
            for ids in (there, [nowhere, there[0]]):
                parts = [(X[:1], ids[:1], codes[:1]), (X[1 : len(ids)], ids[1:], codes[1 : len(ids)])]
                items = model.items(ids, codes[: len(ids)])
                if self.keeps == "columns":
                    with pytest.raises(InputError, match="is there already"):
                        self.index.add(X[: len(ids)], ids, items=items)
                    continue
                with pytest.raises(InputError, match="is there already"):
                    self.index.add(X[: len(ids)], items=items)
                with pytest.raises(InputError, match="is there already"):  # in one of the parts
                    self.index.add(model.table(*part) for part in parts)
        elif len(there):
            with pytest.raises(InputError, match="is there already"):
                self.index.add(X[: len(there)], there)
            with pytest.raises(InputError, match="is there already"):  # the second part
                self.index.add(iter([X[:1], X[:1]]), [nowhere, there[0]])

    @rule()
    def compact(self):
        self.index.compact()
        assert self.index.stats()["segments"] == min(1, len(self.model.rows))

    @precondition(lambda self: self.on_disk)
    @rule(verify=st.booleans())
    def reopen(self, verify):
        self.index.close()
        self.index = Index.open(self.path, verify=verify)
        assert self.index.metric == self.model.metric and self.index.codec == self.model.codec

    @precondition(lambda self: self.on_disk)
    @rule()
    def read(self):
        self.readers = [*self.readers, (Index.open(self.path, read_only=True), self.model.copy())][-2:]

    @precondition(lambda self: self.readers)
    @rule(which=st.integers(0, 1))
    def refresh(self, which):
        reader, _ = self.readers[which % len(self.readers)]
        reader.refresh()
        self.readers[which % len(self.readers)] = reader, self.model.copy()

    def anyone(self, which):
        return [(self.index, self.model), *self.readers][which % (1 + len(self.readers))]

    @rule(which=st.integers(0, 2), k=st.sampled_from([1, 7, 200]))
    def search(self, which, k):
        check_search(*self.anyone(which), k)

    @rule(which=st.integers(0, 2), seed=seeds, share=st.sampled_from([0, 0.05, 0.6]), mask=st.booleans())
    def filtered(self, which, seed, share, mask):
        index, model = self.anyone(which)
        random = np.random.default_rng(seed)
        allowed = np.flatnonzero(random.random(random.integers(1, 4100)) < share)
        given = np.isin(np.arange(allowed.max(initial=0) + 1), allowed) if mask else random.permutation(allowed)
        check_search(index, model, 5, allowed, given)

    @rule(which=st.integers(0, 2), quantile=st.floats(0, 1), choice=st.integers(0, 2))
    def within(self, which, quantile, choice):
        index, model = self.anyone(which)
        method = methods(model.name)[choice % len(methods(model.name))]
        distances, ids = model.search(QUERIES, max(1, len(model.rows)), method=method)
        radius = float(np.quantile(distances, quantile)) if len(model.rows) else 1.0
        radius += 1e-6 * (abs(radius) + 1)  # not on the distance of one
        limits, values, names = index.range_search(QUERIES, radius, method=method)
        assert limits[0] == 0 and limits[-1] == len(values) == len(names) and values.dtype == distances.dtype
        for row in range(len(QUERIES)):
            part = slice(limits[row], limits[row + 1])
            inside = (distances[row] <= radius) & (ids[row] >= 0)
            np.testing.assert_array_equal(names[part], ids[row][inside])
            np.testing.assert_array_equal(values[part], distances[row][inside])

    @rule(which=st.integers(0, 2), seed=seeds)
    def reconstruct(self, which, seed):
        index, model = self.anyone(which)
        ids = np.random.default_rng(seed).permutation(model.ids)[:9]
        if model.codec.rebuilds:
            np.testing.assert_allclose(
                index.reconstruct(ids), Fields(model.codec, model.codes(ids)).rebuilt, rtol=1e-9, atol=1e-12
            )
        else:
            with pytest.raises(UnsupportedError, match="cannot rebuild"):
                index.reconstruct(ids)
        assert all(i in index for i in ids)
        assert 4500 + model.next_id not in index and -1 not in index and "0" not in index and True not in index

    @precondition(lambda self: self.model.codec.cells is not None)
    @rule(which=st.integers(0, 2), probes=st.sampled_from([1, 2, 3, 5, 8, 9, 10, 100]))
    def cells(self, which, probes):
        index, model = self.anyone(which)
        if model.codec.cells is None:  # of a reader that was here before the folder was made anew
            return
        for options in ({"method": "hamming"}, {"method": "asymmetric"}, {"shortlist": 10}):
            with pytest.raises(UnsupportedError, match=r"different means|no signs to compare"):
                index.search(QUERIES, 2, **options)
        check_probes(index, model, probes)

    @invariant()
    def holds(self):
        if hasattr(self, "index"):
            for index, model in [(self.index, self.model), *self.readers, *self.stale]:
                check_holds(index, model)


@forked_threads
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # what an interrupt left open is closed
@pytest.mark.parametrize(
    ("on_disk", "keeps"),
    [(True, None), (False, None), (True, "text"), (False, "text"), (True, "integer"), (True, "columns")],
)
def test_an_index_is_a_dictionary(on_disk: bool, keeps: str | None) -> None:
    machine = type("Machine", (Machine,), {"on_disk": on_disk, "keeps": keeps})
    run_state_machine_as_test(
        machine,
        settings=settings(
            deadline=None,
            max_examples=80 if keeps is None else 40,
            stateful_step_count=25,
            suppress_health_check=list(HealthCheck),
        ),
    )
