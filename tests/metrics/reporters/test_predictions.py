import json
from pathlib import Path
from typing import Any

import pytest

from textmill.metrics.reporters.predictions import Predictions, spread
from textmill.metrics.reporters.reporter import RunInfo
from textmill.runtime.devices import Experiment
from textmill.text.cells import ListCell

ROWS = [
    {
        "row": i,
        "source": f"s{i}",
        "references": ["Où ?", "x\u2028y"],
        "prediction": "é",
        "score": -0.5,
    }
    for i in range(50)
]


def written(folder: Path, split: str, progress: dict[str, Any], **settings: Any) -> list[Any]:
    predictions = Predictions.Config(**settings).build(xp=Experiment(folder=folder))
    predictions.examples(split, progress, iter(ROWS))
    path = folder / "predictions" / f"{split}-step-{progress['step']:08}.jsonl"
    return [json.loads(line) for line in path.read_bytes().decode().split("\n")[:-1]]


def test_every_row_is_written(tmp_path: Path) -> None:
    assert written(tmp_path, "valid", {"step": 8}) == ROWS
    assert written(tmp_path, "test", {"step": 7, "kept": True}) == ROWS
    assert names(tmp_path) == ["test-step-00000007.jsonl"], "no other object knew of the first"


def test_answers_of_weights_that_are_not_kept_are_not_written(tmp_path: Path) -> None:
    predictions = Predictions.Config().build(xp=Experiment(folder=tmp_path))
    predictions.examples("valid", {"step": 1, "kept": False}, ROWS)
    assert not (tmp_path / "predictions").exists()


@pytest.mark.parametrize(("most", "count"), [(3, 3), (None, 50), (80, 50)])
def test_how_many_is_a_setting(tmp_path: Path, most: int | None, count: int) -> None:
    rows = written(tmp_path, "valid", {"step": 1}, rows=most)
    assert len(rows) == count
    assert rows[0] == ROWS[0]


def test_none_means_no_file(tmp_path: Path) -> None:
    predictions = Predictions.Config(rows=0).build(xp=Experiment(folder=tmp_path))
    predictions.examples("valid", {"step": 1}, ROWS)
    assert not (tmp_path / "predictions").exists()


def test_the_same_step_again_replaces_the_file(tmp_path: Path) -> None:
    first = written(tmp_path, "valid", {"step": 5}, rows=50)
    second = written(tmp_path, "valid", {"step": 5}, rows=2)
    assert (len(first), len(second)) == (50, 2)
    assert names(tmp_path) == ["valid-step-00000005.jsonl"]


@pytest.mark.parametrize("most", [0, 1, 3, 49, 50, 51])
def test_a_spread_has_no_row_twice_and_keeps_the_order(most: int) -> None:
    numbers = [row["row"] for row in spread(ROWS, most)]
    assert numbers == sorted(set(numbers))
    assert len(numbers) == min(most, 50)


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in (folder / "predictions").iterdir())


def test_a_better_evaluation_takes_the_place_of_the_one_before(tmp_path: Path) -> None:
    """That of a checkpoint goes when a later checkpoint is there: a killed run needs it."""
    predictions = Predictions.Config(rows=1).build(xp=Experiment(folder=tmp_path))
    predictions.start(RunInfo())
    predictions.examples("valid", {"step": 4, "kept": True}, ROWS)
    predictions.state_dict()
    predictions.examples("valid", {"step": 8, "kept": True}, ROWS)
    assert names(tmp_path) == ["valid-step-00000004.jsonl", "valid-step-00000008.jsonl"]
    predictions.state_dict()
    predictions.examples("valid", {"step": 12, "kept": False}, ROWS)
    assert names(tmp_path) == ["valid-step-00000008.jsonl"]
    predictions.examples("test", {"step": 12, "kept": True}, ROWS)
    predictions.end({})
    assert names(tmp_path) == ["test-step-00000012.jsonl", "valid-step-00000008.jsonl"]


def test_a_run_that_goes_back_has_the_answers_of_its_checkpoint(tmp_path: Path) -> None:
    predictions = Predictions.Config(rows=1).build(xp=Experiment(folder=tmp_path))
    predictions.start(RunInfo())
    predictions.examples("valid", {"step": 8}, ROWS)
    state = json.loads(json.dumps(predictions.state_dict()))
    predictions.examples("valid", {"step": 12}, ROWS)
    predictions.examples("test", {"step": 8}, ROWS)
    (tmp_path / "predictions" / "mine-step-1.jsonl").write_text("")
    predictions.load_state_dict(state)
    assert names(tmp_path) == ["mine-step-1.jsonl", "valid-step-00000008.jsonl"]


def test_a_state_names_no_file_elsewhere(tmp_path: Path) -> None:
    (tmp_path / "mine-step-00000001.jsonl").write_text("{}\n")
    predictions = Predictions.Config().build(xp=Experiment(folder=tmp_path))
    predictions.load_state_dict({"files": {"../mine": {"step": 1, "sha256": ""}}})
    assert predictions.state_dict() == {"files": {}}
    assert (tmp_path / "mine-step-00000001.jsonl").exists()


def test_a_fresh_start_deletes_what_a_killed_one_left(tmp_path: Path) -> None:
    predictions = Predictions.Config(rows=1).build(xp=Experiment(folder=tmp_path))
    predictions.examples("valid", {"step": 12}, ROWS)
    predictions = Predictions.Config(rows=1).build(xp=Experiment(folder=tmp_path))
    predictions.start(RunInfo())
    assert names(tmp_path) == []


def test_a_list_of_the_data_is_one_in_the_file(tmp_path: Path) -> None:
    predictions = Predictions.Config().build(xp=Experiment(folder=tmp_path))
    row = {"labels": ListCell(["New York", "Rome"]), "references": [ListCell(["a b"])]}
    predictions.examples("valid", {"step": 1}, iter([row]))
    text = (tmp_path / "predictions" / "valid-step-00000001.jsonl").read_text()
    assert json.loads(text) == {"labels": ["New York", "Rome"], "references": [["a b"]]}


@pytest.mark.parametrize("how", ["changed", "cut", "missing", "a link"])
def test_answers_that_were_damaged_do_not_stay_so_when_the_run_goes_on(
    tmp_path: Path, how: str, caplog: pytest.LogCaptureFixture
) -> None:
    predictions = Predictions.Config(rows=1).build(xp=Experiment(folder=tmp_path))
    predictions.start(RunInfo())
    predictions.examples("valid", {"step": 4}, ROWS)
    predictions.examples("test", {"step": 8}, ROWS)
    state = json.loads(json.dumps(predictions.state_dict()))
    path = tmp_path / "predictions" / "valid-step-00000004.jsonl"
    data = path.read_bytes()
    path.unlink()
    if how == "a link":
        (tmp_path / "mine").write_bytes(data)
        path.symlink_to(tmp_path / "mine")
    elif how != "missing":
        path.write_bytes(data[:-3] if how == "cut" else data.replace(b"1", b"2") + b" ")
    for _ in range(2):
        predictions = Predictions.Config(rows=1).build(xp=Experiment(folder=tmp_path))
        predictions.load_state_dict(state)
        assert names(tmp_path) == ["test-step-00000008.jsonl"]
        state = predictions.state_dict()
        assert list(state["files"]) == ["test"]
    why = {"missing": "missing", "a link": "cannot be read: a symbolic link"}
    said = why.get(how, "not as it was written; deleted")
    assert caplog.messages == [f"predictions/{path.name}: {said}: the run goes on without it."]
    assert how != "a link" or (tmp_path / "mine").read_bytes() == data
