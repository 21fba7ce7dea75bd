"""The model of a pipeline: named, below ``$TEXTMILL_HOME``, or shipped; a run or an export."""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from textmill.checkpoint.layout import CHECKPOINTS, TEXT
from textmill.config.values.raw_values import Entries, Scalar
from textmill.config.values.yaml_files import read_yaml
from textmill.errors import TextmillError, UserError, worded
from textmill.exported.manifest import ExportManifest, is_export
from textmill.exported.row_predictor import RowPredictor
from textmill.runs.answering import load_answering
from textmill.text.metadata import read_description

HOME = "TEXTMILL_HOME"
"""The variable of the environment that says where models lie."""
DESCRIPTION = "text.json"
"""What a saved text processor says of itself."""
SHIPPED = Path(__file__).parent / "shipped"
"""The models that come with textmill: exports, each in the folder of its pipeline's name."""


def models_home() -> Path:
    """The folder in which pipelines look for their models: ``$TEXTMILL_HOME/models``.

    Where ``TEXTMILL_HOME`` is not set it is ``~/.textmill``.
    """
    return Path(os.environ.get(HOME) or Path.home() / ".textmill") / "models"


@dataclass(frozen=True, kw_only=True)
class ModelWanted:
    """Which model a pipeline needs, and how one is made."""

    name: str
    """Of its folder below :func:`models_home`."""
    tasks: Mapping[str, str]
    """The tasks that it may be trained for, each with the kind of its saved text processor."""
    training: str
    """The words after ``textmill train`` that make one."""
    rows: str = ""
    """What the files in ``training`` have, and where they are from."""
    none_shipped: str = ""
    """Why textmill ships no such model; empty if it does, or if the pipeline is not its own."""

    @property
    def command(self) -> str:
        """The command that makes one where it is looked for."""
        return f"textmill train {self.training} --run-dir {models_home() / self.name}"


def find_model(wanted: ModelWanted, model: str | Path | None = None) -> Path:
    """The folder of a pipeline's model: named, else below :func:`models_home`, else shipped."""
    folder = models_home() / wanted.name if model is None else Path(model)
    if model is None and not folder.is_dir():
        shipped = SHIPPED / wanted.name
        if not shipped.is_dir():
            raise _no_model(wanted, folder)
        return shipped
    from textmill.tasks.registries import tasks

    task, kind = task_of(folder)
    is_other = task in tasks.names() and task not in wanted.tasks
    if is_other or (kind and kind not in wanted.tasks.values()):
        raise UserError(
            f"{folder} is a model for the task {task or kind}; {wanted.name} needs one for "
            f"{' or '.join(wanted.tasks)}. Train one: {wanted.command}"
        )
    return folder


def load_model(
    wanted: ModelWanted,
    model: str | Path | None = None,
    *,
    device: str = "auto",
    allow_code: bool = False,
) -> RowPredictor:
    """The model of a pipeline, ready to answer; torch is needed for that of a run alone.

    The arguments are those of :func:`find_model` and :func:`textmill.runs.load_run.load`.
    """
    folder = find_model(wanted, model)
    predictor = load_answering(folder, device=device, allow_code=allow_code)
    if len(predictor.columns) != 1:
        raise UserError(
            f"{folder} reads the columns {', '.join(predictor.columns)}; a pipeline gives its "
            "model texts alone. Train one that reads a single column."
        )
    return predictor


def task_of(folder: Path) -> tuple[str | None, str | None]:
    """The task that a run or an export was trained for, and the kind of its text processor.

    Small files say both, and nothing else is read. None stands for what is not said.
    """
    if is_export(folder):
        try:
            task = ExportManifest.read(folder).source.get("task")
        except TextmillError:  # told when it is loaded
            task = None
        return (task if isinstance(task, str) else None), _kind(folder / TEXT)
    texts = sorted(folder.glob(f"{CHECKPOINTS}/*/{TEXT}"))
    return _task_of_run(folder), _kind(texts[-1]) if texts else None


def _task_of_run(folder: Path) -> str | None:
    try:
        node: Any = read_yaml(folder / "config.yaml")
    except TextmillError:  # there is none, or it is damaged
        return None
    for name in ("settings", "task", "type"):
        node = node.entries.get(name) if isinstance(node, Entries) else None
    return node.text if isinstance(node, Scalar) else None


def _kind(text: Path) -> str | None:
    try:
        return read_description(text / DESCRIPTION)[0]
    except TextmillError:
        return None


def _no_model(wanted: ModelWanted, folder: Path) -> UserError:
    """That there is no model, with the ways to have one."""
    rows = f"  its rows:      {wanted.rows}\n" if wanted.rows else ""
    say = worded("--model FOLDER", "model='FOLDER'")
    none = f"textmill ships none: {wanted.none_shipped}. " if wanted.none_shipped else ""
    return UserError(
        f"There is no model for {wanted.name}: {folder} is not there. {none}Three ways to have "
        "one:\n"
        f"  train it:      {wanted.command}\n{rows}"
        f"  name it:       {say}, a run or an export that you have or were given\n"
        f"  put it there:  copy such a folder to {folder}, or set {HOME} to where models/ is"
    )
