"""After training, from a run alone: a predictor, or an evaluation."""

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from textmill.checkpoint.saved import refuse_changed
from textmill.config.ingredient import EVALUATION_DATA
from textmill.config.planning.key import plan_parts
from textmill.config.planning.overrides import Overrides, words_of
from textmill.config.planning.plan import make_plan
from textmill.config.planning.session import Session
from textmill.config.recipe import Recipe
from textmill.config.sources.include import include_of_file
from textmill.config.sources.script import table_of_recipe
from textmill.config.values.raw_values import Scalar, is_null
from textmill.config.values.typed_values import plain
from textmill.config.values.yaml_files import read_yaml
from textmill.data.data_files import first_file
from textmill.data.input_files import SETTINGS
from textmill.data.text_pairs import TextPairs
from textmill.errors import UserError
from textmill.inference.checkpoints import Opened, use_checkpoint
from textmill.inference.load import (
    AnswerPrecision,
    NeedsCodeError,
    Predictor,
    fitted_parts,
    load_run,
    predictor_of,
    refuse_edited,
    saved_nodes,
    saved_plan,
    warn_of_edited,
)
from textmill.preflight.load_data import load_data, use_by_task
from textmill.preflight.max_tokens import is_auto, take_max_tokens
from textmill.recipes.planning import plan_recipe
from textmill.run_folder.folder import SCRIPT, RunFolder, refuse_lightning
from textmill.run_folder.pretrained import pretrained_of
from textmill.runtime.devices import Env
from textmill.tasks.evaluation import Evaluation
from textmill.tasks.evaluation import evaluate as evaluate_task
from textmill.tasks.task import Batches, Task

LOG = logging.getLogger("textmill")

FIRST = ("valid_data", "test_data", "train_data")
"""The first of these that a run has says how rows to answer are read."""
EVALUATED_CELLS = 2048
"""``max_tokens`` of data for which only the command says ``auto``."""


def load(
    run: str | Path,
    *,
    checkpoint: str = "best",
    device: str = "auto",
    allow_code: bool = False,
    precision: AnswerPrecision = "fp32",
) -> Predictor:
    """Loads a trained run: text in, typed answer out.

    Neither the training files nor the recipe's functions are needed if task and module are
    components of the library. Parts of the recipe's own need ``allow_code``, or that the caller has
    imported the module that registers them.

    Args:
        run: The run folder.
        checkpoint: ``best`` (the default; the last one if nothing was selected), ``last``, or a
            name such as ``step-00001000``.
        device: ``auto``, or a device as torch names it.
        allow_code: Whether the recipe in the run folder may be executed.
        precision: Type of the numbers in matrix products: ``fp32`` or ``bf16``. What the narrower
            one costs, :func:`evaluate` measures.

    Raises:
        CheckpointError: Every checkpoint that could be used is damaged, or fits no model here.
        CodeNotAllowedError: The recipe's own code is needed and not allowed.

    Example:
        >>> predictor = load("runs/translation-demo/1f0c5a2b7d9e")  # doctest: +SKIP
        >>> print(predictor("The cat sleeps."))  # doctest: +SKIP
        Le chat dort.
    """
    folder = Path(run)
    RunFolder(folder).info  # noqa: B018  # refuses what no run wrote
    refuse_lightning(folder)
    found = _loaded(folder, checkpoint=checkpoint, device=device, allow_code=allow_code)
    found.data = recorded_layout(found, folder)
    return found.in_precision(precision)


def _loaded(folder: Path, *, checkpoint: str, device: str, allow_code: bool) -> Predictor:
    try:
        return load_run(folder, checkpoint=checkpoint, device=device, wanted=allow_code)
    except NeedsCodeError:
        if not allow_code:
            raise
    refuse_changed(folder, code=True)
    if not _names_recipe(folder):
        include_of_file(read_yaml(folder / "config.yaml"), saved=True, allow_code=True)
        return load_run(folder, checkpoint=checkpoint, device=device, allow_code=True)
    session = partial(_session, folder, ["task"], device)
    with pretrained_of(RunFolder(folder)):
        return load_by_code(folder, checkpoint, session)


def load_by_code(
    folder: Path, checkpoint: str, session_with: Callable[[Mapping[str, Any]], Session]
) -> Predictor:
    """Loads a predictor whose task the recipe builds.

    ``session_with`` starts building with the parts that a checkpoint keeps.
    """

    def by_code(opened: Opened) -> Predictor:
        session = session_with(fitted_parts(folder, opened.text))
        task = session.get("task")
        task.module.to(session.get("env").device)
        return predictor_of(task, opened)

    return use_checkpoint(folder, checkpoint, by_code)


def evaluate(
    run: str | Path,
    words: Overrides = (),
    *,
    checkpoint: str = "best",
    device: str = "auto",
    allow_code: bool = False,
    precision: AnswerPrecision = "fp32",
) -> dict[str, Evaluation]:
    """Evaluates a run's best checkpoint on its ``valid_data`` and ``test_data``.

    ``words`` are other settings of the data, as ``"valid_data.path=dev.tsv"``, or a dictionary; the
    other arguments are those of :func:`load`. Returns the evaluations by the names of their data.
    """
    words = words_of(words)
    predictor = load(
        run, checkpoint=checkpoint, device=device, allow_code=allow_code, precision=precision
    )
    task, folder, found = predictor.task, Path(run), {}
    for name, data in data_of(folder, words, task, device=device, allow_code=allow_code):
        with predictor.computing():
            found[name] = evaluate_on(name, data, task, folder)
    return found


def data_of(
    folder: Path,
    words: Sequence[str],
    task: Task,
    *,
    names: Sequence[str] = EVALUATION_DATA,
    device: str = "auto",
    allow_code: bool = False,
) -> Iterator[tuple[str, Any]]:
    """The data of these names that words name, else all that a run has, by its name."""
    provided = {"env": Env.detect(device), **task.text.ingredients}
    recorded = RunFolder(folder).info.get("data", {})
    for name, model in _evaluated(folder, words, names).items():
        mine = [word for word in words if word.startswith(f"{name}.")]
        made = partial(
            _made, folder, name, model, provided=provided, device=device, allow_code=allow_code
        )
        data = made(mine)
        named = any(word.startswith(f"{name}.path=") for word in mine)
        if named and isinstance(data, TextPairs) and data.holdout is not None:
            whole = made([f"{name}.holdout=0", *mine])
            load_data(name, whole, use_by_task(task))
            if whole.side_fingerprint(data.holdout) == recorded.get(model):
                LOG.info("%s is this run's own file: its held-out rows are measured.", name)
            else:
                data = whole
                if whole.holdout is None:
                    LOG.info("%s is not this run's file: all of its rows are measured.", name)
        yield name, data


def _made(
    folder: Path,
    name: str,
    model: str,
    words: Sequence[str],
    *,
    provided: Mapping[str, Any],
    device: str,
    allow_code: bool,
) -> Any:
    """Builds data to evaluate a run on: from its settings, from words alone, or by its recipe."""
    by_recipe = partial(_session, folder, [name], device, provided, words=words)
    try:
        plan = saved_plan(
            folder,
            "settings",
            [name],
            provided=tuple(provided),
            words=words,
            instead={name: model},
            allow_code=allow_code and not _names_recipe(folder),
        )
    except NeedsCodeError:
        if name != model:  # the run has no such data to follow: the words name a file of pairs
            pairs = TextPairs.Config(path=Path("pairs.tsv"), shuffle=False)
            plan = make_plan(
                table_of_recipe(Recipe(**{name: pairs}), name="evaluation"),
                defaults=table_of_recipe(Recipe(), name="nothing"),
                words=words,
                targets=[name],
                always=tuple(provided),
            )
            return plan.start(provided).get(name)
        if allow_code and _names_recipe(folder):
            return by_recipe().get(name)
        raise
    if not any(word.startswith(f"{name}.type=") for word in words):
        try:
            refuse_edited(folder, plan_parts(plan), wanted=allow_code)
        except NeedsCodeError:
            if allow_code:
                return by_recipe().get(name)
            raise
    return plan.start(provided).get(name)


def evaluate_on(name: str, data: Any, task: Task, folder: Path) -> Evaluation:
    """Reads data and evaluates a run's task on it."""
    return evaluate_task(task, batches_on(name, data, task, folder))


def batches_on(name: str, data: Any, task: Task, folder: Path) -> Batches:
    """Reads data; its batches are as large as the run's."""
    load_data(name, data, use_by_task(task))
    if is_auto(data):
        take_max_tokens({name: data}, RunFolder(folder).info.get("max_tokens", EVALUATED_CELLS))
    return task.batches_of(name, data, train=False, seed=0)


def _evaluated(folder: Path, words: Sequence[str], names: Sequence[str]) -> dict[str, str]:
    """The data that words name, else all that a run has, each with the data that it follows."""
    settings = saved_nodes(folder, "settings").entries
    known = [name for name in names if name in settings and not is_null(settings[name])]
    unknown = [word for word in words if word.partition(".")[0] not in names]
    if unknown:
        raise UserError(
            f"'{unknown[0]}' cannot be set here: wanted settings of {' or '.join(names)}, as "
            "valid_data.path=dev.tsv. The model is what was trained."
        )
    named = [name for name in names if any(word.startswith(f"{name}.") for word in words)]
    if not (named or known):
        raise UserError(
            f"{folder} has no {' or '.join(names)}. Name a file: {names[0]}.path=dev.tsv"
        )
    like = [*known, "train_data"][0]
    return {name: name if name in known else like for name in named or known}


def _names_recipe(folder: Path) -> bool:
    """Whether a run keeps or names its recipe; one that was made of a Recipe does not."""
    return "recipe" in read_yaml(folder / "config.yaml").entries


def _session(
    folder: Path,
    targets: list[str],
    device: str,
    provided: Mapping[str, Any],
    *,
    words: Sequence[str] = (),
) -> Session:
    """Plans the recipe that a run keeps; its saved text processor replaces what made it."""
    named = read_yaml(folder / "config.yaml").entries.get("recipe")
    if isinstance(named, Scalar) and named.text.endswith(".py") and named.text != SCRIPT:
        raise UserError(
            f"{named.place}: '{named.text}' is not the recipe that a run keeps; wanted {SCRIPT}."
        )
    planned = plan_recipe(folder, words, targets=targets, allow_code=True)
    warn_of_edited(folder, plan_parts(planned.plan))
    key = str(RunFolder(folder).info.get("key", ""))
    return planned.start(folder, "predict", device, provided, key=key)


def recorded_layout(predictor: Predictor, run: str | Path) -> dict[str, Any]:
    """How the run's data is read, with its first file; empty if it is not a file of columns."""
    folder = Path(run)
    if not (folder / "config.yaml").is_file():
        return {}
    saved = saved_nodes(folder, "settings").entries
    name = next((name for name in FIRST if name in saved and not is_null(saved[name])), None)
    if name is None:
        return {}
    provided = ("env", *predictor.task.text.ingredients)
    try:
        config = saved_plan(folder, "settings", [name], provided=provided).nodes[name].config
    except NeedsCodeError:
        return {}
    if not isinstance(config, TextPairs.Config):
        return {}
    names = [name for name in ("format", *SETTINGS) if hasattr(config, name)]
    layout = {name: plain(getattr(config, name)) for name in names}
    return {"path": str(first_file(config.path)), **layout}
