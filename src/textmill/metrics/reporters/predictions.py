"""``predictions/``: what the model answered, to read beside the inputs and references."""

import hashlib
import json
import logging
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, final

from typing_extensions import override

from textmill.config.component import Component, setting
from textmill.config.component import Config as BaseConfig
from textmill.errors import DataError
from textmill.metrics import registries
from textmill.metrics.reporters.jsonl import json_value
from textmill.metrics.reporters.reporter import Progress, Reporter, Row, RunInfo
from textmill.runtime.devices import Experiment
from textmill.runtime.disk import storing
from textmill.runtime.files import make_folder, opened, replacing

LOG = logging.getLogger("textmill")
DIGITS = 16
"""Hexadecimal digits of a sha256 that tell two files apart; no stranger gains by a false one."""
_NAME = re.compile(r".+-step-\d{8,18}\.jsonl")


@final
@registries.reporters.register("predictions")
class Predictions(Component, Reporter):
    """Writes ``predictions/<split>-step-00001000.jsonl``: every row, answered by the kept weights.

    A line is a row as the task gives it: its number, inputs, prediction, references and score. An
    evaluation of weights that the run does not keep (progress ``kept`` is False) writes nothing; a
    better one takes the place of the one before. A resumed run has the files that its checkpoint
    names: later ones are deleted.
    """

    class Config(BaseConfig):
        """How many rows a file has."""

        rows: int | None = setting(None, in_key=False)
        """Most rows of a file, spread evenly over the data; null is all, 0 none (and no file)."""

    config: Config

    def __init__(self, config: Config, *, xp: Experiment) -> None:
        self.config = config
        self._folder = xp.folder / "predictions"
        self._files: dict[str, dict[str, Any]] = {}
        """By split: the step of its file, and what the file's sha256 begins with."""
        self._saved: set[Path] = set()
        """The files that the newest checkpoint names: a resumed run needs them."""
        self._resumed = False

    @override
    def start(self, info: RunInfo) -> None:
        if not self._resumed and info.step == 0:
            self._keep_only(set())  # left by a start that was killed before its first checkpoint

    @override
    def report(self, split: str, progress: Progress, values: Mapping[str, float]) -> None:
        """Values are for other reporters."""

    @override
    def examples(self, split: str, progress: Progress, rows: Iterable[Row]) -> None:
        self._keep_only({*self._current(), *self._saved})
        chosen = spread(list(rows), self.config.rows) if progress.get("kept", True) else ()
        if not chosen:
            return
        make_folder(self._folder, parents=False)
        step = int(progress["step"])
        with replacing(self._path(split, step)) as file:
            for i, row in enumerate(chosen):
                line = json.dumps(json_value(row, name=f"row {i}"), ensure_ascii=False)
                file.write(f"{line}\n".encode("utf-8", "backslashreplace"))
        self._files[split] = {"step": step, "sha256": file.sha256[:DIGITS]}

    @override
    def end(self, summary: Mapping[str, Any]) -> None:
        self._keep_only(self._current())

    @override
    def state_dict(self) -> dict[str, Any]:
        """The step of each split's file, and what its sha256 begins with."""
        self._saved = self._current()
        return {"files": {split: dict(facts) for split, facts in self._files.items()}}

    @override
    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Deletes the files that the checkpoint does not name: the run comes there anew, or never.

        One that is not as it was written is deleted, too, with a warning: the weights that gave
        its answers are gone.
        """
        self._resumed = True
        self._files = {}
        for split, facts in state["files"].items():
            path = self._path(str(split), int(facts["step"]))
            if path.parent != self._folder:
                continue
            problem = _difference(path, str(facts["sha256"]))
            if problem is None:
                self._files[str(split)] = dict(facts)
            else:
                LOG.warning("predictions/%s: the run goes on without it.", problem)
        self._saved = self._current()
        self._keep_only(self._saved)

    def _path(self, split: str, step: int) -> Path:
        return self._folder / f"{split}-step-{step:08}.jsonl"

    def _current(self) -> set[Path]:
        return {self._path(split, facts["step"]) for split, facts in self._files.items()}

    def _keep_only(self, needed: set[Path]) -> None:
        for path in self._folder.glob("*-step-*.jsonl"):
            if path not in needed and _NAME.fullmatch(path.name):
                with storing(path):
                    path.unlink()


def _difference(path: Path, digest: str) -> str | None:
    try:
        with opened(path, DataError) as (file, _):
            found = hashlib.file_digest(file, "sha256").hexdigest()
    except DataError as error:
        return str(error)
    return None if found.startswith(digest) else f"{path.name}: not as it was written; deleted"


def spread(rows: Sequence[Row], most: int | None) -> Sequence[Row]:
    """At most ``most`` rows, evenly spread over all, in order; None is all.

    Example:
        >>> [row["row"] for row in spread([{"row": i} for i in range(100)], 4)]
        [0, 25, 50, 75]
    """
    if most is None or most >= len(rows):
        return rows
    return [rows[i * len(rows) // most] for i in range(most)]
