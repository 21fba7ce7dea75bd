"""A server whose queue is full."""

import json

import pytest

from tests.serving.served import head, read_answer, reversing

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
