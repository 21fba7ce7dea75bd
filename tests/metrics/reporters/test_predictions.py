import json
from pathlib import Path
from typing import Any

import pytest

from textmill.metrics.reporters.predictions import Predictions, spread
from textmill.metrics.reporters.reporter import RunInfo
from textmill.runtime.run_context import Experiment
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


def test_training_gets_a_sample_spread_over_the_data(tmp_path: Path) -> None:
    rows = written(tmp_path, "valid", {"step": 1000})
    assert len(rows) == 20
    assert rows[0] == ROWS[0]
    assert [row["row"] for row in rows][-3:] == [42, 45, 47]
    assert (tmp_path / "predictions" / "valid-step-00001000.jsonl").is_file()


def test_the_end_gets_everything(tmp_path: Path) -> None:
    assert written(tmp_path, "test", {"step": 7}) == ROWS
    assert written(tmp_path, "valid", {"step": 8, "final": True}) == ROWS
    assert len(written(tmp_path, "test", {"step": 9, "final": False})) == 20


@pytest.mark.parametrize(("settings", "count"), [({"sample": 3}, 3), ({"sample": None}, 50)])
def test_how_many_is_a_setting(tmp_path: Path, settings: dict[str, Any], count: int) -> None:
    assert len(written(tmp_path, "valid", {"step": 1}, **settings)) == count


def test_none_means_no_file(tmp_path: Path) -> None:
    predictions = Predictions.Config(sample=0).build(xp=Experiment(folder=tmp_path))
    predictions.examples("valid", {"step": 1}, ROWS)
    assert not (tmp_path / "predictions").exists()


def test_the_same_step_again_replaces_the_file(tmp_path: Path) -> None:
    first = written(tmp_path, "valid", {"step": 5}, sample=50)
    second = written(tmp_path, "valid", {"step": 5}, sample=2)
    assert (len(first), len(second)) == (50, 2)
    assert [p.name for p in (tmp_path / "predictions").iterdir()] == ["valid-step-00000005.jsonl"]


@pytest.mark.parametrize("most", [0, 1, 3, 49, 50, 51])
def test_a_spread_has_no_row_twice_and_keeps_the_order(most: int) -> None:
    numbers = [row["row"] for row in spread(ROWS, most)]
    assert numbers == sorted(set(numbers))
    assert len(numbers) == min(most, 50)


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in (folder / "predictions").iterdir())


def test_a_run_that_goes_back_deletes_the_answers_of_later_steps(tmp_path: Path) -> None:
    predictions = Predictions.Config(sample=1).build(xp=Experiment(folder=tmp_path))
    predictions.start(RunInfo())
    for step in (4, 8):
        predictions.examples("valid", {"step": step}, ROWS)
    state = json.loads(json.dumps(predictions.state_dict()))
    predictions.examples("valid", {"step": 12}, ROWS)
    predictions.examples("test", {"step": 8}, ROWS)
    (tmp_path / "predictions" / "mine-step-1.jsonl").write_text("")
    predictions.load_state_dict(state)
    kept = ["mine-step-1.jsonl", "valid-step-00000004.jsonl", "valid-step-00000008.jsonl"]
    assert names(tmp_path) == kept
    predictions.load_state_dict({})  # of an older checkpoint: what is there is not known
    assert names(tmp_path) == kept


def test_a_fresh_start_deletes_what_a_killed_one_left(tmp_path: Path) -> None:
    predictions = Predictions.Config(sample=1).build(xp=Experiment(folder=tmp_path))
    predictions.examples("valid", {"step": 12}, ROWS)
    predictions = Predictions.Config(sample=1).build(xp=Experiment(folder=tmp_path))
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
    predictions = Predictions.Config(sample=1).build(xp=Experiment(folder=tmp_path))
    predictions.start(RunInfo())
    for step in (4, 8):
        predictions.examples("valid", {"step": step}, ROWS)
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
        predictions = Predictions.Config(sample=1).build(xp=Experiment(folder=tmp_path))
        predictions.load_state_dict(state)
        assert names(tmp_path) == ["valid-step-00000008.jsonl"]
        state = predictions.state_dict()
        assert list(state["files"]) == names(tmp_path)
    why = {"missing": "missing", "a link": "cannot be read: a symbolic link"}
    said = why.get(how, "not as it was written; deleted")
    assert caplog.messages == [f"predictions/{path.name}: {said}: the run goes on without it."]
    assert how != "a link" or (tmp_path / "mine").read_bytes() == data
