"""After training: scores that are probabilities, and thresholds for a share of right answers."""

import logging
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from textmill.checkpoint.calibration import Calibration
from textmill.checkpoint.layout import CHECKPOINTS
from textmill.checkpoint.manifest import manifest_of
from textmill.config.planning.overrides import Overrides, words_of
from textmill.errors import UserError, worded
from textmill.metrics.calibration import (
    LOWEST,
    CalibrationError,
    fit_temperature,
    rows_needed,
    threshold,
)
from textmill.models.label_losses import BinaryCrossEntropy, multi_hot
from textmill.runs.load_run import batches_on, data_of, load
from textmill.runs.report.reporter import FILE, write_report
from textmill.tasks.classification import LabelTask
from textmill.tasks.evaluation import inference
from textmill.tasks.task import Batches

LOG = logging.getLogger("textmill")
DATA = "valid_data"


def calibrate(
    run: str | Path,
    words: Overrides = (),
    *,
    correct: float | None = None,
    checkpoint: str = "best",
    device: str = "auto",
    allow_code: bool = False,
) -> Calibration:
    """Fits a trained run's scores to its ``valid_data``, and keeps the result in its folder.

    From then on the run divides scores by the temperature, and with ``correct`` leaves texts
    without an answer whose label is not above its threshold, wherever it answers. A calibration
    takes the place of the one before.

    ``words`` are other settings of the data, as ``"valid_data.path=dev.tsv"``; ``correct`` is the
    share of answers that is to be right, if a text can have several labels of those with each
    label, with a certainty of 95 %. The other arguments are those of
    :func:`textmill.runs.load_run.load`.
    """
    if correct is not None and not 0 < correct < 1:
        name = worded("--correct", "correct")
        raise UserError(f"{name} must be above 0 and below 1, but is {correct}.")
    folder, how = Path(run), {"device": device, "allow_code": allow_code}
    predictor = load(folder, checkpoint=checkpoint, **how)  # type: ignore[arg-type]
    whole = predictor.task
    task = getattr(whole, "answering", whole)  # of an ensemble
    if not isinstance(task, LabelTask):
        raise UserError(
            f"{folder} is a run of {type(task).__name__}, whose scores are not calibrated: wanted "
            "one that gives texts labels (document_classification, pair_classification)."
        )
    task.text.calibrate(1.0, None)
    [(_, data)] = data_of(folder, words_of(words), whole, names=(DATA,), **how)  # type: ignore[arg-type]
    scores, right = _scored(task, batches_on(DATA, data, whole, folder))
    several, measured = task.text.multiple, [_measured(task, scores, right)]
    known = right.any(axis=1) | several  # a label that training has not seen says nothing of scores
    independent = several or isinstance(task.criterion, BinaryCrossEntropy)
    found = fit_temperature(scores.numpy()[known], right[known], independent=independent)
    if found <= LOWEST * 1.01:
        LOG.warning("Every answer to %s is right: the scores stay as they are.", DATA)
        found = 1.0
    task.text.calibrate(found, None)
    measured.append(_measured(task, scores, right))
    before, after = (each.compute()["calibration_error"] for each in measured)
    path = folder / CHECKPOINTS / predictor.checkpoint
    made = Calibration(
        checkpoint=path.name,
        manifest_sha256=manifest_of(path)[1],
        temperature=found,
        thresholds=None if correct is None else _thresholds(task, scores, right, correct),
        correct=correct,
        rows=len(right),
        errors=(before, after),
        tables=(measured[0].table(), measured[1].table()),
    )
    made.write(path.parent)
    for export in sorted((folder / "export").glob("*")):
        LOG.warning("%s was made before: its answers stay as they were. Export again.", export)
    if (folder / FILE).is_file():
        write_report(folder)
    return made


def _scored(task: LabelTask, batches: Batches) -> tuple[torch.Tensor, NDArray[np.bool_]]:
    """Scores, and which labels are right, of all rows. *Shape:* ``[N, L]`` twice."""
    scores, right = [], []
    with inference(task.module):
        for batch in batches:
            scores.append(task.scores(batch.to(task.device)).float().cpu())
            numbers = batch["label"].cpu().reshape(len(scores[-1]), -1)
            right.append(multi_hot(numbers, scores[-1].shape[1]).bool())
    return torch.cat(scores), torch.cat(right).numpy()


def _answers(
    task: LabelTask, scores: torch.Tensor, right: NDArray[np.bool_]
) -> tuple[NDArray[Any], NDArray[np.bool_]]:
    """The probability of each answer, and whether it is right: of the best label, or of each."""
    chances = task.probabilities(scores).numpy()
    if task.text.multiple:
        return chances, right
    best = chances.argmax(axis=1)[:, None]
    return np.take_along_axis(chances, best, 1), np.take_along_axis(right, best, 1)


def _measured(task: LabelTask, scores: torch.Tensor, right: NDArray[np.bool_]) -> CalibrationError:
    found, (chances, hits) = CalibrationError(), _answers(task, scores, right)
    found.update(chances.ravel().tolist(), hits.ravel().tolist())
    return found


def _thresholds(
    task: LabelTask, scores: torch.Tensor, right: NDArray[np.bool_], correct: float
) -> dict[str, float]:
    """A threshold for each label; 1, which no score is above, if no other is enough."""
    names, (chances, hits) = task.text.label.labels.names, _answers(task, scores, right)
    found = [threshold(*both, correct) for both in zip(chances.T, hits.T, strict=True)]
    found = found if task.text.multiple else found * len(names)
    bounds = {n: 1.0 if bound is None else bound for n, bound in zip(names, found, strict=True)}
    missing = [name for name, bound in bounds.items() if bound == 1]
    if len(missing) == len(names):
        raise UserError(
            f"With no threshold {correct:g} of the answers are certain to be correct on the "
            f"{len(right):,} rows of {DATA}, of which {rows_needed(correct):,} or more must be "
            "answered. Ask for less, or name more rows: valid_data.path=FILE. Nothing was changed."
        )
    if missing:
        LOG.warning("No threshold is enough for %s: never given.", ", ".join(missing))
    return bounds
