"""A server that is asked too much, too slowly, or left; and how it ends."""

import json
import signal
import time

import pytest

from tests.serving.served import TOLD, head, question, read_all, read_answer, reversing
from tests.waiting import wait_until


def batches(served):
    """How many rows each batch of an ended server had."""
    lines = served.end()[1].splitlines()
    return [int(line.removeprefix(TOLD)) for line in lines if line.startswith(TOLD)]


def test_what_comes_while_a_batch_is_computed_is_the_next_batch(tmp_path):
    with reversing(limits={"batch": 8}) as served:
        with served.held(tmp_path / "go"), served.waiting(["ab"] * 12) as asked:
            (tmp_path / "go").touch()
            assert all(read_all(raw).endswith(b'{"prediction":"ba"}') for raw in asked)
        assert batches(served) == [1, 8, 4]


def all_at_once(served, folder, texts):
    """Answers to questions that waited while one was computed, so that they are a batch."""
    with served.held(folder / "go"), served.waiting(texts) as asked:
        (folder / "go").touch()
        assert all(b"prediction" in read_all(raw) for raw in asked)
    (folder / "go").unlink()
    (folder / "go.begun").unlink()


def test_a_batch_waits_a_moment_for_as_many_questions_as_the_last_had(tmp_path):
    with reversing(limits={"window": 60.0}) as served:
        all_at_once(served, tmp_path, ["ab"] * 3)
        with served.waiting(["ab"] * 2) as asked, served.connection(question("cd")) as last:
            assert read_all(last).endswith(b'{"prediction":"dc"}')
            assert all(read_all(raw).endswith(b'{"prediction":"ba"}') for raw in asked)
        assert batches(served) == [1, 3, 3]


def test_it_waits_no_longer_than_the_window(tmp_path):
    with reversing(limits={"window": 0.4}) as served:
        all_at_once(served, tmp_path, ["ab"] * 3)
        start = time.perf_counter()
        assert served.ask("alone").json() == {"prediction": "enola"}
        assert time.perf_counter() - start >= 0.4
        assert batches(served) == [1, 3, 1]


def test_a_late_answer_is_not_awaited_and_a_model_that_hangs_is_not_ready(tmp_path):
    with reversing(limits={"timeout": 0.3}) as served:
        with served.held(tmp_path / "go") as held:
            late = read_all(held)
            assert late.startswith(b"HTTP/1.1 503 ")
            assert b"retry-after: 1\r\n" in late
            assert b"No answer in 0.3 s. Ask again later, or with less." in late
            assert served.ask("never computed").status_code == 503
            ready = served.get("ready")
            assert (ready.status_code, ready.json()["where"]) == (503, "model")
            assert "has computed for more than 0.3 s" in ready.json()["error"]
            assert served.get("health").status_code == 200
        wait_until(lambda: served.get("ready").status_code == 200)
        assert served.ask("ab").json() == {"prediction": "ba"}
        assert batches(served) == [1, 1]


def test_who_leaves_keeps_nobody_from_an_answer(tmp_path):
    with reversing() as served:
        with served.held(tmp_path / "go") as computed:
            with served.waiting(["dropped"] * 3):
                pass
            computed.close()
        assert served.ask("ab").json() == {"prediction": "ba"}
        assert "textmill_waiting_rows 0.0" in served.get("metrics").text


def test_a_body_that_does_not_come_is_refused_in_time_and_counted():
    with reversing(limits={"timeout": 0.5}) as served:
        for sent in (head(9), head(9) + b'"ab'):
            with served.connection(sent) as raw:
                answer = read_answer(raw)
            assert answer.startswith(b"HTTP/1.1 408 ")
            assert b'"where":"body"' in answer
        assert 'path="/predict",status="408"} 2.0' in served.get("metrics").text
        assert served.ask("ab").json() == {"prediction": "ba"}


def test_more_connections_than_allowed_are_refused_and_the_others_are_answered():
    with reversing(limits={"connections": 3}) as served:
        with served.connection(), served.connection(), served.connection() as last:
            time.sleep(0.1)
            refused = served.said(b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n")
            assert refused.startswith(b"HTTP/1.1 503 ")
            last.sendall(b"GET /health HTTP/1.0\r\nHost: localhost\r\n\r\n")
            assert read_all(last).endswith(b'{"status":"ok"}')
        assert served.ask("ab").json() == {"prediction": "ba"}


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_it_answers_what_it_took_and_then_ends(number, tmp_path):
    with reversing() as served:
        with served.held(tmp_path / "go") as taken, served.waiting(["ab"]) as (waits,):
            served.process.send_signal(number)
            wait_until(lambda: served.get("ready").status_code == 503)
            asked = served.ask("ab")
            assert (asked.status_code, asked.headers["retry-after"]) == (503, "5")
            assert asked.json() == {"error": "The server is stopping.", "where": "server"}
            (tmp_path / "go").touch()
            assert b'{"prediction":"og/' in read_all(taken)
            assert read_all(waits).endswith(b'{"prediction":"ba"}')
        assert served.ended() == (0, f"{TOLD}1\n{TOLD}1\n")


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGINT, 130)])
def test_a_second_signal_ends_at_once(number, code, tmp_path):
    with reversing() as served, served.held(tmp_path / "go"):
        served.process.send_signal(number)
        wait_until(lambda: served.get("ready").status_code == 503)
        assert served.end(number)[0] == code


FIRST = b"HTTP/1.1 503 Service Unavailable\r\n"


@pytest.fixture
def full(tmp_path):
    """A server whose queue is full."""
    with (
        reversing(limits={"queue": 1}) as served,
        served.held(tmp_path / "go"),
        served.waiting(["ab"]),
    ):
        yield served


def test_a_connection_goes_on_after_it_was_refused(full):
    question = head(4) + b'"cd"'
    with full.connection(question) as raw:
        for _ in range(3):
            answer = read_answer(raw)
            assert answer.startswith(FIRST)
            lines, _, body = answer.partition(b"\r\n\r\n")
            assert b"retry-after: 1" in lines
            assert b"connection: close" not in lines
            error = "1 rows wait for the model, and no more may. Ask again later."
            assert json.loads(body) == {"error": error, "where": "queue"}
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


def test_a_full_server_still_says_that_it_runs(full):
    assert full.get("health").json() == {"status": "ok"}
    assert full.get("ready").status_code == 200
    assert full.said(b"POST /predict HTTP/1.1\r\nContent-Length: x\r\n\r\n").startswith(
        b"HTTP/1.1 400 "
    )
