import json
import logging

import numpy as np
import pytest
import torch

from textmill.metrics.metric import MetricError
from textmill.metrics.reporters.jsonl import JsonLines, Predictions
from textmill.metrics.reporters.reporter import RunInfo
from textmill.runtime.devices import Experiment
from textmill.runtime.jsonl_log import read_lines
from textmill.text.cells import ListCell


def reporter(folder):
    return JsonLines.Config().build(xp=Experiment(folder=folder))


def test_a_line_has_its_place_its_values_and_its_time(tmp_path):
    jsonl = reporter(tmp_path)
    jsonl.start(RunInfo())
    time = {"elapsed": 1.5, "eta": None}
    place = {"step": 10, "total": 99, "epoch": 0.1, "examples": 640, "final": False, "time": time}
    jsonl.report("train", place, {"loss": 1 / 3, "lr": 1e-05})
    jsonl.close()
    assert (tmp_path / "metrics.jsonl").read_text().splitlines() == [
        '{"split": "train", "step": 10, "epoch": 0.1, "examples": 640, "loss": 0.3333333333333333, '
        '"lr": 1e-05, "time": {"elapsed": 1.5, "eta": null}}'
    ]


def test_values_of_numpy_and_torch_and_those_json_has_not(tmp_path):
    jsonl = reporter(tmp_path)
    values = {
        "a": np.float64(0.5), "b": torch.tensor(2.5), "c": float("nan"), "d": np.float32("inf"),
        "e": -float("inf"), "f": np.int64(3),
    }  # fmt: skip
    jsonl.report("valid", {"step": 1}, values)
    jsonl.close()
    line = json.loads((tmp_path / "metrics.jsonl").read_text())
    assert line == {
        "split": "valid", "step": 1, "a": 0.5, "b": 2.5, "c": "NaN", "d": "Infinity",
        "e": "-Infinity", "f": 3, "time": {},
    }  # fmt: skip
    assert float(line["d"]) == float("inf")


def test_a_value_that_would_hide_the_place_is_refused(tmp_path):
    with pytest.raises(MetricError, match="called epoch, time"):
        reporter(tmp_path).report("valid", {"step": 1}, {"time": 3.0, "epoch": 1.0})


def test_a_value_without_a_form_in_json_is_named(tmp_path):
    with pytest.raises(MetricError, match=r"value\.loss is a object"):
        reporter(tmp_path).report("valid", {"step": 1}, {"loss": object()})


def test_a_file_that_someone_cut_is_left_alone(tmp_path, caplog):
    (tmp_path / "metrics.jsonl").write_text('{"split": "train"}\n')
    jsonl = reporter(tmp_path)
    with caplog.at_level(logging.WARNING):
        jsonl.load_state_dict({"bytes": 500})
    jsonl.start(RunInfo())
    jsonl.report("train", {"step": 3}, {})
    jsonl.close()
    assert "19 bytes, but had 500" in caplog.text
    assert len((tmp_path / "metrics.jsonl").read_text().splitlines()) == 2


def test_values_of_more_labels_than_are_read_again_are_left_out_and_said(
    tmp_path, caplog, monkeypatch
):
    """A report reads all that a run writes: 260,000 labels, and where there are more it is said."""
    monkeypatch.setattr("textmill.runtime.jsonl_log.MOST_ITEMS", 100)
    written = reporter(tmp_path)
    labels = {f"label/{i}/f1": 0.5 for i in range(100)}
    written.report("valid", {"step": 3}, {"loss": 1.5, **labels})
    written.close()
    assert [*read_lines(tmp_path / "metrics.jsonl")] == [
        {"split": "valid", "step": 3, "loss": 1.5, "time": {}}
    ]
    assert "of valid at step 3 are left out" in caplog.text


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


def written(folder, split, progress, **settings):
    predictions = Predictions.Config(**settings).build(xp=Experiment(folder=folder))
    predictions.examples(split, progress, iter(ROWS))
    path = folder / "predictions" / f"{split}-step-{progress['step']:08}.jsonl"
    return [json.loads(line) for line in path.read_bytes().decode().split("\n")[:-1]]


def test_every_row_is_written(tmp_path):
    assert written(tmp_path, "valid", {"step": 8}) == ROWS
    assert written(tmp_path, "test", {"step": 7, "kept": True}) == ROWS
    assert names(tmp_path) == ["test-step-00000007.jsonl"], "no other object knew of the first"


def test_answers_of_weights_that_are_not_kept_are_not_written(tmp_path):
    predictions = Predictions.Config().build(xp=Experiment(folder=tmp_path))
    predictions.examples("valid", {"step": 1, "kept": False}, ROWS)
    assert not (tmp_path / "predictions").exists()


@pytest.mark.parametrize(("most", "count"), [(3, 3), (80, 50)])
def test_how_many_is_a_setting(tmp_path, most, count):
    rows = written(tmp_path, "valid", {"step": 1}, rows=most)
    assert len(rows) == count
    assert rows[0] == ROWS[0]


def names(folder):
    return sorted(path.name for path in (folder / "predictions").iterdir())


def test_a_better_evaluation_takes_the_place_of_the_one_before(tmp_path):
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


def test_a_run_that_goes_back_has_the_answers_of_its_checkpoint(tmp_path):
    predictions = Predictions.Config(rows=1).build(xp=Experiment(folder=tmp_path))
    predictions.start(RunInfo())
    predictions.examples("valid", {"step": 8}, ROWS)
    state = json.loads(json.dumps(predictions.state_dict()))
    predictions.examples("valid", {"step": 12}, ROWS)
    predictions.examples("test", {"step": 8}, ROWS)
    (tmp_path / "predictions" / "mine-step-1.jsonl").write_text("")
    predictions.load_state_dict(state)
    assert names(tmp_path) == ["mine-step-1.jsonl", "valid-step-00000008.jsonl"]


def test_a_fresh_start_deletes_what_a_killed_one_left(tmp_path):
    predictions = Predictions.Config(rows=1).build(xp=Experiment(folder=tmp_path))
    predictions.examples("valid", {"step": 12}, ROWS)
    predictions = Predictions.Config(rows=1).build(xp=Experiment(folder=tmp_path))
    predictions.start(RunInfo())
    assert names(tmp_path) == []


def test_a_list_of_the_data_is_one_in_the_file(tmp_path):
    predictions = Predictions.Config().build(xp=Experiment(folder=tmp_path))
    row = {"labels": ListCell(["New York", "Rome"]), "references": [ListCell(["a b"])]}
    predictions.examples("valid", {"step": 1}, iter([row]))
    text = (tmp_path / "predictions" / "valid-step-00000001.jsonl").read_text()
    assert json.loads(text) == {"labels": ["New York", "Rome"], "references": [["a b"]]}


@pytest.mark.parametrize("how", ["changed", "a link"])
def test_answers_that_were_damaged_do_not_stay_so_when_the_run_goes_on(tmp_path, how, caplog):
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
    else:
        path.write_bytes(data.replace(b"1", b"2") + b" ")
    for _ in range(2):
        predictions = Predictions.Config(rows=1).build(xp=Experiment(folder=tmp_path))
        predictions.load_state_dict(state)
        assert names(tmp_path) == ["test-step-00000008.jsonl"]
        state = predictions.state_dict()
        assert list(state["files"]) == ["test"]
    (said,) = caplog.messages
    assert said.startswith(f"predictions/{path.name}: ")
    assert how != "a link" or (tmp_path / "mine").read_bytes() == data
