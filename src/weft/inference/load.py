"""From a run folder to a predictor, by data alone: nothing in the folder is executed.

The saved text path and the built configs replace the ingredients that made them, so neither their functions
nor the training files are needed.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from weft.checkpoint.parts import load_into
from weft.checkpoint.store import Checkpoints
from weft.config import registries
from weft.config.nodes import Entries
from weft.config.plan import make_plan
from weft.config.recipe import Recipe
from weft.config.registry import UnknownNameError
from weft.config.script import table_of_recipe
from weft.config.session import Session
from weft.config.yaml_files import read_yaml
from weft.errors import CodeNotAllowedError, UserError
from weft.inference.predictor import Predictor
from weft.runtime.devices import Env
from weft.tasks.task import Task
from weft.text.paths import TextPath, load_text_path

__all__ = [
    "NeedsCodeError",
    "load_run",
    "pick_checkpoint",
    "predictor_of",
    "rebuild_task",
    "saved_session",
]

class NeedsCodeError(CodeNotAllowedError):
    """A part of the predictor's path is the recipe's own code."""

    def __init__(self, run: Path, part: str) -> None:
        super().__init__(
            f"The {part} of {run} is made by code of the recipe's own ({run / 'recipe.py'}), which is not run "
            "unasked. If you trust it, allow it: --allow-code on the command line, allow_code=True in Python."
        )


def load_run(run: Path, *, checkpoint: str = "best", device: str = "auto") -> Predictor:
    """Loads a run whose task and module are library components (or of installed packages that register).

    Args:
        run: The run folder.
        checkpoint: ``best`` (else last), ``last``, or a checkpoint's name.
        device: ``auto`` or a device as torch names it.

    Raises:
        NeedsCodeError: The task or the module is the recipe's own.
    """
    path = pick_checkpoint(run, checkpoint)
    text = load_text_path(path / "text")
    task = rebuild_task(run, text, Env.detect(device))
    return predictor_of(task, text, run, path)


def predictor_of(task: Task, text: TextPath, run: Path, path: Path) -> Predictor:
    """Puts a checkpoint's weights and text path into a task."""
    load_into(path, "model", task.module)
    task.text = text
    return Predictor(task, checkpoint=path.name)


def pick_checkpoint(run: Path, name: str) -> Path:
    """The checkpoint to use, every byte of it verified."""
    if not (run / "checkpoints").is_dir():
        what = "has no checkpoint yet" if (run / "run.json").is_file() else "is not a run folder"
        raise UserError(f"{run} {what}; wanted a folder that weft train has written, with checkpoints/ in it.")
    store = Checkpoints(run / "checkpoints")
    if name in ("best", "last"):
        found = (store.best() if name == "best" else None) or store.last()
        if found is None:
            raise UserError(f"{run} has no good checkpoint. Look at it with: weft runs verify {run}")
        return found
    path = run / "checkpoints" / name
    if not path.is_dir():
        known = ", ".join(sorted(p.name for p in path.parent.glob("step-*"))) or "none"
        raise UserError(f"{run} has no checkpoint '{name}'. It has: {known}.")
    return path


def rebuild_task(run: Path, text: TextPath, env: Env) -> Task:
    """Builds the task and its module from what ``built`` in ``config.yaml`` records."""
    session = saved_session(run, "built", ("module", "task"), {"env": env, **text.ingredients})
    task: Task = session.get("task")
    task.module.to(env.device)
    return task


def saved_session(
    run: Path,
    section: Literal["built", "settings"],
    names: Sequence[str],
    provided: Mapping[str, object],
    *,
    words: Sequence[str] = (),
) -> Session:
    """Rebuilds ingredients of a run from data alone: each must be a component known by its ``type``.

    Args:
        run: The run folder.
        section: ``built``, with the sizes that came from data, or ``settings``, as they were resolved.
        names: The ingredients.
        provided: Objects that stand for other ingredients.
        words: Settings as on the command line, stronger than the saved ones.

    Raises:
        NeedsCodeError: One of them is the recipe's own.
    """
    saved = read_yaml(run / "config.yaml").entries.get(section)
    entries = saved.entries if isinstance(saved, Entries) else {}
    kept = {name: entries[name] for name in names if name in entries}
    table = {name: _component(run, name, kept.get(name)) for name in names}
    plan = make_plan(
        table_of_recipe(Recipe(**table), name=str(run / "config.yaml")),
        defaults=table_of_recipe(Recipe(), name="nothing"),
        layers=[Entries(kept, saved.place)] if saved else [],
        words=words,
        targets=names,
        always=tuple(provided),
    )
    return plan.start(provided)


def _component(run: Path, name: str, node: Any) -> Any:
    """The component that an ingredient of a run was, by its registered name."""
    kind = node.entries.get("type") if isinstance(node, Entries) else None
    registry = registries.models if name == "module" else registries.for_ingredient(name)
    if kind is None or registry is None:
        raise NeedsCodeError(run, name)
    try:
        return registry.get(str(kind.text))
    except UnknownNameError:
        raise NeedsCodeError(run, name) from None
