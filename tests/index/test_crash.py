import errno
import os
import shutil
import signal
import time

import numpy as np
import pytest
from models import NAMES, POOL, Model, check_holds, check_search, fitted, forked_threads, forks, same_items

from antisparse import Index, InputError, StorageError
from antisparse import _files as files
from antisparse.index.manifest import read_manifest

CRASHES = int(os.environ.get("ANTISPARSE_CRASHES", "60"))
# Floats of scales, bias byte, cells with a scale byte, a nibble that changes with the cell.
CODECS = ("spread", "signs", "signs cells scale", "codebooks cells nibble")
# With items, too: keys that are text, keys that are the ids, and no keys.
CASES = (*((name, None) for name in CODECS), ("signs", "text"), ("signs cells scale", "integer"), ("spread", "columns"))
pytestmark = [forks, forked_threads]


def in_parts(model, index, X, ids):
    """Add vectors with ids by an iterator, where that can be."""
    cuts, codes = (slice(3), slice(3, None)), model.encode(X)
    if model.keeps is None:
        index.add(iter([X[cut] for cut in cuts]), ids)
    elif model.keeps == "columns":
        model.add(index, X, ids)
    else:
        index.add(model.table(X[cut], ids[cut], codes[cut]) for cut in cuts)


def operations(seed, model):
    """Endless changes of an index: the kind of each, a function of the index, the model after it."""
    random = np.random.default_rng(seed)
    while True:
        own, before, model = model.copy(), model, model.copy()
        kind = random.choice(["add", "add", "own", "batch", "update", "remove", "compact"])
        X = POOL[random.integers(len(POOL), size=random.integers(1, 60))]
        ids = random.permutation(model.ids)[: random.integers(1, 20)]
        if kind in ("update", "remove") and not len(ids):
            kind = "add"
        if kind == "add":
            model.put(model.encode(X), model.next_id + np.arange(len(X)))
            yield kind, lambda index, X=X, own=own: own.add(index, X), model
        elif kind == "own":
            free = random.permutation(np.setdiff1d(np.arange(6000), model.ids))[: len(X)]  # more than are ever there
            free = before.own_ids(free)
            model.put(model.encode(X), free)
            yield kind, lambda index, X=X, free=free, own=own: in_parts(own, index, X, free), model
        elif kind == "update":
            Y = POOL[random.integers(len(POOL), size=len(ids))]
            model.put(model.encode(Y), ids)
            yield kind, lambda index, Y=Y, ids=ids, own=own: own.update(index, Y, ids), model
        elif kind == "remove":
            model.drop(ids)
            yield kind, lambda index, ids=ids, own=own: own.remove(index, ids), model
        elif kind == "compact":
            yield kind, lambda index: index.compact(), model
        else:
            model.drop(ids)
            new = model.next_id + np.arange(len(X))
            model.put(model.encode(X), new)

            def batch(index, X=X, ids=ids, new=new, own=own):
                with index.batch():
                    own.remove(index, ids)
                    own.add(index, X, new)

            yield kind, batch, model


def killed_writer(path, seed, model, delay):
    """The number of operations that a process acknowledged before it was killed, and whether it failed."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            index = Index.open(path)
            os.write(writing, b"o")
            for _, operation, _ in operations(seed, model):
                operation(index)
                os.write(writing, b".")
        finally:  # nothing of the test runs twice
            os.write(writing, b"x")
            os._exit(1)
    os.close(writing)
    assert os.read(reading, 1) == b"o"
    time.sleep(delay)
    os.kill(child, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    said = b""
    while data := os.read(reading, 1 << 16):
        said += data
    os.close(reading)
    assert os.WIFSIGNALED(status) and b"x" not in said
    return len(said)


def same(index, model):
    return (
        np.array_equal(index.ids, model.ids)
        and np.array_equal(index.codes(model.ids), model.codes(model.ids))
        and same_items(index, model)
    )


def strays(path):
    return set(os.listdir(path)) - {"manifest.json", ".lock", *read_manifest(path).files()}


@pytest.mark.parametrize(("name", "keeps"), CASES)
def test_a_killed_writer_loses_nothing_and_leaves_nothing_half(tmp_path, name: str, keeps: str | None) -> None:
    path, random = tmp_path / "index", np.random.default_rng(CRASHES)
    model = Model(name, keeps=keeps)
    model.create(path, n_threads=1).close()
    outcomes = [0, 0]
    for seed in range(CRASHES // len(CODECS)):
        if len(model.rows) > 3000:
            with Index.open(path) as index:
                index.remove(model.ids)
            model.drop(model.ids)
        done = killed_writer(path, seed, model, random.uniform(0, 0.1))
        changes = operations(seed, model)
        for _ in range(done):
            model = next(changes)[2]
        after = next(changes)[2]
        with Index.open(path, verify=True) as index:
            index.verify()
            happened = not same(index, model)
            outcomes[happened] += 1
            model = after if happened else model
            check_holds(index, model)
            assert index.snapshot.next_id == model.next_id
            if seed % 10 == 0:
                check_search(index, model)
            model.add(index, POOL[:1])  # which also cleans up
        assert not strays(path)
    assert outcomes[0] > 0


KINDS = ("one", "all", "interrupt")


class FailingOS:
    """The module `os`, whose `turn`-th call that opens, writes, waits or renames fails, or all from it on."""

    def __init__(self, turn, kind):
        self.turn, self.kind, self.calls = turn, kind, 0

    def __getattr__(self, name):
        real = getattr(os, name)
        if name not in ("open", "write", "fsync", "replace"):
            return real

        def call(*arguments):
            self.calls += 1
            if self.calls == self.turn or (self.calls > self.turn and self.kind == "all"):
                if self.kind == "interrupt":  # during the call, which is done
                    done = real(*arguments)
                    if name == "open":
                        os.close(done)
                    raise KeyboardInterrupt
                if name == "write":  # some of it
                    real(arguments[0], arguments[1][: len(arguments[1]) // 2])
                raise OSError(errno.EACCES if name == "open" else errno.ENOSPC, "no")
            return real(*arguments)

        return call


@pytest.fixture(scope="module")
def held(tmp_path_factory):
    """Makes an index of seven segments with deletions, so that the next add makes them one."""
    templates = {}

    def make(path, keeps=None):
        if keeps not in templates:
            templates[keeps] = tmp_path_factory.mktemp("held") / "index", Model("spread", keeps=keeps)
            template, model = templates[keeps]
            with model.create(template) as index:
                for _ in range(7):
                    model.add(index, POOL[:5])
                model.remove(index, [3, 7])
        template, model = templates[keeps]
        shutil.copytree(template, path)
        return Index.open(path), model.copy()

    return make


def batched(index, model):
    with index.batch():
        new = model.own_ids(np.arange(100, 109))
        model.add(index, POOL[:9], new)
        model.remove(index, [0, 1, new[0]])


# Each of an index and its model, which is changed too.
OPERATIONS = {
    "add": lambda index, model: model.add(index, POOL[:4]),
    "remove": lambda index, model: model.remove(index, [4, 5, 30]),
    "update": lambda index, model: model.update(index, POOL[90:92], [4, 9]),
    "compact": lambda index, model: index.compact(),
    "batch": batched,
    "everything": lambda index, model: model.remove(index, model.ids),
}


@pytest.mark.parametrize(
    ("name", "kind", "keeps"),
    [
        *((name, "one", None) for name in OPERATIONS),
        *((name, kind, None) for name in ("batch", "compact", "everything") for kind in KINDS[1:]),
        *((name, "one", "text") for name in ("add", "update", "batch")),
        *(("batch", kind, "text") for kind in KINDS[1:]),
    ],
)
def test_every_call_of_the_system_may_fail(
    tmp_path, monkeypatch: pytest.MonkeyPatch, held, name: str, kind: str, keeps: str | None
) -> None:
    turn = failed = 0
    typed = KeyboardInterrupt if kind == "interrupt" else StorageError
    done, before = held(tmp_path / "done", keeps)
    with done:
        OPERATIONS[name](done, before.copy())
        rows = dict(zip(done.ids, done.codes(done.ids), strict=True))
        after = Model("spread", "l2", rows, done.snapshot.next_id, keeps)
    while failed == turn:
        turn += 1
        path = tmp_path / str(turn)
        index, model = held(path, keeps)
        expected = index.search(POOL[:3], 9)
        with monkeypatch.context() as patch:
            patch.setattr(files, "os", FailingOS(turn, kind))
            try:
                OPERATIONS[name](index, model.copy())
            except typed:
                failed += 1
        if failed < turn:
            check_holds(index, after)
            break
        with Index.open(path, read_only=True, verify=True) as reader:
            if kind == "one":
                assert not strays(path)
            if kind == "one" or same(reader, before):  # as it was
                for found, wanted in zip(index.search(POOL[:3], 9), expected, strict=True):
                    np.testing.assert_array_equal(found, wanted)
            else:  # only the name of the manifest was not yet safe
                model = after.copy()
                assert turn > 3
            check_holds(reader, model)
            check_holds(index, model)  # what is on the disk is what there is
        first = model.next_id
        assert model.add(index, POOL[:2])[0] == first
        assert not strays(path)
        index.close()
        with Index.open(path, verify=True) as again:
            check_holds(again, model)
            check_search(again, model)
    assert turn > (6 if name == "everything" else 8)


@pytest.mark.parametrize("kind", KINDS)
def test_a_failed_creation_can_be_done_again(tmp_path, monkeypatch: pytest.MonkeyPatch, kind: str) -> None:
    turn = failed = 0
    while failed == turn:
        turn += 1
        path = tmp_path / str(turn)
        with monkeypatch.context() as patch:
            patch.setattr(files, "os", FailingOS(turn, kind))
            try:
                Index.create(path, fitted("spread")).close()
            except (StorageError, KeyboardInterrupt):
                failed += 1
        if failed == turn and not (path / "manifest.json").exists():
            Index.create(path, fitted("spread")).close()
        with Index.open(path, verify=True) as index:
            assert len(index.add(POOL[:3])) == 3
        assert not strays(path)
    assert turn > 8


@pytest.mark.parametrize(
    ("name", "kind", "keeps"),
    [
        *((name, "one", None) for name in CODECS),
        *(("signs cells scale", kind, None) for kind in KINDS[1:]),
        *(("signs", kind, "text") for kind in KINDS[:2]),
    ],
)
def test_an_index_is_saved_whole_or_not_at_all(
    tmp_path, monkeypatch: pytest.MonkeyPatch, name: str, kind: str, keeps: str | None
) -> None:
    model = Model(name, keeps=keeps)
    index = model.create(None)
    for part in (POOL[:60], POOL[60:70]):
        model.add(index, part)
    model.remove(index, [3, 65])
    turn = failed = 0
    while failed == turn:
        turn += 1
        path = tmp_path / str(turn)
        with monkeypatch.context() as patch:
            patch.setattr(files, "os", FailingOS(turn, kind))
            try:
                index.save(path)
            except (StorageError, KeyboardInterrupt):
                failed += 1
        if failed == turn and not (path / "manifest.json").exists():
            index.save(path)
        with Index.open(path, verify=True) as opened:
            check_holds(opened, model)
            assert opened.snapshot.next_id == 70
            if failed < turn:
                check_search(opened, model)
        if failed == turn:
            with Index.open(path) as opened:
                model.copy().add(opened, POOL[:1])
        assert not strays(path)
    assert turn > 12


@pytest.mark.parametrize("keeps", [None, "text", "integer"])
def test_an_operation_that_fails_in_a_batch_may_be_passed_over(
    tmp_path, monkeypatch: pytest.MonkeyPatch, held, keeps: str | None
) -> None:
    index, model = held(tmp_path / "index", keeps)
    with index.batch():
        model.add(index, POOL[:2])
        with monkeypatch.context() as patch:
            patch.setattr(files, "os", FailingOS(2, "all"))
            with pytest.raises(StorageError, match="could not be written"):
                model.copy().remove(index, [0])
        with pytest.raises(InputError, match="is there already"):
            Model("spread", next_id=35, keeps=keeps).add(index, POOL[:2], [35, 36])
        model.add(index, POOL[2:4])
    assert model.ids[-4:].tolist() == [35, 36, 37, 38]
    check_holds(index, model)
    index.verify()


def test_a_system_that_writes_a_little_at_a_time(tmp_path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = os.write
    monkeypatch.setattr(files.os, "write", lambda descriptor, data: real(descriptor, data[:100]))
    for name in NAMES:
        model = Model(name)
        with Index.create(tmp_path / name, model.codec) as index:
            model.put(model.encode(POOL), index.add(POOL))
        with Index.open(tmp_path / name, verify=True) as index:
            check_holds(index, model)


class RecordingOS:
    """The module `os`, which writes down what is brought to the disk, and in which order."""

    def __init__(self):
        self.events = []

    def __getattr__(self, name):
        real = getattr(os, name)
        if name == "fsync":
            return lambda descriptor: (self.events.append(("sync", os.fstat(descriptor).st_ino)), real(descriptor))
        if name == "replace":
            return lambda source, target: (self.events.append(("name", target.name)), real(source, target))
        return real


@pytest.mark.parametrize("keeps", [None, "text"])
@pytest.mark.parametrize("name", [*OPERATIONS, "save"])
def test_what_a_manifest_names_is_on_the_disk_before_it(
    tmp_path, monkeypatch: pytest.MonkeyPatch, held, name: str, keeps: str | None
) -> None:
    """What a loss of power may take is what was not yet synced: never a file that the manifest on the disk names."""
    path = tmp_path / "index"
    index, model = held(path, keeps)
    before = set(os.listdir(path))
    recorder = RecordingOS()
    with monkeypatch.context() as patch:
        patch.setattr(files, "os", recorder)
        if name == "save":
            before, path = set(), tmp_path / "copy"
            index.save(path)
        else:
            OPERATIONS[name](index, model)
    events, folder = recorder.events, ("sync", os.stat(path).st_ino)
    change = events.index(("name", "manifest.json"))
    new = set(read_manifest(path).files()) - before
    assert new or name == "everything"
    assert any(file.startswith("items-") for file in new) or keeps is None or name in ("remove", "everything")
    named = [events.index(("name", file)) for file in new]
    for file, at in zip(new, named, strict=True):
        assert ("sync", os.stat(path / file).st_ino) in events[:at]  # its bytes before its name
    assert folder in events[max(named, default=0) : change]  # all names before the change
    assert ("sync", os.stat(path / "manifest.json").st_ino) in events[:change]
    assert folder in events[change:]  # and the change before it is acknowledged
    index.close()
