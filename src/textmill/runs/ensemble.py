"""Joining finished runs: an ensemble of them, as a run that needs none of them any more."""

import hashlib
import logging
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from textmill.checkpoint.layout import CHECKPOINTS
from textmill.checkpoint.manifest import manifest_of
from textmill.config.ingredient import DATA
from textmill.config.values.raw_values import untyped
from textmill.errors import UserError, worded
from textmill.inference.load import load_run, saved_nodes
from textmill.run_folder.folder import RunFolder
from textmill.runs.task_folders import write_run
from textmill.tasks.several.ensemble import Ensemble, EnsembleModel, refuse_others

LOG = logging.getLogger("textmill")


def ensemble(
    runs: Sequence[str | Path],
    out: str | Path,
    *,
    checkpoint: str = "best",
) -> Path:
    """Writes an ensemble of finished runs as a run folder, and returns it.

    All weights and text processors are copied into it, so it predicts, is evaluated, exported and
    served like any run, and needs none of its members.

    Args:
        runs: Two run folders or more, with one kind of task and the same labels; the first says
            which data it is evaluated on. The same one may be named twice.
        out: The folder to write.
        checkpoint: Of each run, as for :func:`~textmill.runs.load_run.load`.

    Raises:
        UserError: The runs do not answer alike, or the folder is there already.
    """
    folder = Path(out)
    if folder.exists():
        way = worded("--out", "out")
        raise UserError(f"{out} is there already. Delete it, or name another folder with {way}.")
    if len(runs) < 2:
        raise UserError("An ensemble has two runs or more: textmill ensemble RUN RUN --out FOLDER.")
    predictors = [load_run(Path(run), checkpoint=checkpoint, device="cpu") for run in runs]
    made = ensemble_of([predictor.task for predictor in predictors])
    first = RunFolder(Path(runs[0])).info
    pairs = zip(runs, predictors, strict=True)
    of = [Path(run, CHECKPOINTS, predictor.checkpoint) for run, predictor in pairs]
    members = [{"checkpoint": str(path), "manifest": manifest_of(path)[1]} for path in of]
    nodes = saved_nodes(Path(runs[0]), "settings").entries
    # How rows are read, and what it is evaluated on.
    settings = {name: untyped(nodes[name]) for name in DATA if name in nodes}
    configs = {"module": made.module.config.to_dict(), "task": made.config.to_dict()}
    key = hashlib.sha256("\n".join(each["manifest"] for each in members).encode()).hexdigest()[:12]
    facts: dict[str, Any] = {"recipe": "ensemble", "key": key, "members": members}
    facts |= {n: first[n] for n in ("selected_by", "data_summary", "max_tokens") if n in first}
    folder.parent.mkdir(parents=True, exist_ok=True)
    write_run(folder, made, None, settings, configs, facts=facts)
    LOG.info("An ensemble of %d runs: %s", len(runs), folder)
    return folder


def ensemble_of(tasks: Sequence[Any]) -> Ensemble:
    """The ensemble of trained tasks; its weights are copies of theirs."""
    refuse_others(tasks)
    texts = [task.text.ingredients_for(()) for task in tasks]
    model = EnsembleModel.Config(models=tuple(task.module.config.to_dict() for task in tasks))
    lengths = {task.config.over_length for task in tasks}
    config = Ensemble.Config(
        tasks=tuple(task.config.to_dict() for task in tasks),
        over_length="error" if "error" in lengths else "truncate",
    )
    made: Ensemble = config.build(module=model.build(members=texts), members=texts)
    for own, task in zip(made.members, tasks, strict=True):
        own.module.load_state_dict(task.module.state_dict())
    made.join()
    return made
