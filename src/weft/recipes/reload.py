"""After training, from a run alone: a predictor, or an evaluation."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from weft.config.session import Session
from weft.errors import UserError
from weft.inference.load import (
    NeedsCodeError,
    load_run,
    pick_checkpoint,
    predictor_of,
    saved_session,
)
from weft.inference.predictor import Predictor
from weft.recipes.planning import plan_recipe
from weft.recipes.run_folder import RunFolder
from weft.runtime.devices import Env
from weft.runtime.experiment import Experiment
from weft.tasks.evaluate import Evaluation
from weft.tasks.evaluate import evaluate as evaluate_task
from weft.text.paths import load_text_path

__all__ = ["evaluate", "load"]


def load(
    run: str | Path,
    *,
    checkpoint: str = "best",
    device: str = "auto",
    allow_code: bool = False,
) -> Predictor:
    """Loads a trained run: text in, typed answer out.

    Neither the training files nor the recipe's functions are needed where task and module are components of
    the library. What is the recipe's own needs ``allow_code``.

    Args:
        run: The run folder.
        checkpoint: ``best`` (the default; the last one where nothing was selected), ``last``, or a name
            such as ``step-00001000``.
        device: ``auto``, or a device as torch names it.
        allow_code: Whether the recipe in the run folder may be executed.

    Raises:
        UserError: The folder is no run, or has no such checkpoint.
        CodeNotAllowedError: The recipe's own code is needed and not allowed.

    Example:
        >>> predictor = load("runs/translation-demo/1f0c5a2b7d9e")  # doctest: +SKIP
        >>> print(predictor("The cat sleeps."))  # doctest: +SKIP
        Le chat dort.
    """
    folder = Path(run)
    try:
        return load_run(folder, checkpoint=checkpoint, device=device)
    except NeedsCodeError:
        if not allow_code:
            raise
    path = pick_checkpoint(folder, checkpoint)
    text = load_text_path(path / "text")
    session = _session(folder, ["task"], device, text.ingredients)
    task = session.get("task")
    task.module.to(session.get("env").device)
    return predictor_of(task, text, folder, path)


def evaluate(
    run: str | Path,
    words: Sequence[str] = (),
    *,
    checkpoint: str = "best",
    device: str = "auto",
    allow_code: bool = False,
) -> dict[str, Evaluation]:
    """Evaluates a run's best checkpoint on its ``valid_data``, and on its ``test_data`` where it has one.

    Args:
        run: The run folder.
        words: Other settings of the data, as ``"valid_data.path=dev.tsv"``.
        checkpoint: As for :func:`load`.
        device: As for :func:`load`.
        allow_code: As for :func:`load`.

    Returns:
        An evaluation by the name of its data.
    """
    predictor = load(run, checkpoint=checkpoint, device=device, allow_code=allow_code)
    task = predictor.task
    folder = Path(run)
    provided = task.text.ingredients
    found = {}
    for name in _evaluated(folder, words):
        try:
            mine = [word for word in words if word.startswith(f"{name}.")]
            env = Env.detect(device)
            session = saved_session(folder, "settings", [name], {"env": env, **provided}, words=mine)
        except NeedsCodeError:
            if not allow_code:
                raise
            session = _session(folder, [name], device, provided, words)
        data = session.get(name)
        if hasattr(data, "read"):
            data.read(ingredient=name)
        found[name] = evaluate_task(task, task.batches(data, train=False, seed=0))
    return found


def _evaluated(folder: Path, words: Sequence[str]) -> list[str]:
    """The data to evaluate on: what the words name, else all the run has."""
    from weft.config.nodes import Entries
    from weft.config.yaml_files import read_yaml

    names = ("valid_data", "test_data")
    settings = read_yaml(folder / "config.yaml").entries.get("settings")
    known = [n for n in names if isinstance(settings, Entries) and n in settings.entries]
    unknown = [word for word in words if word.partition(".")[0] not in names]
    if unknown:
        raise UserError(
            f"'{unknown[0]}' cannot be set here: an evaluation takes settings of valid_data and test_data, "
            "as valid_data.path=dev.tsv. The model is what was trained."
        )
    named = [name for name in names if any(word.startswith(f"{name}.") for word in words)]
    if not (named or known):
        raise UserError(f"{folder} has neither valid_data nor test_data. Name one: valid_data.path=…")
    return named or known


def _session(
    folder: Path,
    targets: list[str],
    device: str,
    provided: Mapping[str, Any],
    words: Sequence[str] = (),
) -> Session:
    """Plans the recipe that the run keeps, with its text path in place of what made it."""
    planned = plan_recipe(folder, words, targets=targets, allow_code=True)
    info = RunFolder(folder).info
    xp = Experiment(folder=folder, recipe=planned.name, key=str(info.get("key", "")))
    always = {"env": Env.detect(device), "xp": xp, "entry_point": "predict"}
    return planned.plan.start({**always, **provided})
