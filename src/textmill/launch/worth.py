"""What a checkpoint is worth: its own values, or those of a run that is trained from it."""

import hashlib
import json
import math
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from typing_extensions import override

from textmill.checkpoint.layout import CHECKPOINTS, step_of
from textmill.checkpoint.manifest import manifest_of
from textmill.config.planning.key import run_key
from textmill.config.sources.open_recipe import stages_of
from textmill.errors import TextmillError, UserError
from textmill.launch.cells import Named
from textmill.metrics.tables import format_value, text_table
from textmill.run_folder.folder import RunFolder
from textmill.run_folder.record import mapping, numbers, selected_by
from textmill.runs.fingerprints import read_data
from textmill.runs.resume import length_of
from textmill.runtime.files import remove_folder
from textmill.runtime.jsonl_log import read_lines
from textmill.runtime.lock import owner_of

EVALUATIONS = "evaluations"
"""The folder in a run for its evaluations; the watch locks it, not the run."""
LINES = "evaluations.jsonl"


@dataclass(frozen=True)
class Checkpoint:
    """A checkpoint of which something certain is asked; ``place`` is the stem of its files."""

    run: Path
    path: Path
    place: str

    @classmethod
    def of(cls, run: Path, path: Path, asked: Mapping[str, Any]) -> "Checkpoint":
        """The checkpoint; one of the same step that was saved anew is another one."""
        content = json.dumps([manifest_of(path)[1], asked])
        return cls(run, path, f"{path.name}-{hashlib.sha256(content.encode()).hexdigest()[:8]}")

    def file(self, suffix: str = "") -> Path:
        """The file of the output (``.txt``) or of the values (``.json``), or the tuned run."""
        return self.run / EVALUATIONS / f"{self.place}{suffix}"

    @property
    def label(self) -> str:
        return f"{self.run} step {step_of(self.path):,}"


class Worth:
    """How a checkpoint is measured: by ``textmill evaluate``, with words and options of that."""

    def __init__(self, words: Sequence[str], options: Sequence[str] = ()) -> None:
        self.asked: dict[str, Any] = {"words": [*words]}
        """What is typed, and whatever else tells its lines from those of others."""
        self.options = options

    def command(self, checkpoint: Checkpoint) -> list[str]:
        """The words of the ``textmill`` that measures it, or goes on with that."""
        words = ["evaluate", str(checkpoint.run), *self.asked["words"], *self.options]
        values = str(checkpoint.file(".json"))
        return [*words, "--checkpoint", checkpoint.path.name, "--values", values]

    def found(self, checkpoint: Checkpoint) -> dict[str, Any] | None:
        """What that has left: ``values``, by the name of their data; None if it has not ended."""
        values = checkpoint.file(".json")
        return {"values": json.loads(values.read_text("utf-8"))} if values.is_file() else None


class Tuning(Worth):
    """By the run of a recipe that begins with it: the run's best of valid_data, and its test_data.

    Words are its settings; ``root`` is where the watched run is or will be. A recipe that cannot be
    trained, as far as its plan and its data tell, is refused at once.
    """

    def __init__(self, named: Named, words: Sequence[str], root: Path) -> None:
        super().__init__(["--tune", named.recipe, *words])
        self.named, self.words = named, words
        planned = named.plan([*words, f"trainer.initialize={root}"])
        if planned.tasks or planned.run is not None or stages_of(named.recipe):
            raise UserError(
                f"{named.recipe} is a run, or makes several (tasks, stages). Name a recipe of one."
            )
        if "valid_data" not in planned.plan.order:
            raise UserError(
                f"what is tuned is compared on its valid_data, and {named.recipe} has none. "
                "Give it valid_data.path=..., or train_data.holdout=0.1."
            )
        read_data(planned.start(Path(), "train", named.device), planned.plan, None)
        meant = json.dumps([run_key(planned.plan), length_of(planned.plan)])
        # The same words mean another run when the file of the recipe is edited.
        self.asked["plan"] = hashlib.sha256(meant.encode()).hexdigest()[:8]

    @override
    def command(self, checkpoint: Checkpoint) -> list[str]:
        words = self.named.command([*self.words, f"trainer.initialize={checkpoint.path}"])
        return [*words, "--run-dir", str(checkpoint.file())]

    @override
    def found(self, checkpoint: Checkpoint) -> dict[str, Any] | None:
        with suppress(TextmillError, OSError):
            run = RunFolder(checkpoint.file())
            ends = (("valid_data", "best"), ("test_data", "test"))
            values = {data: of for data, end in ends if (of := numbers(mapping(run.result, end)))}
            if run.finished and "valid_data" in values:
                place = f"{EVALUATIONS}/{checkpoint.place}"
                return {"values": values, "selected_by": run.info.get("selected_by"), "run": place}
        return None


def remove_worse(run: Path, at_work: Collection[Path] = ()) -> None:
    """Deletes the runs that were trained from a run's checkpoints and are over, except the best.

    One is over when its values are known, or when it cannot begin any more: its checkpoint is gone.
    """
    ended = {run / str(x["run"]) for x in read_lines(run / EVALUATIONS / LINES) if "run" in x}
    stay = {run / str(each["run"]) for each in best_of(run) if "run" in each} | {*at_work}
    for tuned in {path.parent for path in (run / EVALUATIONS).glob("*/run.json")} - stay:
        begun_from = run / CHECKPOINTS / tuned.name.rpartition("-")[0]
        if (tuned in ended or not begun_from.is_dir()) and owner_of(tuned) is None:
            remove_folder(tuned)


def best_of(run: Path) -> list[dict[str, Any]]:
    """The best of a run's evaluations for whatever was asked, by what is selected by.

    It is the best value itself, the later of equal ones: standard errors are not kept here. If the
    data has no such value, the loss alone decides.
    """
    info = RunFolder(run).info
    best: dict[str, tuple[tuple[float, float], dict[str, Any]]] = {}
    for line in read_lines(run / EVALUATIONS / LINES):
        step, values = numbers(line, ()).get("step", 0.0), mapping(line, "values")
        metric, sign = selected_by(line if "selected_by" in line else info)
        facts = {n: line[n] for n in ("checkpoint", "step", "words", "plan", "run") if n in line}
        measured = [
            ((way * value, step), {**facts, "data": data, "metric": name, "value": value})
            for name, way in ((metric, sign), ("loss", -1.0))
            for data in values
            if not math.isnan(value := numbers(mapping(values, data), ()).get(name, math.nan))
        ]
        for one in measured[:1]:
            asked = json.dumps([line.get("words"), line.get("plan")])
            best[asked] = max(best.get(asked, one), one, key=lambda each: each[0])
    return [facts for _, facts in best.values()]


def best_table(runs: Sequence[Path], asked: Mapping[str, Any]) -> str:
    """A table of the runs of which this was asked: how often it was measured, and the best."""
    rows = []
    for run in runs:
        with suppress(OSError, TextmillError):
            lines = [x for x in read_lines(run / EVALUATIONS / LINES) if "values" in x]
            count = sum(asked.items() <= line.items() for line in lines)
            for best in (each for each in best_of(run) if asked.items() <= each.items()):
                place = str(run / best["run"]) if "run" in best else str(best["checkpoint"])
                value = f"{best['metric']} {format_value(best['metric'], best['value'])}"
                rows.append([str(run), str(count), place, f"{best['data']} {value}"])
    return text_table(["run", "evaluated", "best", "value"], rows) if rows else ""
