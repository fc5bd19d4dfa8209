"""What Prometheus may ask."""

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)


class Metrics:
    """Counters of one service."""

    def __init__(self) -> None:
        self._all = CollectorRegistry()
        self.requests = Counter("antisparse_requests", "Requests", ["route", "status"], registry=self._all)
        self.latency = Histogram(
            "antisparse_request_seconds", "Seconds of a request", ["route"], buckets=_SECONDS, registry=self._all
        )
        self.queries = Counter("antisparse_queries", "Queries that were searched", registry=self._all)
        self.codes = Counter(
            "antisparse_codes_scanned", "Codes that were scanned, with probes estimated from cells", registry=self._all
        )
        self.generation = Gauge("antisparse_index_generation", "The state that is served", registry=self._all)
        self.refreshed = Gauge("antisparse_index_refreshed", "When the index was last looked at", registry=self._all)
        self.errors = Counter("antisparse_errors", "Errors by their type", ["type"], registry=self._all)

    def text(self) -> bytes:
        """As Prometheus reads it."""
        return generate_latest(self._all)
