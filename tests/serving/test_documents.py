"""A pipeline that is served: texts as rows, files as bodies, and the limits of both."""

import json
import threading

import pytest

from tests.serving.served import head, reversing
from tests.waiting import wait_until


@pytest.fixture(scope="module")
def served():
    with reversing(pipeline=True, limits={"file": 12000, "body": 500, "files": 1}) as started:
        yield started


def words(answer):
    return [found["spans"][0]["text"] for found in answer["results"]]


def test_a_text_has_a_result_and_a_list_one_of_each(served):
    assert words(served.ask("some text").json()) == ["some"]
    assert words(served.ask({"text": "other text"}).json()) == ["other"]
    assert [words(a) for a in served.ask(["a b", {"text": "c d"}]).json()] == [["a"], ["c"]]
    assert served.ask([]).json() == []


def test_a_file_has_a_result_of_each_of_its_texts(served):
    answer = served.send(b"first line\nsecond one\nno")
    assert answer.status_code == 200
    assert words({"results": answer.json()["results"][:2]}) == ["first", "second"]
    assert answer.json()["results"][2] == {"text": "no", "error": "no."}


@pytest.mark.parametrize(
    ("sent", "status", "said", "where"),
    [
        (b"damaged", 422, "the file: page 1: it is damaged", "body"),
        (b"fail", 500, "The model failed: RuntimeError", "model"),
        (b"\n" * 10_001, 422, "the file: it has more than 10,000 results.", "body"),
        (b"", 400, "Wanted a file; found no byte.", "body"),
        (b"a" * 12001, 413, "Wanted a body of at most 12,000 bytes; found 12,001.", "body"),
    ],
)
def test_a_file_that_cannot_be_read_says_why(served, sent, status, said, where):
    found = served.send(sent)
    assert (found.status_code, found.json()["where"]) == (status, where)
    assert found.json()["error"].startswith(said)
    assert served.get("ready").status_code == 200


@pytest.mark.parametrize(
    ("row", "said"),
    [
        ("no", "no."),
        (["a", "no"], "row 2: no."),
        ([["a", "list"]], "Column 'text': wanted a string, found list."),
        ({"txt": "a"}, "A row needs the columns text; 'text' is missing"),
    ],
)
def test_a_text_that_cannot_be_answered_says_why(served, row, said):
    found = served.ask(row)
    assert found.status_code in (400, 422)
    assert said.removeprefix("row 2: ") in found.json()["error"]
    if said.startswith("row 2"):
        assert found.json()["where"] == "row 2"


def test_what_is_neither_json_nor_a_file_is_refused(served):
    for kind in ("text/plain", "multipart/form-data; boundary=x", "application/pdf"):
        found = served.send(b"some text", kind)
        assert found.status_code == 415
        assert "application/json, or of a file application/octet-stream" in found.json()["error"]
    with reversing() as model:
        assert model.send(b"some text").status_code == 415


def test_no_more_files_are_taken_than_may_wait(served, tmp_path):
    first = []
    asked = threading.Thread(
        target=lambda: first.append(served.send(f"hold {tmp_path / 'a'}".encode()))
    )
    asked.start()
    try:
        wait_until((tmp_path / "a.begun").exists)
        found = served.send(b"some text")
        assert (found.status_code, found.json()["where"]) == (503, "queue")
        assert "1 files are read or wait" in found.json()["error"]
        assert int(found.headers["Retry-After"]) >= 1
        # One that is announced to be too long is not read, whatever waits.
        assert served.send(b"a" * 13000).status_code in (413, 503)
    finally:
        (tmp_path / "a").touch()
        asked.join()
    assert first[0].status_code == 200
    assert served.send(b"some text").status_code == 200


def test_a_sender_that_leaves_frees_its_place(served):
    request = head(400).replace(b"application/json", b"application/octet-stream")
    with served.connection(request + b"some") as raw:
        wait_until(lambda: served.send(b"a b").status_code == 503)
        raw.close()
    wait_until(lambda: served.send(b"a b").status_code == 200)


def test_a_file_that_takes_too_long_is_left():
    with reversing(pipeline=True, limits={"timeout": 0.5}) as served:
        found = served.send(b"slow\n" * 400)
        assert found.status_code == 503
        assert found.json()["error"].startswith("No answer in 0.5 s.")
        # The rest of it, 20 seconds of work, is not read.
        wait_until(lambda: served.send(b"a b").status_code == 200, seconds=5)
        assert served.end()[0] == 0


def test_it_says_what_it_reads_and_answers(served):
    model = served.get("model").json()
    assert (model["columns"], model["files"]) == (["text"], [".txt", ".pdf"])
    assert model["limits"]["file"] == 12000
    api = served.get("openapi.json").json()
    asked = api["paths"]["/predict"]["post"]
    body = asked["requestBody"]["content"]
    assert set(body) == {"application/json", "application/octet-stream"}
    assert "number" not in json.dumps(body)
    assert set(api["components"]["schemas"]["FoundRow"]["properties"]) == {"text", "spans", "error"}
