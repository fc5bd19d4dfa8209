"""Ray as the engine of builds: tasks that are run again where machines or workers die, a bounded number at a time."""

import logging
import threading
from collections.abc import Callable, Iterator, Sequence
from types import TracebackType
from typing import Any, Self, TypeVar

from antisparse._arrays import integer, nonnegative, shown
from antisparse.errors import AntisparseError, ClusterError, InputTypeError, MissingDependencyError, StorageError

T = TypeVar("T")
R = TypeVar("R")

_RETRIES = 3
_CONNECTION_TRIES = 3
# Ray starts a process for each client of ray://, which now and then dies at once; the next one lives.
_NOT_STARTED = "Starting Ray client server failed"
_AHEAD = 2  # tasks in flight for every one that runs


def ray_module() -> Any:
    """Ray, which is imported when it is needed."""
    try:
        import ray
    except ImportError:
        raise MissingDependencyError(
            "many machines need Ray: pip install 'antisparse[ray]'; or pass engine=, which may be map"
        ) from None
    return ray


class RayEngine:
    """Tasks on a Ray cluster.

    Parameters
    ----------
    address : str, optional
        The cluster, such as "ray://host:10001" or "auto"; by default the one that this process is connected to, or
        one that is started on this machine.
    cpus : float
        CPUs of a task.
    max_retries : int
        How often a task is run again that died with its worker or machine, or could not read or write.
    in_flight : int, optional
        Tasks that are given to the cluster at a time; by default twice as many as it can run.
    """

    def __init__(
        self, address: str | None = None, *, cpus: float = 1, max_retries: int = _RETRIES, in_flight: int | None = None
    ) -> None:
        self.cpus = nonnegative(cpus, "cpus")
        self.max_retries = integer(max_retries, "max_retries", 0)
        self.in_flight = None if in_flight is None else integer(in_flight, "in_flight", 1)
        self._connection = Connection(address)

    def __enter__(self) -> Self:
        self._connection.open()
        return self

    def __exit__(self, *error: object) -> None:
        self._connection.close()

    def __call__(self, task: Callable[[T], R], values: Sequence[T]) -> Iterator[R]:
        """Results of a task for each value, in any order. The first that fails for good ends it."""
        ray = ray_module()
        options: dict[str, Any] = {"num_cpus": self.cpus, "scheduling_strategy": "SPREAD"}
        with self._connection:
            check_room(self.cpus, "a task")
            remote = ray.remote(max_retries=self.max_retries, retry_exceptions=[StorageError], **options)(_run)
            shared = ray.put(task)  # once, not with every value
            most = self.in_flight or max(1, int(_AHEAD * ray.cluster_resources().get("CPU", 1) / max(self.cpus, 0.1)))
            waiting = list(values)[::-1]
            flying: list[Any] = []
            try:
                while waiting or flying:
                    while waiting and len(flying) < most:
                        flying.append(remote.remote(shared, waiting.pop()))
                    ready, flying = ray.wait(flying)
                    for one in ready:
                        yield result_of(one)
            finally:
                for one in flying:
                    ray.cancel(one, force=True)


def _run(task: Callable[[T], R], value: T) -> R:
    return task(value)


class Connection:
    """A connection of this process to a cluster: made unless there is one, and then closed by the last who needs it."""

    _mutex = threading.Lock()
    _users = 0  # of the one that was made here
    _own = False

    def __init__(self, address: str | None) -> None:
        if address is not None and not isinstance(address, str):
            raise InputTypeError(f"address must be text, such as 'ray://host:10001', not {shown(address)}")
        self.address = address

    def open(self) -> None:
        """Connect."""
        ray = ray_module()
        with Connection._mutex:
            if not ray.is_initialized():
                here = {"include_dashboard": False} if self.address is None else {"address": self.address}
                for tries_left in reversed(range(_CONNECTION_TRIES)):
                    try:
                        ray.init(log_to_driver=False, logging_level=logging.WARNING, **here)
                        break
                    except Exception as error:  # of Ray, which has many
                        if tries_left and _NOT_STARTED in str(error):
                            continue
                        said = f"address = {self.address!r}: the cluster cannot be reached: {error}"
                        raise ClusterError(said) from None
                Connection._own, Connection._users = True, 0
            Connection._users += 1

    def close(self) -> None:
        """Disconnect, if it was made here and no one else needs it."""
        with Connection._mutex:
            Connection._users -= 1
            if Connection._users <= 0 and Connection._own:
                Connection._own = False
                ray_module().shutdown()

    def __enter__(self) -> Self:
        self.open()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def check_room(cpus: float, what: str, count: int = 1) -> None:
    """Raise if no machine has so many CPUs, or all of them too few for so many: it would wait for ever."""
    there = [float(node["Resources"].get("CPU", 0.0)) for node in ray_module().nodes() if node["Alive"]]
    if cpus > max(there, default=0.0):
        raise ClusterError(f"{what} takes {cpus:g} CPUs, and no machine of the cluster has more than {max(there):g}")
    if count * cpus > sum(there):
        raise ClusterError(
            f"{count} times {what} of {cpus:g} CPUs take {count * cpus:g}, and the cluster has {sum(there):g}; take "
            "fewer, or a smaller cpus="
        )


def result_of(reference: Any, timeout: float | None = None) -> Any:
    """What a task gave; its own errors as they were raised there, those of the cluster as ClusterError."""
    ray = ray_module()
    try:
        return ray.get(reference, timeout=timeout)
    except ray.exceptions.RayTaskError as error:
        cause = error.cause
        if isinstance(cause, AntisparseError):
            raise cause from None
        raise ClusterError(f"a task failed: {type(cause).__name__}: {cause}") from error
    except ray.exceptions.RayError as error:
        raise ClusterError(f"a task could not be done: {first(error)}") from error


def first(error: Exception) -> str:
    """The first line of what Ray says."""
    return f"{type(error).__name__}: {(str(error).strip().splitlines() or [''])[0][:300]}"
