"""What Lightning has trained as a run of textmill, with which textmill's own loop can go on."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import torch

from textmill.errors import UserError
from textmill.interop.lightning.prepared import Prepared
from textmill.preflight.data_preview import data_summary
from textmill.run_folder.folder import RunFolder
from textmill.run_folder.pretrained import PretrainedOfRun
from textmill.runs.run_lock import entered
from textmill.runs.train import begin_run
from textmill.training.checkpoints import RunCheckpoints
from textmill.training.progress import Progress
from textmill.training.selection import Selection


def save_run(prepared: Prepared, place: Path, progress: Progress, *, selection: Selection) -> Path:
    """Writes a run folder with the weights of a prepared recipe as they are now.

    It has the optimizer, the place in the data and the evaluations as well: where the recipe is not
    at its end, ``textmill train`` goes on with it.

    Args:
        prepared: Whose task was trained, and whose data is where the training is.
        place: The new folder.
        progress: How far.
        selection: What was measured on the way.

    Raises:
        UserError: The folder is there and not empty.
    """
    if place.exists() and (not place.is_dir() or any(place.iterdir())):
        raise UserError(f"{place} exists already, and nothing is overwritten. Name another folder.")
    folder, trainer = RunFolder(place), prepared.trainer
    trainer.clock.now = trainer.clock.seen = trainer.clock.closed = progress
    if trainer.selection is not None:
        trainer.selection.load_state_dict(selection.state_dict())
    checkpoints = RunCheckpoints(
        place,
        keep=trainer.config.keep,
        task=trainer.task,
        clock=trainer.clock,
        selection=trainer.selection,
        nonfinite=trainer.updates.nonfinite,
        ranks=trainer.updates.ranks,
    )
    with entered(place):
        models = PretrainedOfRun(folder)
        models.found = prepared.pretrained.found
        session = prepared.session
        facts = {"data_summary": data_summary(session, trainer), "pretrained": models.keep()}
        facts |= prepared.facts
        begin_run(prepared.planned, folder, session, built=prepared.built, facts=facts)
        with _without_initial_rates(trainer.optimizer):
            checkpoints.record(trainer.parts, best=selection.is_best(progress.steps))
        result = {"steps": progress.steps, "epochs": progress.epochs}
        folder.write_info(finished=trainer.ended(progress), result=result)
    return place


@contextmanager
def _without_initial_rates(optimizer: torch.optim.Optimizer) -> Iterator[None]:
    """Takes out of the groups what torch's schedulers put there: textmill's have none of it."""
    rates = [group.pop("initial_lr", None) for group in optimizer.param_groups]
    try:
        yield
    finally:
        for group, rate in zip(optimizer.param_groups, rates, strict=True):
            group.update({} if rate is None else {"initial_lr": rate})
