"""What a server counts, as Prometheus reads it."""

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.process_collector import ProcessCollector

SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30)
ROWS = (1, 2, 4, 8, 16, 32, 64, 128, 256)


class Telemetry:
    """Counters of one server; each has a registry of its own.

    Example:
        >>> telemetry = Telemetry()
        >>> telemetry.answered("/predict", 200, 0.004)
        >>> print(telemetry.text().decode().split("# HELP")[1].splitlines()[2])
        textmill_requests_total{path="/predict",status="200"} 1.0
    """

    def __init__(self) -> None:
        self._registry = registry = CollectorRegistry()
        labels = ["path", "status"]
        self._requests = Counter(
            "textmill_requests", "Requests answered.", labels, registry=registry
        )
        self._counted: dict[tuple[str, int], Counter] = {}
        self._seconds = Histogram(
            "textmill_predict_seconds",
            "Seconds from a question's head to its answer.",
            buckets=SECONDS,
            registry=registry,
        )
        self._rows = Counter("textmill_rows", "Rows that the model computed.", registry=registry)
        self._batch_rows = Histogram(
            "textmill_batch_rows", "Rows computed together.", buckets=ROWS, registry=registry
        )
        self._batch_seconds = Histogram(
            "textmill_batch_seconds", "Seconds of a batch.", buckets=SECONDS, registry=registry
        )
        self.waiting = Gauge(
            "textmill_waiting_rows", "Rows that wait for the model.", registry=registry
        )
        """Takes the function that knows."""
        ProcessCollector(registry=registry)

    def answered(self, path: str, status: int, seconds: float) -> None:
        """Counts an answer to a request."""
        if (path, status) not in self._counted:  # to find a counter takes as long as a refusal
            self._counted[path, status] = self._requests.labels(path, str(status))
        self._counted[path, status].inc()
        if path == "/predict" and status == 200:
            self._seconds.observe(seconds)

    def computed(self, rows: int, seconds: float) -> None:
        """Counts a batch."""
        self._rows.inc(rows)
        self._batch_rows.observe(rows)
        self._batch_seconds.observe(seconds)

    def text(self) -> bytes:
        """All, in Prometheus' text format."""
        return generate_latest(self._registry)
