"""Connecting to Ray, where Ray fails: played, since it does so at random."""

from typing import Any

import pytest

from antisparse.cluster import engine
from antisparse.errors import ClusterError


class Failing:
    """Ray, of which connecting fails a few times."""

    def __init__(self, failures: list[Exception]) -> None:
        self.failures, self.calls = failures, 0

    def init(self, **_: Any) -> None:
        self.calls += 1
        if self.failures:
            raise self.failures.pop(0)

    def is_initialized(self) -> bool:
        return False

    def shutdown(self) -> None: ...


def connected(monkeypatch: pytest.MonkeyPatch, failures: list[Exception]) -> Failing:
    ray = Failing(failures)
    monkeypatch.setattr(engine, "ray_module", lambda: ray)
    with engine.Connection("ray://host:10001"):
        pass
    return ray


def not_started() -> Exception:
    return ConnectionAbortedError("RuntimeError: Starting Ray client server failed. See ray_client_server_23000.err")


def test_a_process_for_the_client_that_did_not_start_is_asked_for_again(monkeypatch: pytest.MonkeyPatch) -> None:
    assert connected(monkeypatch, [not_started(), not_started()]).calls == 3


@pytest.mark.parametrize("failures", [[not_started() for _ in range(3)], [ConnectionError("no one listens")]])
def test_a_cluster_that_is_not_there(monkeypatch: pytest.MonkeyPatch, failures: list[Exception]) -> None:
    said = str(failures[-1])
    with pytest.raises(ClusterError, match=r"address = 'ray://host:10001': the cluster cannot be reached") as caught:
        connected(monkeypatch, failures)
    assert said in str(caught.value) and not failures
