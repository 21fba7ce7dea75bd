"""Rows to try: of the newest evaluation, in bounded size."""

import json

from tests.serving.served import Reversed
from weft.serving.examples import LONGEST, SHOWN, examples_of


def write(folder, name, lines):
    folder.joinpath("predictions").mkdir(exist_ok=True)
    folder.joinpath("predictions", name).write_text("".join(f"{line}\n" for line in lines))


def test_they_are_spread_over_the_newest_evaluation(tmp_path):
    write(tmp_path, "valid_data-step-00000001.jsonl", [json.dumps({"text": "old"})])
    rows = [{"row": n, "text": f"t{n}", "prediction": "x"} for n in range(60)]
    write(tmp_path, "valid_data-step-00000002.jsonl", map(json.dumps, rows))
    found = examples_of(tmp_path, Reversed(["text"]))
    assert found == [{"text": f"t{n}"} for n in range(0, 60, 60 // SHOWN)]
    inside, alone = tmp_path / "export" / "onnx", tmp_path / "elsewhere" / "onnx"
    for folder in (inside, alone):
        folder.mkdir(parents=True)
    assert examples_of(inside, Reversed(["text"])) == found
    assert examples_of(alone, Reversed(["text"])) == []


def test_a_run_without_an_evaluation_of_such_rows_has_none(tmp_path):
    assert examples_of(tmp_path, Reversed(["text"])) == []
    write(tmp_path, "valid_data-step-00000001.jsonl", ['{"source": "a"}', "{"])
    write(tmp_path, "valid_data-step-00000002.jsonl", ["[]", "5"])
    tmp_path.joinpath("predictions", "x.jsonl").symlink_to("/dev/zero")
    assert examples_of(tmp_path, Reversed(["text"])) == []


def test_a_book_is_no_example(tmp_path):
    rows = [{"text": "a" * LONGEST}, {"text": "b"}, {"text": "no"}]  # the last cannot be answered
    write(tmp_path, "valid_data-step-00000001.jsonl", map(json.dumps, rows))
    assert examples_of(tmp_path, Reversed(["text"])) == [{"text": "b"}]
