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
from textmill.runtime.bounded_files import opened
from textmill.runtime.disk import storing
from textmill.runtime.files import make_folder, write_atomic
from textmill.runtime.run_context import Experiment

__all__ = ["Predictions", "spread"]

LOG = logging.getLogger("textmill")
DIGITS = 16
"""Hexadecimal digits of a sha256, for what no stranger gains by: a state has one for each file."""
MISSING = "missing"
_NAME = re.compile(r"(?P<split>.+)-step-(?P<step>\d{8,18})\.jsonl")


@final
@registries.reporters.register("predictions")
class Predictions(Component, Reporter):
    """Writes ``predictions/<split>-step-00001000.jsonl`` per evaluation, whole or not at all.

    A line is a row as the task gives it: its number, inputs, prediction, references and score.
    During training a sample is written, the same rows each time, so that files can be compared; of
    an evaluation after training (progress ``final``, or split ``test``) everything. A resumed run
    writes the files again as they were: what is of a later step than its checkpoint is deleted.
    """

    class Config(BaseConfig):
        """How many rows are written; None is all of them, 0 none (and no file)."""

        sample: int | None = setting(20, in_key=False)
        """Rows per evaluation during training, spread evenly over the data; a minute's reading."""
        final: int | None = setting(None, in_key=False)
        """Rows of an evaluation after training; all of them, to find what goes wrong."""

    config: Config

    def __init__(self, config: Config, *, xp: Experiment) -> None:
        self.config = config
        self._folder = xp.folder / "predictions"
        self._newest: dict[str, int] = {}
        self._digests: dict[str, str] = {}
        self._resumed = False

    @override
    def start(self, info: RunInfo) -> None:
        if not self._resumed and info.step == 0:
            self._keep({})  # left by a start that was killed before its first checkpoint

    @override
    def report(self, split: str, progress: Progress, values: Mapping[str, float]) -> None:
        """Values are for other reporters."""

    @override
    def examples(self, split: str, progress: Progress, rows: Iterable[Row]) -> None:
        final = progress.get("final", split == "test")
        chosen = spread(list(rows), self.config.final if final else self.config.sample)
        if not chosen:
            return
        values = (json_value(row, name=f"row {i}") for i, row in enumerate(chosen))
        lines = [json.dumps(value, ensure_ascii=False) for value in values]
        make_folder(self._folder, parents=False)
        path = self._folder / f"{split}-step-{int(progress['step']):08}.jsonl"
        data = ("\n".join(lines) + "\n").encode("utf-8", "backslashreplace")
        write_atomic(path, data)
        self._digests[path.name] = hashlib.sha256(data).hexdigest()[:DIGITS]
        self._newest[split] = int(progress["step"])

    @override
    def state_dict(self) -> dict[str, Any]:
        """The newest step of each split, and what each file begins its sha256 with."""
        return {"newest": dict(self._newest), "files": dict(self._digests)}

    @override
    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Deletes the answers of later steps: the run does not come there again, or anew.

        Those of earlier steps that are not as they were written are deleted, too, and said: the
        weights that gave them are gone.
        """
        if "newest" in state:  # older checkpoints have none
            self._resumed = True
            self._keep({str(split): int(step) for split, step in state["newest"].items()})
        self._digests = {str(name): str(found) for name, found in state.get("files", {}).items()}
        for name in [name for name in self._digests if _NAME.fullmatch(name) and "/" not in name]:
            problem = _difference(self._folder / name, self._digests[name])
            if problem:
                del self._digests[name]
                LOG.warning("predictions/%s: the run goes on without it.", problem)
                if not problem.endswith(MISSING):
                    with storing(self._folder / name):
                        (self._folder / name).unlink()

    def _keep(self, newest: dict[str, int]) -> None:
        """Deletes all files of a step after their split's newest."""
        self._newest = newest
        for path in self._folder.glob("*-step-*.jsonl"):
            match = _NAME.fullmatch(path.name)
            if match and int(match["step"]) > newest.get(match["split"], -1):
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
