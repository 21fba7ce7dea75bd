"""Answers requests in batches: a queue, and the thread that runs the model.

A batch is what queued while the last one was computed; if that is less than the last, it waits a
moment for as many. So a lone question never waits, and a busy server computes full batches.
"""

import logging
import math
import time
from asyncio import Future, get_running_loop
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from threading import Condition, Thread
from typing import Any

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.process_collector import ProcessCollector

from textmill.errors import DataError
from textmill.exported.row_predictor import (
    CHUNK_CHARACTERS,
    AnswerOptions,
    RowPredictor,
    single_row_error,
)
from textmill.serving.limits import Limits, RefusedError

LOG = logging.getLogger("textmill")
SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30)
ROWS = (1, 2, 4, 8, 16, 32, 64, 128, 256)
FEW = 10
"""Most wrong rows that a refusal names."""


class Telemetry:
    """Counters of one server; each has a registry of its own."""

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
        """Its function is set by the batcher."""
        ProcessCollector(registry=registry)

    def answered(self, path: str, status: int, seconds: float) -> None:
        if (path, status) not in self._counted:  # to find a counter takes as long as a refusal
            self._counted[path, status] = self._requests.labels(path, str(status))
        self._counted[path, status].inc()
        if path == "/predict" and status == 200:
            self._seconds.observe(seconds)

    def computed(self, rows: int, seconds: float) -> None:
        self._rows.inc(rows)
        self._batch_rows.observe(rows)
        self._batch_seconds.observe(seconds)

    def text(self) -> bytes:
        return generate_latest(self._registry)


@dataclass(eq=False)
class Question:
    """Rows that wait for their answers."""

    rows: Sequence[Any]
    """As :meth:`~textmill.exported.row_predictor.RowPredictor.row` takes them."""
    characters: int
    """Of all its texts."""
    options: AnswerOptions
    """What is asked of the answers; those who ask the same share a batch."""
    cost: int
    """Rows that the model computes for it, all explanations with those of their words."""
    lenient: bool = False
    """Whether a row that cannot be answered has an error in place of its answer; else all are
    refused."""
    future: "Future[list[Mapping[str, Any]]]" = field(init=False)
    """The answers, or the refusal."""


class Batcher:
    """Answers questions in the order they came, some at a time, in a thread of its own."""

    def __init__(self, predictor: RowPredictor, limits: Limits, telemetry: Telemetry) -> None:
        self.predictor, self.limits, self._telemetry = predictor, limits, telemetry
        self._waiting: deque[Question] = deque()
        self._rows = 0
        self._wanted = self._together = 1
        self._changed = Condition()
        self._open = True
        self._seconds_a_row = 0.0
        self._computing_since: float | None = None
        self.admitted = 0
        """Requests that were taken and have no answer yet."""
        telemetry.waiting.set_function(lambda: self._rows)
        self._thread = Thread(target=self._work, name="textmill-model", daemon=True)
        self._thread.start()

    # -- on the event loop

    def full(self) -> bool:
        return self._rows >= self.limits.queue

    def refusal(self) -> RefusedError:
        return RefusedError(
            503,
            f"{self.limits.queue} rows wait for the model, and no more may. Ask again later.",
            where="queue",
            headers={"Retry-After": str(self.wait())},
        )

    def submit(self, question: Question) -> None:
        """Lets a question wait; its ``future`` has the answers."""
        if self.full():
            raise self.refusal()
        question.future = get_running_loop().create_future()
        with self._changed:
            self._waiting.append(question)
            self._rows += question.cost
            if self._enough():  # to wake the thread for each question takes as long as to read it
                self._changed.notify()
        self.admitted += 1

    def leave(self, question: Question, why: Exception) -> None:
        """Takes a question from the queue; one that is being computed is no longer awaited."""
        with self._changed:
            if question in self._waiting:
                self._waiting.remove(question)
                self._rows -= question.cost
        self._settle(question, why)

    def wait(self) -> int:
        """Whole seconds until the rows that wait now are answered, about."""
        return max(1, math.ceil(self._rows * self._seconds_a_row))

    def problem(self) -> str:
        """Why questions cannot be answered; empty if they can."""
        since = self._computing_since
        if not self._thread.is_alive():
            return "the thread that asks the model has ended"
        if since is not None and time.perf_counter() - since > self.limits.timeout:
            return f"the model has computed for more than {self.limits.timeout:g} s"
        return ""

    def close(self) -> None:
        """Ends the thread after the batch that it computes."""
        with self._changed:
            self._open = False
            self._changed.notify()
        self._thread.join(self.limits.timeout)

    def _settle(self, question: Question, found: list[Mapping[str, Any]] | Exception) -> None:
        if question.future.done():
            return
        self.admitted -= 1
        if isinstance(found, Exception):
            question.future.set_exception(found)
        else:
            question.future.set_result(found)

    def _settle_all(
        self, batch: Sequence[Question], found: Sequence[list[Mapping[str, Any]] | Exception]
    ) -> None:
        for question, answers in zip(batch, found, strict=True):
            self._settle(question, answers)

    # -- on the model's thread

    def _work(self) -> None:
        while batch := self._take():
            self._computing_since = start = time.perf_counter()
            found = self._answers(batch)
            self._computing_since, seconds = None, time.perf_counter() - start
            rows = sum(question.cost for question in batch)
            # A moving average: what one odd batch took is forgotten after some ten others.
            self._seconds_a_row += 0.1 * (seconds / rows - self._seconds_a_row)
            self._telemetry.computed(rows, seconds)
            loop = batch[0].future.get_loop()
            if not loop.is_closed():
                loop.call_soon_threadsafe(self._settle_all, batch, found)

    def _take(self) -> list[Question]:
        batch: list[Question] = []
        rows = characters = 0
        with self._changed:
            while self._open:
                self._wanted = 1
                self._changed.wait_for(self._enough)
                self._wanted = self._together
                self._changed.wait_for(self._enough, self.limits.window)
                if self._waiting:  # those that waited may have left
                    break
            while self._waiting and rows < self.limits.batch and characters < CHUNK_CHARACTERS:
                if batch and self._waiting[0].options != batch[0].options:
                    break
                question = self._waiting.popleft()
                batch.append(question)
                rows += question.cost
                characters += question.characters
            self._rows -= rows
            self._together = len(batch)
        return batch

    def _enough(self) -> bool:
        """Whether there is enough for a batch: full, or as many questions as are waited for."""
        full = self._rows >= self.limits.batch
        return full or len(self._waiting) >= self._wanted or not self._open

    def _answers(self, batch: Sequence[Question]) -> list[list[Mapping[str, Any]] | Exception]:
        try:
            predictor = self.predictor.with_options(batch[0].options)
            rows = [predictor.row(row) for question in batch for row in question.rows]
            answers = map(predictor.answer_row, predictor.answers(rows))
            return [[next(answers) for _ in question.rows] for question in batch]
        except Exception as error:
            if len(batch) == 1:
                return [self._alone(batch[0], error)]
        # One of them is wrong, and only its own sender hears of that.
        return [answers for question in batch for answers in self._answers([question])]

    def _alone(self, question: Question, error: Exception) -> Any:
        """The answers to a question that was refused, where its rows are checked one by one."""
        if question.lenient and isinstance(error, DataError):
            try:
                predictor = self.predictor.with_options(question.options)
                return [answer for _, answer in predictor.answered(question.rows)]
            except Exception as other:
                error = other
        return self._refused(question, error)

    def _refused(self, question: Question, error: Exception) -> RefusedError:
        """The refusal that names what is wrong with the rows, or else with the model."""
        problems = {}
        for number, row in enumerate(question.rows, start=1):
            try:
                self.predictor.check(self.predictor.row(row))
            except DataError as problem:
                problems[f"row {number}"] = single_row_error(problem)
            except Exception:
                LOG.exception("A row could not be checked")
        if isinstance(error, DataError) and not problems:
            problems["body"] = str(error)
        if problems:
            some = list(problems)[:FEW]
            told = [f"{where}: {problems[where]}" for where in some]
            text = problems[some[0]] if len(question.rows) == 1 else " ".join(told)
            more = f" So are {len(problems) - FEW} more." * (len(problems) > FEW)
            return RefusedError(422, text + more, where=", ".join(some))
        LOG.error("The model failed", exc_info=error)
        text = f"The model failed: {type(error).__name__}. The server's log says more."
        return RefusedError(500, text, where="model")
