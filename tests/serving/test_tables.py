"""Tables that are posted: many rows, answered while they are sent, within the limits."""

import csv
import io
import signal
import time

import httpx
import pytest

from tests.serving.served import head, reversing
from tests.waiting import wait_until

CSV = "text/csv"


@pytest.fixture(scope="module")
def served():
    limits = {"characters": 1000, "file": 4_000_000, "files": 2}
    with reversing(tables=True, tells=False, limits=limits) as server:
        yield server


def rows_of(answer):
    assert answer.status_code == 200, answer.text
    return [*csv.DictReader(io.StringIO(answer.text))]


def table(rows, names=("id", "text")):
    file = io.StringIO()
    csv.writer(file).writerows([names, *rows])
    return file.getvalue().encode()


def test_each_row_keeps_its_place_and_its_columns_whatever_is_wrong_with_it(served):
    texts = [f'row {n}, "so"\nto say' for n in range(3000)]
    texts[7], texts[1000], texts[2000] = "no", "x" * 1001, " "
    found = rows_of(served.send(table(enumerate(texts)), CSV))
    assert [row["id"] for row in found] == [str(n) for n in range(3000)]
    assert [row["text"] for row in found] == texts
    wrong = {7: "no.", 1000: "at most 1,000 characters; found 1,001", 2000: "empty"}
    for number, row in enumerate(found):
        if number in wrong:
            assert wrong[number] in row["error"]
            assert row["prediction"] == ""
        else:
            assert (row["prediction"], row["error"]) == (texts[number][::-1], "")


def test_a_table_of_the_one_column_that_is_read_needs_no_header(served):
    found = rows_of(served.send(b"abc\ndef\n", CSV))
    assert [(row["text"], row["prediction"]) for row in found] == [("abc", "cba"), ("def", "fed")]


def test_a_first_row_that_cannot_be_read_takes_no_column_from_the_others(served):
    found = rows_of(served.send(b'"abc\n' * 200 + b"def\n", CSV))
    assert len(found) == 201
    assert "quote" in found[0]["error"]
    assert (found[-1]["text"], found[-1]["prediction"]) == ("def", "fed")


def test_a_column_that_answers_have_too_is_kept_under_its_name(served):
    found = rows_of(served.send(table([("a", "b", "c")], ("prediction", "text", "error")), CSV))
    assert found == [
        {"prediction": "a", "text": "b", "error": "c", "prediction_2": "b", "error_2": ""}
    ]


def test_tabs_and_bytes_that_are_no_text_are_read(served):
    found = served.send(b"text\tn\nabc\t1\nb\xff\t2\n", "text/tab-separated-values")
    assert [(row["prediction"], "bad UTF-8" in row["error"]) for row in rows_of(found)] == [
        ("cba", False), ("", True),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("body", "status", "told"),
    [
        (b"", 422, "Wanted a table; found no row."),
        (b"x" * 4_000_001, 413, "at most 4,000,000 bytes"),
        (b"text\na\0b\n", 200, "NUL"),
        (b'text\n"never closed', 200, "error"),
        (b"id,body\n1,abc\n", 422, "Wanted a header with text; found 'id', 'body'."),
        (b"title\nabc\n", 422, "Wanted a header with text; found 'title'."),
        (b"a b,c d,e f\n", 422, "Wanted a header with text"),
    ],
)
def test_what_is_no_table_is_refused_or_a_row_with_an_error(served, body, status, told):
    answer = served.send(body, CSV)
    assert answer.status_code == status
    assert told in answer.text


def test_a_header_of_many_names_alike_does_not_hold_the_server(served):
    start = time.monotonic()
    answer = served.send(b"text," + b"a," * 150_000 + b"a\nabc" + b"," * 150_001 + b"\n", CSV)
    assert answer.status_code in (200, 422)
    assert time.monotonic() - start < 20
    assert served.ask("abc").json() == {"prediction": "cba"}


def test_memory_does_not_grow_with_the_rows(served):
    def resident():
        text = served.get("metrics").text
        line = next(x for x in text.splitlines() if x.startswith("process_resident_memory_bytes"))
        return float(line.split()[1])

    rows_of(served.send(table([(1, "abc")]), CSV))
    before, most, count = resident(), 0.0, 0
    content = table((n, "word " * 15) for n in range(40_000))
    kind = {"Content-Type": CSV}
    with httpx.stream(
        "POST", f"{served.url}predict", content=content, headers=kind, timeout=60
    ) as answer:
        for part in answer.iter_bytes():
            count += part.count(b"\n")
            if count % 4000 < 64:
                most = max(most, resident())
    assert count == 40_001
    assert most - before < 30_000_000  # the answers alone are 6 MB, as objects ten times that


def test_options_are_those_of_any_request_without_reasons(served):
    assert (
        httpx.post(
            f"{served.url}predict?n_best=2", content=b"text\na\n", headers={"Content-Type": CSV}
        ).status_code
        == 400
    )


def test_a_model_that_fails_breaks_the_answer_off(served):
    content = table([(n, "abc") for n in range(200)] + [(200, "fail")])
    with pytest.raises(httpx.RemoteProtocolError, match="incomplete chunked read"):
        served.send(content, CSV)
    assert served.ask("abc").json() == {"prediction": "cba"}


def test_a_client_that_reads_nothing_is_given_up():
    limits = {"files": 1, "timeout": 1.0}
    with reversing(tables=True, tells=False, limits=limits) as served:
        body = table((n, "word " * 200) for n in range(10_000))
        asked = head(len(body)).replace(b"application/json", CSV.encode())
        with served.connection(asked + body):
            wait_until(lambda: served.send(b"text\na\n", CSV).status_code == 503)
            wait_until(lambda: served.send(b"text\na\n", CSV).status_code == 200, seconds=30)


def test_a_server_that_stops_breaks_a_table_off_and_ends(tmp_path):
    with reversing(tables=True, limits={"timeout": 5.0}) as served:
        rows = [(n, "abc") for n in range(64)] + [(64, f"hold {tmp_path / 'held'}")]
        content = table(rows + [(n, "abc") for n in range(65, 999)])
        kind = {"Content-Type": CSV}
        with httpx.stream("POST", f"{served.url}predict", content=content, headers=kind) as answer:
            parts = answer.iter_bytes()
            assert next(parts).startswith(b"id,text,prediction,error\n0,abc,cba,\n")
            wait_until((tmp_path / "held.begun").exists)
            served.process.send_signal(signal.SIGTERM)
            wait_until(lambda: served.get("ready").status_code == 503)
            (tmp_path / "held").touch()
            with pytest.raises(httpx.RemoteProtocolError):
                list(parts)
        assert served.ended()[0] == 0
