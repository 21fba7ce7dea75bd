import json
import logging
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from textmill.metrics.metric import MetricError
from textmill.metrics.reporters.jsonl import JsonLines
from textmill.metrics.reporters.reporter import RunInfo
from textmill.runtime.devices import Experiment
from textmill.runtime.jsonl_log import read_lines


class Lines:
    """A writer in memory."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    @property
    def size(self) -> int:
        return sum(len(line) + 1 for line in self.lines)

    def append(self, line: dict[str, Any]) -> None:
        self.lines.append(json.dumps(line, allow_nan=False))

    def sync(self) -> None: ...

    def close(self) -> None: ...

    def truncate_to(self, size: int) -> None:
        while self.size > size:
            self.lines.pop()


def reporter(folder: Path, lines: Lines | None = None) -> JsonLines:
    built: JsonLines = JsonLines.Config().build(xp=Experiment(folder=folder))
    built._lines = lines  # type: ignore[assignment]
    return built


def test_a_line_has_its_place_its_values_and_its_time() -> None:
    lines = Lines()
    jsonl = reporter(Path("nowhere"), lines)
    jsonl.start(RunInfo())
    time = {"elapsed": 1.5, "eta": None}
    place = {"step": 10, "total": 99, "epoch": 0.1, "examples": 640, "final": False, "time": time}
    jsonl.report("train", place, {"loss": 1 / 3, "lr": 1e-05})
    jsonl.close()
    assert lines.lines == [
        '{"split": "train", "step": 10, "epoch": 0.1, "examples": 640, "loss": 0.3333333333333333, '
        '"lr": 1e-05, "time": {"elapsed": 1.5, "eta": null}}'
    ]


def test_values_of_numpy_and_torch_and_those_json_has_not(tmp_path: Path) -> None:
    jsonl = reporter(tmp_path)
    values: dict[str, Any] = {
        "a": np.float64(0.5),
        "b": torch.tensor(2.5),
        "c": float("nan"),
        "d": np.float32("inf"),
        "e": -float("inf"),
        "f": np.int64(3),
    }
    jsonl.report("valid", {"step": 1}, values)
    jsonl.close()
    line = json.loads((tmp_path / "metrics.jsonl").read_text())
    assert line == {
        "split": "valid",
        "step": 1,
        "a": 0.5,
        "b": 2.5,
        "c": "NaN",
        "d": "Infinity",
        "e": "-Infinity",
        "f": 3,
        "time": {},
    }
    assert float(line["d"]) == float("inf")


def test_a_value_that_would_hide_the_place_is_refused(tmp_path: Path) -> None:
    with pytest.raises(MetricError) as error:
        reporter(tmp_path).report("valid", {"step": 1}, {"time": 3.0, "epoch": 1.0})
    assert str(error.value) == (
        "A value cannot be called epoch, time: in metrics.jsonl these words say where the run "
        "stands. Rename the metric."
    )


def test_a_value_without_a_form_in_json_is_named(tmp_path: Path) -> None:
    with pytest.raises(MetricError) as error:
        reporter(tmp_path).report("valid", {"step": 1}, {"loss": object()})  # type: ignore[dict-item]
    assert str(error.value) == (
        "valid value.loss is a object, which has no form in JSON. "
        "Report numbers, text, and mappings and lists of them."
    )


def test_a_file_that_someone_cut_is_left_alone(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "metrics.jsonl").write_text('{"split": "train"}\n')
    jsonl = reporter(tmp_path)
    with caplog.at_level(logging.WARNING):
        jsonl.load_state_dict({"bytes": 500})
    jsonl.start(RunInfo())
    jsonl.report("train", {"step": 3}, {})
    jsonl.close()
    assert caplog.messages == [
        "metrics.jsonl has 19 bytes, but had 500 when the checkpoint was saved: lines are missing. "
        "The run goes on and adds to what is there."
    ]
    assert len((tmp_path / "metrics.jsonl").read_text().splitlines()) == 2


def test_a_run_that_goes_on_keeps_its_lines(tmp_path: Path) -> None:
    (tmp_path / "metrics.jsonl").write_text('{"split": "train"}\n')
    jsonl = reporter(tmp_path)
    jsonl.start(RunInfo(step=1000))
    jsonl.close()
    assert (tmp_path / "metrics.jsonl").read_text() == '{"split": "train"}\n'


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
    assert [each.getMessage() for each in caplog.records] == [
        f"{tmp_path / 'metrics.jsonl'}: the values of single labels of valid at step 3 are left "
        "out: a line of so many would not be read again."
    ]


def test_values_of_fifty_thousand_labels_are_read_again(tmp_path, caplog):
    written = reporter(tmp_path)
    values = {f"label/{i}/{name}": 0.5 for i in range(50_000) for name in ("f1", "recall")}
    written.report("valid", {"step": 3}, values)
    written.close()
    assert [line.keys() >= values.keys() for line in read_lines(tmp_path / "metrics.jsonl")] == [
        True
    ]
    assert not caplog.records
