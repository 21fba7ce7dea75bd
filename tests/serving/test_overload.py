"""A server that is asked more than it can answer, for long."""

import asyncio
import contextlib
import json
import threading
import time

import pytest

from tests.serving.served import Reversed, head, read_all, reversing
from weft.serving import batcher
from weft.serving.batcher import AT_ONCE, REFUSALS, Batcher
from weft.serving.limits import Limits, RefusedError
from weft.serving.telemetry import Telemetry

FIRST = b"HTTP/1.1 503 Service Unavailable\r\n"


class Gated(Reversed):
    """Answers when it is let."""

    tells = False

    def __init__(self):
        super().__init__(["text"])
        self.let = threading.Event()

    def answers(self, rows):
        assert self.let.wait(10)
        return super().answers(rows)


def refused(batches, count):
    """How many of so many questions are refused, and the others."""
    asked = []
    for _ in range(count):
        with contextlib.suppress(RefusedError):
            asked.append(batches.submit(["ab"], 2))
    return count - len(asked), asked


def run(test, **limits):
    """Runs a test on a batcher whose model waits to be let."""

    async def main():
        model = Gated()
        batches = Batcher(model, Limits(**limits), Telemetry())
        try:
            return await test(batches, model.let)
        finally:
            model.let.set()
            batches.close()

    return asyncio.run(main())


async def answered(asked):
    return [await question.future for question in asked]


def test_a_burst_is_taken_and_what_goes_on_is_taken_in_small_parts(monkeypatch):
    monkeypatch.setattr(batcher, "OVERLOADED", 60.0)

    async def test(batches, let):
        let.set()
        await answered(refused(batches, 1)[1])  # what a lone one takes is known
        let.clear()
        turned_away, burst = refused(batches, 45)
        assert turned_away in range(4, 6)  # 40 wait, and one may be computed
        let.set()
        await answered(burst)
        let.clear()
        turned_away, some = refused(batches, AT_ONCE + REFUSALS - 1)
        assert (turned_away, len(some)) == (REFUSALS - 1, AT_ONCE)
        let.set()
        await answered(some)

    run(test, queue=40, slowdown=1e-9)


def test_what_is_taken_grows_with_what_a_lone_question_may_take(monkeypatch):
    monkeypatch.setattr(batcher, "OVERLOADED", 60.0)

    async def test(batches, let):
        let.set()
        await answered(refused(batches, 1)[1])
        let.clear()
        _, burst = refused(batches, 45)
        let.set()
        await answered(burst)
        let.clear()
        turned_away, some = refused(batches, 40)
        let.set()
        await answered(some)
        return turned_away

    assert run(test, queue=40, slowdown=1e9) == 0


def test_refusals_do_not_take_all_the_time(monkeypatch):
    monkeypatch.setattr(batcher, "OVERLOADED", 60.0)

    async def test(batches, let):
        _, burst = refused(batches, 45)
        let.set()
        await answered(burst)
        let.clear()
        enough = REFUSALS * (AT_ONCE + 1)
        turned_away, some = refused(batches, AT_ONCE + enough + 1)
        assert (turned_away, len(some)) == (enough, AT_ONCE + 1)
        let.set()
        await answered(some)

    run(test, queue=40, slowdown=1e-9)


def test_an_overload_is_over_when_nothing_was_refused_for_a_while(monkeypatch):
    monkeypatch.setattr(batcher, "OVERLOADED", 0.2)

    async def test(batches, let):
        _, burst = refused(batches, 45)
        let.set()
        await answered(burst)
        time.sleep(0.25)
        let.clear()
        turned_away, again = refused(batches, 40)
        assert turned_away == 0
        let.set()
        await answered(again)

    run(test, queue=40, slowdown=1e-9)


@pytest.fixture
def full(tmp_path):
    """A server whose queue is full."""
    with (
        reversing(limits={"queue": 1, "read_timeout": 1.0}) as served,
        served.held(tmp_path / "go"),
        served.waiting(["ab"]),
    ):
        yield served


def test_a_connection_goes_on_after_it_was_refused(full):
    question = head(4) + b'"cd"'
    with full.connection(question) as raw:
        for _ in range(3):
            answer = raw.recv(1 << 16)
            assert answer.startswith(FIRST)
            lines, _, body = answer.partition(b"\r\n\r\n")
            assert b"retry-after: 1" in lines
            assert b"connection: close" not in lines
            assert json.loads(body)["where"] == "queue"
            raw.sendall(question)
    assert 'path="/predict",status="503"} ' in full.get("metrics").text


@pytest.mark.parametrize(
    "question",
    [
        head(4).replace(b"\r\n", b"\r\nConnection: close\r\n", 1) + b'"cd"',
        head(4).replace(b"HTTP/1.1", b"HTTP/1.0") + b'"cd"',
    ],
)
def test_what_ends_its_connection_is_refused_and_it_ends(full, question):
    answer = full.said(question)
    assert answer.startswith(FIRST)
    assert b'"where":"queue"' in answer


@pytest.mark.parametrize(
    "question",
    [
        head(9) + b'"cd',
        head(4).replace(b"Content-Length: 4", b"Transfer-Encoding: chunked") + b'4\r\n"cd"',
        head(4).replace(b"\r\n", b"\r\nExpect: 100-continue\r\n", 1),
    ],
)
def test_a_question_is_refused_before_all_of_it_is_there(full, question):
    with full.connection(question) as raw:
        assert raw.recv(1 << 16).startswith(FIRST)


def test_of_questions_that_come_together_each_is_refused(full):
    more = (head(4) + b'"cd"') * 2 + head(4).replace(b"\r\n", b"\r\nConnection: close\r\n", 1)
    assert full.said(more + b'"cd"').count(FIRST) == 3


def test_other_pages_are_there_and_wrong_requests_are_called_wrong(full):
    assert full.get("health").status_code == 200
    assert (
        full.said(b"POST /predict HTTP/1.1\r\nContent-Length: x\r\n\r\n")[:13]
        == FIRST[:9] + b"400 "
    )


@pytest.mark.slow
def test_an_idle_connection_ends_where_its_last_question_was_refused(full):
    with full.connection(head(4) + b'"cd"') as raw:
        start = time.perf_counter()
        assert read_all(raw).startswith(FIRST)
        assert 4 < time.perf_counter() - start < 9
