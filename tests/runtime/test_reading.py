"""Files of run folders: only regular ones are read, of bounded size, depth and number of items."""

import json
import os

import pytest

from textmill.errors import CheckpointError
from textmill.runtime.files import MOST_DEPTH, MOST_ITEMS, parse_json, read_all


def put(path, kind):
    match kind:
        case "pipe":
            os.mkfifo(path)
        case "folder":
            path.mkdir()
        case "device":
            path.symlink_to("/dev/zero")
        case "link":
            path.with_name("other").write_text("{}")
            path.symlink_to(path.with_name("other"))
        case "10 GB of nothing":
            with path.open("wb") as file:
                file.truncate(10 << 30)


@pytest.mark.parametrize(
    ("kind", "message", "followed"),
    [
        ("none", "missing", "missing"),
        ("pipe", "not a regular file", "not a regular file"),
        ("folder", "not a regular file", "not a regular file"),
        ("device", "cannot be read: a symbolic link", "not a regular file"),
        ("link", "cannot be read: a symbolic link", None),
        ("10 GB of nothing", *["10,737,418,240 bytes are more than the 100 allowed"] * 2),
    ],
)
def test_a_file_that_no_run_writes_is_not_read(tmp_path, kind, message, followed):
    path = tmp_path / "run.json"
    put(path, kind)
    for links, why in ((False, message), (True, followed)):
        if why is None:
            assert read_all(path, 100, CheckpointError, links=links) == b"{}"
            continue
        with pytest.raises(CheckpointError) as caught:
            read_all(path, 100, CheckpointError, links=links)
        assert str(caught.value) == f"run.json: {why}"


def nested(depth):
    return b"[" * depth + b"]" * depth


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"{", "not readable as JSON: Expecting property name"),
        (b'{"a": 1, "a": 2}', "not readable as JSON: a key is given twice"),
        (b"[1e999]", "not readable as JSON: 1e999 is not a number here"),
        (b"-" + b"9" * 100, "not readable as JSON: -9999999999999999999… is not a number here"),
        (nested(MOST_DEPTH + 1), "nested too deeply"),
        (nested(100_000), "nested too deeply"),
        (b'{"a":' * 300 + b"1" + b"}" * 300, "nested too deeply"),
        (
            b"[" + b"[]," * (21 << 20) + b"1]",
            "44,040,193 items are more than the 1,048,576 allowed",
        ),
    ],
)
def test_json_that_no_run_writes_is_refused(data, message):
    with pytest.raises(CheckpointError) as caught:
        parse_json(data, "state.json", CheckpointError)
    assert str(caught.value).startswith(f"state.json: {message}")


def test_json_of_a_run_is_read_as_it_is():
    value = {"a": [1, -1.5, None, True, "é\ud800"], "b": {"words": [2**128 - 1]}}
    assert parse_json(json.dumps(value).encode(), "a", CheckpointError) == value
    assert parse_json(nested(MOST_DEPTH), "a", CheckpointError)
    many = [0] * (MOST_ITEMS - 2)
    assert parse_json(json.dumps(many).encode(), "a", CheckpointError) == many
    assert parse_json(b"[Infinity, 1e999]", "a", CheckpointError, nan=True) == [float("inf")] * 2
