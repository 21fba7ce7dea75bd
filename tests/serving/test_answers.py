"""What a server answers: rows, a refusal of what it cannot take, and what it says of itself."""

import json

import httpx
import pytest

from tests.serving.served import Reversed, read_all, reversing
from textmill.serving.limits import Limits, RefusedError
from textmill.serving.questions import read_rows, request_schema


@pytest.fixture(scope="module")
def server():
    limits = {"body": 4000, "items": 5, "characters": 1000}
    with reversing(limits=limits, hosts=frozenset({"127.0.0.1", "localhost"})) as served:
        yield served


@pytest.mark.parametrize(
    ("rows", "answers"),
    [
        ("abc", {"prediction": "cba"}), ({"text": "abc", "more": 1}, {"prediction": "cba"}),
        (["abc", {"text": "de"}], [{"prediction": "cba"}, {"prediction": "ed"}]),
        (["abc"], [{"prediction": "cba"}]), ([], []), ("", {"prediction": ""}),
        ("é\u2028😀", {"prediction": "😀\u2028é"}),
    ],
)  # fmt: skip
def test_it_answers_one_row_or_each_of_a_list(server, rows, answers):
    found = server.ask(rows)
    assert (found.status_code, found.json()) == (200, answers)


@pytest.mark.parametrize(
    ("body", "status", "where", "error"),
    [
        (b"", 400, "body", "Wanted JSON: a string, an object, or a list of these; found none"),
        (b"{bad", 400, "body", "key must be a string at line 1 column 2"),
        (b'"\xff"', 400, "body", "invalid unicode"),
        (rb'"\ud800"', 400, "body", "unexpected end of hex escape"),
        (b"[" * 1000, 400, "body", "recursion limit exceeded"),
        (b"null", 422, "row 1, column 'text'", "string, a number, or a list of these; found null"),
        (b"1" + b"0" * 400, 422, "row 1, column 'text'", "found a number that no float64 holds."),
        (b'{"text": {}}', 422, "row 1, column 'text'", "found an object."),
        (b'["a", {"txt": "b"}]', 422, "row 2", "A row needs the columns text; 'text' is missing."),
        (rb'"a\u0000"', 422, "row 1", "Column 'text': NUL at character 1."),
        (
            b'["a", "no", "no"]',
            422,
            "row 2, row 3",
            "row 2: column 'text': no. row 3: column 'text': no.",
        ),
        (b'"fail"', 500, "model", "The model failed: RuntimeError. The server's log says more."),
        (b'["a","a","a","a","a","a"]', 413, "body", "Wanted at most 5 rows; found 6."),
        (b'"%s"' % (b"a" * 1001), 422, "row 1, column 'text'", "at most 1,000 characters; found 1"),
        (b'"%s"' % (b"a" * 4000), 413, "body", "at most 4,000 bytes; found 4,002. Ask in parts."),
    ],
)
def test_what_it_cannot_take_is_refused_with_the_place(server, body, status, where, error):
    found = server.send(body, "application/json")
    assert (found.status_code, found.json()["where"]) == (status, where)
    assert error in found.json()["error"]


def test_a_row_that_is_wrong_spoils_nobody_elses_answer(server, tmp_path):
    together = server.waiting(["fail", "no", "good"])
    with server.held(tmp_path / "go"), together as (failing, refused, answered):
        (tmp_path / "go").touch()
        assert read_all(answered).endswith(b'{"prediction":"doog"}')
        assert read_all(failing).startswith(b"HTTP/1.1 500 ")
        assert read_all(refused).startswith(b"HTTP/1.1 422 ")


def test_a_long_body_is_refused_unread_and_the_connection_goes_on(server):
    with httpx.Client() as client:
        for _ in range(3):
            found = client.post(f"{server.url}predict", json="a" * 500_000)
            assert found.status_code == 413
        assert client.post(f"{server.url}predict", json="ab").json() == {"prediction": "ba"}


def test_a_body_of_unknown_length_is_read_up_to_the_limit(server):
    parts = [b'"', *[b"a" * 999] * 900, b'"']
    found = server.send(iter(parts), "application/json")
    assert found.status_code == 413
    assert "found at least" in found.json()["error"]


@pytest.mark.parametrize("kind", ["text/plain", "application/x-www-form-urlencoded", "", None])
def test_a_form_of_another_site_cannot_ask(server, kind):
    headers = {} if kind is None else {"Content-Type": kind}
    found = httpx.post(f"{server.url}predict", content=b'"a"', headers=headers)
    assert found.status_code == 415
    assert "Wanted 'Content-Type: application/json'; found " in found.json()["error"]


@pytest.mark.parametrize(
    ("host", "status"),
    [("127.0.0.1:80", 200), ("LOCALHOST", 200), ("rebound.example", 421), ("", 421)],
)
def test_a_name_of_another_site_is_none_of_this_server(server, host, status):
    assert server.get("health", headers={"Host": host}).status_code == status


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [("GET", "/x", 404), ("GET", "/predict", 405), ("GET", "/../../etc/passwd", 404)],
)
def test_what_is_not_there_is_said_as_json(server, method, path, status):
    found = httpx.request(method, f"{server.url.rstrip('/')}{path}")
    assert found.status_code == status
    assert "/openapi.json says what else" in found.json()["error"]


def test_it_says_its_columns_and_its_typed_answer(server):
    said = server.get("openapi.json").json()
    operation = said["paths"]["/predict"]["post"]
    row = operation["requestBody"]["content"]["application/json"]["schema"]["anyOf"][1]
    assert row["required"] == ["text"]
    answer = operation["responses"]["200"]["content"]["application/json"]["schema"]["anyOf"]
    assert answer[0] == {"$ref": "#/components/schemas/ReversedRow"}
    assert said["components"]["schemas"]["ReversedRow"]["required"] == ["prediction"]
    assert {"400", "408", "413", "422", "503"} <= set(operation["responses"])


def test_a_column_that_a_row_may_have_is_said_and_measured():
    predictor = Reversed(["source"], ["prefix"])
    row = request_schema(predictor, Limits(), lists=True)["anyOf"][1]
    assert (row["required"], [*row["properties"]]) == (["source"], ["source", "prefix"])
    body = json.dumps({"source": "Go.", "prefix": "a" * 200_000}).encode()
    with pytest.raises(RefusedError, match="at most 100,000 characters; found 200,000"):
        read_rows(body, predictor, Limits())


def test_a_row_may_have_the_names_of_the_training_file():
    predictor = Reversed(["text"])
    predictor.data = {"columns": {"text": "message", "label": "topic"}}
    rows = [{"message": "a", "n": 1}, {"message": "a", "text": "b"}, "c"]
    found, _, _ = read_rows(json.dumps(rows).encode(), predictor, Limits())
    assert found == [{"text": "a", "n": 1}, {"message": "a", "text": "b"}, "c"]
    row = request_schema(predictor, Limits(), lists=True)["anyOf"][1]
    assert row["description"].endswith("in the training file: 'message' for 'text'.")


def test_names_that_the_training_file_has_for_other_columns_are_those_of_the_model():
    predictor = Reversed(["text"])
    predictor.data = {"columns": {"text": "label", "label": "text"}}
    assert read_rows(b'{"text": "a"}', predictor, Limits())[0] == [{"text": "a"}]


def test_it_counts(server):
    def counted(name):
        lines = server.get("metrics").text.splitlines()
        return next((float(x.split()[-1]) for x in lines if x.startswith(name)), 0.0)

    name = 'textmill_requests_total{path="/predict",status="200"}'
    before, rows = counted(name), counted("textmill_rows_total")
    server.ask(["a", "b"])
    assert (counted(name), counted("textmill_rows_total")) == (before + 1, rows + 2)
    assert counted("textmill_predict_seconds_count") == before + 1
    assert counted("process_resident_memory_bytes") > 1e7


def test_it_is_healthy_ready_and_says_what_it_reads(server):
    assert server.get("health").json() == {"status": "ok"}
    assert server.get("ready").json() == {"status": "ready"}
    assert server.get("model").json() == {
        "name": "reversed",
        "columns": ["text"],
        "limits": {"items": 5, "characters": 1000, "body": 4000, "file": 20971520},
        "vectors": False,
        "files": [],
        "options": [],
        "tables": False,
        "own_names": {},
        "card": {},
        "examples": [{"text": "<b>abc</b>"}],
    }


def test_the_page_loads_nothing_from_elsewhere_and_nothing_in_it_acts(server):
    for path in ("", "page.css", "page.js"):
        found = server.get(path)
        policy = found.headers["content-security-policy"].split("; ")
        assert {"default-src 'none'", "script-src 'self'", "base-uri 'none'"} <= set(policy)
        assert found.headers["x-content-type-options"] == "nosniff"
        assert "http:" not in found.text.replace("http://www.w3.org/2000/svg", "")
        assert "https:" not in found.text
        assert "innerHTML" not in found.text
    assert "access-control-allow-origin" not in server.ask("a", headers={"Origin": "x"}).headers


def test_a_token_is_asked_for_where_the_server_has_one():
    with reversing(token="secret-and-long-enough") as served:
        for headers in ({}, {"Authorization": "Bearer wrong"}, {"Authorization": "secret"}):
            for path in ("model", "metrics", "openapi.json", "x"):
                assert served.get(path, headers=headers).status_code == 401
            found = served.ask("ab", headers=headers)
            assert (found.status_code, found.json()["where"]) == (401, "header Authorization")
        right = {"Authorization": "Bearer secret-and-long-enough"}
        assert served.ask("ab", headers=right).json() == {"prediction": "ba"}
        for path in ("", "health", "ready"):
            assert served.get(path).status_code == 200


def test_answers_that_are_no_numbers_are_still_json():
    from textmill.serving.app import _json

    assert json.loads(_json({"score": float("nan")}).body) == {"score": None}
