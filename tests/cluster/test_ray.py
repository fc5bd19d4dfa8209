"""Ray itself, three nodes on one machine: workers, nodes, drivers and shards that are killed. `make test-cluster`."""

import json
import os
import pickle
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from lake import assert_equal_answers, assert_equal_indexes, codec, vectors, write_lake
from running import service

from antisparse import ClusterError, FormatError, Index, InputError, InputTypeError, StorageError, UnsupportedError
from antisparse.cli import main
from antisparse.client import Client
from antisparse.cluster import RayEngine, ShardedIndex, build
from antisparse.index import commit, stage

if os.environ.get("ANTISPARSE_CLUSTER") is None or find_spec("ray") is None:
    pytest.skip("Ray: `make test-cluster` runs these", allow_module_level=True)

import psutil
import ray
from ray.cluster_utils import Cluster

ROWS, FILES, UNIT = 200_000, 8, 5000
Q = vectors(50, 5)
pytestmark = pytest.mark.filterwarnings(
    "ignore::ResourceWarning", "ignore::DeprecationWarning", "ignore::FutureWarning"
)

DRIVER = """
import sys
from antisparse.cluster import RayEngine, build
source, path, codec, address, unit = sys.argv[1:]
from antisparse import Codec
built = build(source, path, codec=Codec.load(codec), unit_rows=int(unit), key="key", columns=["year"],
              engine=RayEngine(address, in_flight=6))
print(built.vectors, built.resumed)
"""


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    """Three nodes."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    head = {"num_cpus": 1, "include_dashboard": False, "ray_client_server_port": port}
    made = Cluster(initialize_head=True, head_node_args=head)
    made.client = f"ray://127.0.0.1:{port}"
    try:
        for _ in range(2):
            made.add_node(num_cpus=1)
        made.wait_for_nodes()
        ray.init(address=made.address, log_to_driver=False)
        yield made
    finally:
        ray.shutdown()
        made.shutdown()


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("lake") / "files"
    write_lake(folder, ROWS, FILES, UNIT)
    codec().save(folder.parent / "codec.safetensors")
    return folder


@pytest.fixture(scope="module")
def one(lake: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What one process builds."""
    path = tmp_path_factory.mktemp("one") / "index"
    build(lake, path, codec=codec(), unit_rows=UNIT, key="key", columns=["year"], engine=map)
    with Index.open(path, read_only=True) as index, Index.create(None, codec()) as added:
        added.add(lake, vector="vector")
        assert_equal_answers(index, added, Q)
    return path


def driver(lake: Path, path: Path, cluster: Cluster) -> subprocess.Popen:
    words = [str(lake), str(path), str(lake.parent / "codec.safetensors"), cluster.address, str(UNIT)]
    return subprocess.Popen([sys.executable, "-W", "ignore", "-c", DRIVER, *words], stdout=subprocess.PIPE, text=True)


def until(what: Callable[[], Any], seconds: float = 120.0) -> Any:
    """What a function gives as soon as it gives something."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if found := what():
            return found
        time.sleep(0.005)
    raise AssertionError("it did not come to pass")


def notes(path: Path) -> list[str]:
    """The units that are done."""
    try:
        return [name for name in os.listdir(path / "staged") if name.count("-") == 2 and name.startswith("note-")]
    except FileNotFoundError:
        return []


def workers(title: str) -> list[int]:
    """The processes of Ray that are at some work."""
    found = []
    for process in psutil.process_iter(["cmdline", "pid"]):
        if (process.info["cmdline"] or [""])[0].startswith(title):
            found.append(process.info["pid"])
    return found


def ended(process: subprocess.Popen) -> list[str]:
    out = process.communicate(timeout=240)[0]
    assert process.returncode == 0
    return out.splitlines()[-1].split()  # Ray says before it which workers died


def test_workers_that_are_killed(cluster: Cluster, lake: Path, one: Path, tmp_path: Path) -> None:
    process, killed = driver(lake, tmp_path / "index", cluster), 0
    for done in (3, 8, 15):
        until(lambda done=done: len(notes(tmp_path / "index")) >= done)
        pid = until(lambda: workers("ray::_run"))[0]
        os.kill(pid, signal.SIGKILL)
        killed += process.poll() is None
    assert killed == 3 and ended(process) == [str(ROWS), "0"]
    assert_equal_indexes(tmp_path / "index", one, Q)


def test_a_node_that_is_removed(cluster: Cluster, lake: Path, one: Path, tmp_path: Path) -> None:
    node = cluster.add_node(num_cpus=1)
    cluster.wait_for_nodes()
    process = driver(lake, tmp_path / "index", cluster)
    until(lambda: len(notes(tmp_path / "index")) >= 5)
    assert process.poll() is None
    cluster.remove_node(node, allow_graceful=False)
    assert ended(process) == [str(ROWS), "0"]
    assert_equal_indexes(tmp_path / "index", one, Q)


def test_a_driver_that_is_killed_and_started_again(cluster: Cluster, lake: Path, one: Path, tmp_path: Path) -> None:
    path, resumed = tmp_path / "index", 0
    for done in (4, 12):
        process = driver(lake, path, cluster)
        until(lambda done=done: len(notes(path)) >= done)
        process.kill()
        process.communicate()
        assert len(Index.open(path, read_only=True)) == 0  # until the commit
        resumed = len(notes(path))
        assert resumed < ROWS // UNIT
    until(lambda: not workers("ray::_run"))
    resumed = len(notes(path))
    assert ended(driver(lake, path, cluster)) == [str(ROWS), str(resumed)]
    assert_equal_indexes(path, one, Q)


def test_a_codec_that_is_learned_there(cluster: Cluster, lake: Path, tmp_path: Path) -> None:
    built = build(lake, tmp_path / "index", 6, train=5000, effort=1, unit_rows=50_000)
    here = build(lake, tmp_path / "here", 6, train=5000, effort=1, unit_rows=50_000, engine=map)
    assert built.codec == here.codec and built.vectors == ROWS
    assert_equal_indexes(tmp_path / "index", tmp_path / "here", Q)


def test_errors_of_tasks_are_as_they_were_raised(cluster: Cluster, lake: Path, tmp_path: Path) -> None:
    with pytest.raises(InputTypeError, match=r"part-\d\.parquet, rows from \d+: column 'key' is of type string"):
        build(lake, tmp_path / "index", codec=codec(), vector="key")

    def fails(value: int) -> int:
        if value == 3:
            raise ZeroDivisionError("of three")
        if value == 4:
            os._exit(1)
        return value

    assert sorted(RayEngine()(fails, range(3))) == [0, 1, 2]
    with pytest.raises(ClusterError, match="a task failed: ZeroDivisionError: of three"):
        list(RayEngine()(fails, [1, 3]))
    with pytest.raises(ClusterError, match="a task could not be done: WorkerCrashedError"):
        list(RayEngine(max_retries=1)(fails, [4]))
    with pytest.raises(InputError, match="in_flight"):
        RayEngine(in_flight=0)
    with pytest.raises(InputTypeError, match="address must be text"):
        RayEngine(5)
    with pytest.raises(ClusterError, match="a task takes 64 CPUs, and no machine"):
        list(RayEngine(cpus=64)(fails, [1]))


def test_tasks_are_in_flight_a_few_at_a_time(cluster: Cluster, tmp_path: Path) -> None:
    def counted(value: int) -> int:
        place = tmp_path / str(value)
        place.touch()
        time.sleep(0.05)
        count = len(os.listdir(tmp_path))
        place.unlink()
        return count

    assert max(RayEngine(cpus=0.1, in_flight=2)(counted, range(12))) == 2


def test_the_command(cluster: Cluster, lake: Path, tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    words = ["cluster", "build", str(lake), "-o", str(tmp_path / "index"), "--bytes", "6", "--train", "2000"]
    assert main([*words, "--effort", "1", "--address", cluster.address, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["vectors"] == ROWS


def test_the_command_from_outside_of_the_cluster(cluster: Cluster, tmp_path: Path) -> None:
    """By Ray Client, which is a way of its own: of a build and of shards."""
    write_lake(tmp_path / "lake", 3000, 3, 500)
    build(tmp_path / "lake", tmp_path / "here", 6, train=1000, effort=1, key="key", engine=map)
    words = [
        "cluster",
        "build",
        str(tmp_path / "lake"),
        "-o",
        str(tmp_path / "index"),
        "--bytes",
        "6",
        "--train",
        "1000",
    ]
    words += ["--effort", "1", "--key", "key", "--address", cluster.client]
    subprocess.run([sys.executable, "-W", "ignore", "-m", "antisparse", *words], check=True, timeout=240)
    assert_equal_indexes(tmp_path / "index", tmp_path / "here", Q)
    with (
        service(tmp_path / "index", "--shards", "2", "--address", cluster.client, "--quiet") as served,
        Index.open(tmp_path / "index", read_only=True) as index,
        Client(served.url) as client,
    ):
        assert equal(client.search(Q, 10), index.search(Q, 10))


def pids(index: ShardedIndex) -> list[int]:
    return ray.get([shard.__ray_call__.remote(lambda self: os.getpid()) for shard in index._shards])


WAYS: list[dict[str, Any]] = [
    {},
    {"method": "hamming"},
    {"method": "asymmetric"},
    {"shortlist": 40},
    {"filter": "year < 20"},
    {"filter": [f"key {i}" for i in range(0, 5000, 3)]},
    {"items": True},
]


def equal(found: Any, wanted: Any) -> bool:
    if isinstance(wanted, tuple):
        return all(np.array_equal(one, other) for one, other in zip(found, wanted, strict=True))
    return found.equals(wanted)


def test_shards_answer_as_one_process_does(cluster: Cluster, one: Path) -> None:
    with Index.open(one, read_only=True) as index, ShardedIndex(one, shards=3, cpus=0.5) as sharded:
        for way in WAYS:
            assert equal(sharded.search(Q, 10, **way), index.search(Q, 10, **way))
        many = vectors(3000, 9)  # travels apart from the call
        assert equal(sharded.search(many, 5), index.search(many, 5))
        assert equal(sharded.range_search(Q[:3], 5.0), index.range_search(Q[:3], 5.0))
        assert equal(sharded.search(Q[:3], 5, rerank=vectors(ROWS)), index.search(Q[:3], 5, rerank=vectors(ROWS)))
        assert sharded.items(["key 7", "key 199999"]).equals(index.items(["key 7", "key 199999"]))
        np.testing.assert_array_equal(sharded.reconstruct(["key 8"]), index.reconstruct(["key 8"]))
        assert "key 9" in sharded and "none" not in sharded and len(sharded) == ROWS and "3 shards" in repr(sharded)
        with pytest.raises(InputError, match="key 'none' is not in the index"):
            sharded.codes(["none"])
        with pytest.raises(InputError, match="Q contains NaN"):
            sharded.search(Q * np.nan)
        another = ShardedIndex(one, shards=1, cpus=0.2)
        another.close()
        assert equal(sharded.search(Q[:2], 3), index.search(Q[:2], 3))
        with pytest.raises(UnsupportedError, match="shards are not pickled"):
            pickle.dumps(sharded)
    for deed in (lambda: sharded.search(Q), sharded.refresh):
        with pytest.raises(ClusterError, match="the index is closed"):
            deed()
    with pytest.raises(FormatError, match="is not an index"):
        ShardedIndex(one.parent)
    with pytest.raises(ClusterError, match="a shard takes 50 CPUs, and no machine of the cluster has more than 1"):
        ShardedIndex(one, shards=1, cpus=50)
    with pytest.raises(ClusterError, match="9 times a shard of 1 CPUs take 9, and the cluster has 3; take fewer"):
        ShardedIndex(one, shards=9, cpus=1)
    with pytest.raises(ClusterError, match="within 2 seconds; the cluster may be too small for 4 shards"):
        ShardedIndex(one, shards=4, cpus=0.7, timeout=2)  # each machine has room for one
    with pytest.raises(InputTypeError, match="address must be text"):
        ShardedIndex(one, address=5)


def test_a_service_of_shards(cluster: Cluster, one: Path) -> None:
    words = ("--shards", "2", "--address", cluster.address, "--quiet")
    with Index.open(one, read_only=True) as index, service(one, *words) as served, Client(served.url) as client:
        for way in WAYS[:5]:
            assert equal(client.search(Q, 10, **way), index.search(Q, 10, **way))
        assert client.item("key 7") == index.items(["key 7"]).to_pylist()[0]
        assert client.info()["vectors"] == ROWS


def test_shards_that_do_not_come_back(cluster: Cluster, one: Path) -> None:
    with ShardedIndex(one, shards=2, cpus=0.2) as sharded:
        sharded.timeout = 3  # from now on: to start may take longer where others are at work
        ray.kill(sharded._shards[0])
        begun = time.monotonic()
        with pytest.raises(ClusterError, match="shard 0 did not come back within 3 seconds"):
            sharded.search(Q)
        assert time.monotonic() - begun < 10
        stop = threading.Timer(0.5, sharded.close)
        stop.start()
        with pytest.raises(ClusterError, match="closed"):
            sharded.search(Q)
        stop.join()


def test_a_refresh_beside_a_writer_that_compacts(cluster: Cluster, tmp_path: Path) -> None:
    path, X = tmp_path / "index", vectors(2000, 3)
    with Index.create(path, codec()) as index:
        index.add(X)
        with ShardedIndex(path, shards=2, cpus=0.2) as sharded:
            stop, errors = threading.Event(), []

            def write() -> None:
                while not stop.is_set():
                    index.add(X[:50])
                    index.compact()

            thread = threading.Thread(target=write)
            thread.start()
            try:
                for _ in range(60):
                    try:
                        sharded.refresh()
                    except StorageError as error:  # it changes faster than it can be opened
                        errors.append(error)
            finally:
                stop.set()
                thread.join()
            assert len(errors) < 5
            sharded.refresh()
            assert equal(sharded.search(Q, 10), index.search(Q, 10))


def test_the_examples_of_the_page(cluster: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    write_lake(tmp_path / "lake", 3000, 3, 500)
    page = (Path(__file__).parents[2] / "docs" / "cluster.md").read_text()
    namespace: dict[str, Any] = {"Q": Q}
    for block in re.findall(r"^```python\n(.*?)^```", page, re.DOTALL | re.MULTILINE):
        exec(block, namespace)
    assert namespace["built"].vectors == 3000 and namespace["ids"].shape == (50, 10)


def test_shards_that_are_killed_under_load(cluster: Cluster, one: Path) -> None:
    """Every answer is right, or an error; none takes longer than was said."""
    with Index.open(one, read_only=True) as index:
        wanted = [index.search(Q[i : i + 5], 10) for i in range(0, 50, 5)]
    with ShardedIndex(one, shards=3, cpus=0.3, timeout=30) as sharded:
        stop, outcomes, slowest = threading.Event(), {"right": 0, "wrong": 0, "error": 0}, [0.0]

        def ask(number: int) -> None:
            turn = number
            while not stop.is_set():
                turn = (turn + 1) % 10
                begun = time.monotonic()
                try:
                    right = equal(sharded.search(Q[5 * turn : 5 * turn + 5], 10), wanted[turn])
                    outcomes["right" if right else "wrong"] += 1
                except ClusterError:
                    outcomes["error"] += 1
                slowest[0] = max(slowest[0], time.monotonic() - begun)

        threads = [threading.Thread(target=ask, args=(number,)) for number in range(4)]
        for thread in threads:
            thread.start()
        try:
            for turn in range(4):
                before = outcomes["right"]
                until(lambda before=before: outcomes["right"] > before + 20)
                os.kill(pids(sharded)[turn % 3], signal.SIGKILL)
        finally:
            stop.set()
            for thread in threads:
                thread.join()
        assert outcomes["wrong"] == 0 and outcomes["right"] > 80 and outcomes["error"] <= 4 * 4
        assert slowest[0] < 31
        assert all(equal(sharded.search(Q[5 * i : 5 * i + 5], 10), wanted[i]) for i in range(10))


def test_answers_are_of_one_state_while_the_index_changes(cluster: Cluster, tmp_path: Path) -> None:
    path, X = tmp_path / "index", vectors(4000, 3)
    Index.create(path, codec()).close()
    commit(path, [stage(path, X[:2000], np.arange(2000)), stage(path, X[2000:], np.arange(2000, 4000))])
    known: list[tuple] = []

    def remember() -> None:
        with Index.open(path, read_only=True) as index:
            known.append(index.search(Q, 10))

    remember()
    with ShardedIndex(path, shards=3, cpus=0.3) as sharded:
        stop, wrong, count = threading.Event(), [], [0]

        def ask() -> None:
            while not stop.is_set():
                found = sharded.search(Q, 10)
                count[0] += 1
                if not any(equal(found, one) for one in known):
                    wrong.append(found)

        threads = [threading.Thread(target=ask) for _ in range(3)]
        for thread in threads:
            thread.start()
        try:
            for turn in range(12):
                with Index.open(path) as index:
                    if turn % 4 == 3:
                        index.compact()
                    else:
                        near = sharded.search(Q, 1)[1][:, 0]
                        index.remove(np.unique(near)[:20])
                        index.add(X[turn * 10 : turn * 10 + 50] + 0.01)
                remember()
                before = count[0]
                sharded.refresh()
                until(lambda before=before: count[0] > before + 5)
        finally:
            stop.set()
            for thread in threads:
                thread.join()
        assert not wrong and count[0] > 60
        assert equal(sharded.search(Q, 10), known[-1])
        # A shard that is started anew when the files of its state are gone says so.
        with Index.open(path) as index:
            index.add(X[:5])
            index.compact()
        remember()
        for pid in pids(sharded):
            os.kill(pid, signal.SIGKILL)
        with pytest.raises(ClusterError, match=r"a file of its state is gone since .*; call refresh\(\)"):
            sharded.search(Q, 10)
        sharded.refresh()
        assert equal(sharded.search(Q, 10), known[-1])
