import tempfile
from contextlib import suppress
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
    fitted,
)
from zoo import methods

from antisparse import Index, InputError, UnsupportedError

picks = st.lists(st.integers(0, len(POOL) - 1), max_size=12) | st.integers(20, 70).map(lambda n: list(range(n)))
seeds = st.integers(0, 2**32 - 1)
ways = st.sampled_from(["default", "own", "codes", "iterator"])


class Failure(Exception):
    pass


class Machine(RuleBasedStateMachine):
    """An index and a dictionary, changed alike; readers, each with the dictionary of when it was opened."""

    on_disk = True

    @initialize(name=st.sampled_from(NAMES), metric=st.sampled_from(METRICS))
    def begin(self, name, metric):
        self.folder = tempfile.TemporaryDirectory()
        self.path = Path(self.folder.name) / "index" if self.on_disk else None
        self.model = Model(name, metric)
        self.index = Index.create(self.path, fitted(name, metric))
        self.readers = []

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
        ids = random.permutation(np.setdiff1d(np.arange(4000), model.ids))[: len(X)]
        if way == "default":
            ids = model.next_id + np.arange(len(X))
            returned = self.index.add(X)
        elif way == "own":
            returned = self.index.add(X, ids)
        elif way == "codes":
            returned = self.index.add_codes(model.encode(X), ids.astype(np.uint16))
        else:
            returned = self.index.add((X[at : at + 5] for at in range(0, len(X), 5)), ids.tolist())
        assert returned.dtype == np.int64
        np.testing.assert_array_equal(returned, ids)
        model.put(model.encode(X), ids)

    def do_update(self, model, ids, seed):
        X = np.random.default_rng(seed).permutation(POOL)[: len(ids)]
        self.index.update(X, ids)
        model.put(model.encode(X), ids)

    def do_remove(self, model, ids):
        self.index.remove(ids)
        model.drop(ids)

    @rule(picked=picks, way=ways, seed=seeds)
    def add(self, picked, way, seed):
        self.do_add(self.model, picked, way, seed)

    @rule(seed=seeds)
    def update(self, seed):
        self.do_update(self.model, self.some(seed), seed)

    @rule(seed=seeds, most=st.sampled_from([3, 12, 100]))
    def remove(self, seed, most):
        self.do_remove(self.model, self.some(seed, most))

    @rule(parts=st.lists(st.tuples(picks, ways, seeds, st.integers(0, 2)), max_size=5), fails=st.booleans())
    def batch(self, parts, fails):
        model = self.model.copy()
        with suppress(Failure), self.index.batch():
            for picked, way, seed, kind in parts:
                if kind == 0:
                    self.do_add(model, picked, way, seed)
                ids = np.random.default_rng(seed).permutation(model.ids)[:5]
                if kind == 1:
                    self.do_update(model, ids, seed)
                elif kind == 2:
                    self.do_remove(model, ids)
            check_holds(self.index, self.model)  # not yet
            if fails:
                raise Failure
            self.model = model

    @rule(seed=seeds)
    def refused(self, seed):
        there, X = self.some(seed), POOL[:12]
        nowhere = 5000 + int(self.model.next_id)
        for ids in ([*there, nowhere], [nowhere]):
            with pytest.raises(InputError, match="is not in the index"):
                self.index.remove(ids)
            with pytest.raises(InputError, match="is not in the index"):
                self.index.update(POOL[: len(ids)], ids)
        if len(there):
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
        for options in ({"method": "hamming"}, {"method": "asymmetric"}, {"shortlist": 10}):
            with pytest.raises(UnsupportedError, match=r"different means|no signs to compare"):
                index.search(QUERIES, 2, **options)
        check_probes(index, model, probes)

    @invariant()
    def holds(self):
        if hasattr(self, "index"):
            for index, model in [(self.index, self.model), *self.readers]:
                check_holds(index, model)


@pytest.mark.parametrize("on_disk", [True, False])
def test_an_index_is_a_dictionary(on_disk: bool) -> None:
    machine = type("Machine", (Machine,), {"on_disk": on_disk})
    run_state_machine_as_test(
        machine,
        settings=settings(
            deadline=None, max_examples=80, stateful_step_count=25, suppress_health_check=list(HealthCheck)
        ),
    )
