"""Whether what a run saves could be loaded, tried before the run and without memory for weights."""

import inspect
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, cast

import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode
from typing_extensions import override

from textmill.checkpoint.parts import check_fit
from textmill.config.ingredient import BuiltFrom
from textmill.config.planning.plan import Plan
from textmill.config.planning.session import Session
from textmill.config.planning.wiring import reached
from textmill.errors import CheckpointError, TextmillError, UserError
from textmill.inference.checkpoints import open_checkpoint
from textmill.inference.load import NeedsCodeError, fitted_parts, saved_plan
from textmill.recipes.planning import Planned
from textmill.run_folder.folder import RunFolder
from textmill.tasks.task import Task
from textmill.text.processors.text_processor import TextProcessor

DRAWS = frozenset({nn.init.normal_, nn.init.trunc_normal_, Tensor.normal_})
"""What torch's compiler is imported for where there is no memory; it takes a second."""
PLAIN = (bool, int, float, str, tuple, type(None))
_OF_TRAINING = ("training",)
"""What tells a module in training from one that answers."""
SMALL = 50_000_000
"""Numbers of a module that is built a second time if it cannot be built without memory."""


def refuse_unloadable(planned: Planned, session: Session, saved: Path) -> None:
    """Loads a checkpoint as prediction does; weights are compared by their shapes."""
    task: Task = session.get("task")
    opened = open_checkpoint(saved)
    again = _sessions(planned, session, saved, opened.text)
    weights = task.module.state_dict()
    try:
        loaded = _without_memory(again)
        if loaded is None and sum(value.numel() for value in weights.values()) <= SMALL:
            loaded = again().get("task")
        if loaded is None:
            return
        if problems := check_fit(loaded.module, weights):
            lines = "\n".join(f"  {problem}" for problem in problems)
            raise TextmillError(
                "A run could be trained, but not loaded: the module that is built for prediction "
                f"has other weights than the one that is trained.\n{lines}\nA module must follow "
                "from its settings and from what the text processor keeps (tokenizer, labels, ...)."
            )
        loaded.use_text(opened.text)
    except (CheckpointError, UserError) as error:
        raise TextmillError(f"A run could be trained, but not loaded: {error}") from error


def _without_memory(again: Callable[[], Session]) -> Task | None:
    """The task around a module without memory; None if it needs numbers to be built."""
    made = list[Task]()

    def build() -> nn.Module:
        made.append(again().get("task"))
        return made[0].module

    try:
        return made[0] if shape_of(build) is not None else None
    except (TypeError, ValueError):
        return None  # of code that reads numbers, which are not there


def _sessions(
    planned: Planned, session: Session, saved: Path, text: TextProcessor
) -> Callable[[], Session]:
    """What builds the task of a saved run: by its settings alone, else by the recipe."""
    folder = RunFolder(saved.parent.parent / "loaded")
    folder.path.mkdir()
    built, plan = built_sizes(session, planned.plan), planned.plan
    folder.write_config(None, plan.settings, built, swaps=plan.swaps, include=planned.include)
    given: dict[str, Any] = {"env": session.get("env"), **fitted_parts(folder.path, text)}
    try:
        by_data = saved_plan(folder.path, "built", ("module", "task"), provided=tuple(given))
        return partial(by_data.start, given)
    except NeedsCodeError:
        # What the task is built from that is not itself built from the module.
        needed = reached(session.nodes, session.nodes["task"].needs)
        kept = {
            name: session.get(name)
            for name in needed
            if "module" not in reached(session.nodes, [name])
        }
        device = str(session.get("env").device)
        return partial(planned.start, folder.path, "predict", device, {**kept, **given})


def built_sizes(session: Session, plan: Plan) -> dict[str, Any]:
    """What was built otherwise than it was set, without what the text processor holds.

    That is saved with every checkpoint and compared byte by byte; as settings, the words of a
    vocabulary would be more than a file of settings may have.
    """
    text = getattr(session.get("task"), "text", None) if session.has("task") else None
    held = getattr(text, "ingredients", {})
    of_tasks = {n: built_sizes(session.tasks[n], task) for n, task in plan.tasks.items()}
    return of_tasks | {
        name: config
        for name, config in session.built.items()
        if config != plan.settings.get(name) and name not in held and _follows(session, name)
    }


def _follows(session: Session, name: str) -> bool:
    """Whether an ingredient is what its Config builds; a function may have changed a module."""
    node, made = session.nodes[name], session.get(name)
    if node.is_config or isinstance(node.value, BuiltFrom) or not isinstance(made, nn.Module):
        return True
    names = inspect.signature(type(made).__init__).parameters
    given = {each: session.get(each) for each in names if each != "config" and session.has(each)}
    again, config = list[nn.Module](), cast("Any", made).config

    def build() -> nn.Module:
        again.append(config.build(**given))
        return again[0]

    try:
        with torch.random.fork_rng(devices=[]):
            shape_of(build)
    except (TypeError, ValueError, UserError):
        return False  # it was built from other ingredients, or cannot be without numbers
    return bool(again) and list(_facts(made)) == list(_facts(again[0]))


def _facts(module: nn.Module) -> Iterator[tuple[Any, ...]]:
    """What a module is, but for the numbers of its tensors."""
    for name, part in module.named_modules():
        tensors = {**dict(part.named_parameters()), **dict(part.named_buffers())}
        shapes = {each: tensor.shape for each, tensor in tensors.items()}
        held = {each: len(value) for each, value in vars(part).items() if each.endswith("_hooks")}
        plain = {
            each: value if isinstance(value, PLAIN) or inspect.isroutine(value) else type(value)
            for each, value in vars(part).items()
            if each not in _OF_TRAINING
        }
        yield name, type(part), part.extra_repr(), shapes, held, plain


def shape_of(build: Callable[[], nn.Module]) -> nn.Module | None:
    """A module on torch's ``meta`` device, where tensors have shapes and take no memory.

    None for one that cannot be built so: it reads numbers while it is built.
    """
    try:
        with torch.device("meta"), _Undrawn():
            return build()
    except (NotImplementedError, RuntimeError):
        return None


class _Undrawn(TorchFunctionMode):
    """Leaves numbers undrawn that have no memory."""

    @override
    def __torch_function__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        given = kwargs or {}
        x = args[0] if args else given.get("tensor")  # nn.init gives it by its name
        if func in DRAWS and isinstance(x, Tensor) and x.is_meta:
            return x
        return func(*args, **given)
