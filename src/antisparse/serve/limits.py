"""What a request may ask for, and how many at a time."""

from dataclasses import dataclass

from antisparse._arrays import integer, nonnegative, thread_count


@dataclass(frozen=True)
class Limits:
    """Limits of the service; whatever is beyond them is refused, and the rest is served.

    Attributes
    ----------
    body_bytes : int
        Bytes of a request.
    queries : int
        Queries, or vectors to add, of a request.
    k : int
        Results a query.
    results : int
        Results of a request, of all its queries.
    searches : int
        Searches at a time; by default as many as there are CPUs.
    waiting : int
        Requests that wait for their turn; beyond it the answer is 503, to be tried again in a second.
    seconds : float
        Time of a request, from its first byte to its answer; 0: any. A change that has begun is not cut off. Likewise
        for a client to send the head of a request, or to take some more of an answer.
    batch_ms : float
        Small searches that come within so many milliseconds share a scan; 0: each has its own.
    """

    body_bytes: int = 32 << 20
    queries: int = 1024
    k: int = 1000
    results: int = 1 << 20
    searches: int | None = None
    waiting: int = 256
    seconds: float = 30.0
    batch_ms: float = 1.0

    def __post_init__(self) -> None:
        for name in ("body_bytes", "queries", "k", "results"):
            integer(getattr(self, name), name, 1)
        integer(self.waiting, "waiting", 0)
        thread_count(self.searches, "searches")
        nonnegative(self.seconds, "seconds")
        nonnegative(self.batch_ms, "batch_ms")

    @property
    def at_once(self) -> int:
        """Searches at a time."""
        return thread_count(self.searches)
