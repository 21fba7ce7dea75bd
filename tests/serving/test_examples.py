"""Rows to try: of the newest evaluation, in bounded size."""

import json

from tests.serving.served import Reversed
from textmill.exported.manifest import seal_folder
from textmill.serving.examples import LONGEST, SHOWN, examples_of


def write(folder, name, lines):
    folder.joinpath("predictions").mkdir(exist_ok=True)
    folder.joinpath("predictions", name).write_text("".join(f"{line}\n" for line in lines))


def test_they_are_spread_over_the_newest_evaluation(tmp_path):
    write(tmp_path, "valid_data-step-00000001.jsonl", [json.dumps({"text": "old"})])
    rows = [{"row": n, "text": f"t{n}", "prediction": "x"} for n in range(60)]
    write(tmp_path, "valid_data-step-00000002.jsonl", map(json.dumps, rows))
    found = examples_of(tmp_path, Reversed(["text"]))
    assert found == [{"text": f"t{n}"} for n in range(0, 60, 60 // SHOWN)]
    exported = tmp_path / "export" / "onnx"
    exported.mkdir(parents=True)
    facts = {"search": {}, "compared": {}, "versions": {}, "answers": {}}
    seal_folder(exported, {"graph": "onnx", "source": {"key": "0a1b"}, **facts})
    assert examples_of(exported, Reversed(["text"])) == []  # of what stands there nothing is known
    for key, shown in (("0a1c", []), ("0a1b", found)):
        (tmp_path / "run.json").write_text(json.dumps({"key": key}))
        assert examples_of(exported, Reversed(["text"])) == shown
    (tmp_path / "run.json").write_text("[]")
    assert examples_of(exported, Reversed(["text"])) == []


def test_a_run_in_a_folder_called_export_has_its_own(tmp_path):
    run = tmp_path / "export" / "run"
    run.mkdir(parents=True)
    write(run, "valid_data-step-00000001.jsonl", [json.dumps({"text": "own"})])
    assert examples_of(run, Reversed(["text"])) == [{"text": "own"}]


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
