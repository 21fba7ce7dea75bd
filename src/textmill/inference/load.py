"""From a run folder to a predictor, by data alone: nothing in the folder is executed.

The saved text processor and the built configs replace the ingredients that made them, so neither
their functions nor the training files are needed.
"""

import copy
import logging
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import torch
from torch import Tensor
from typing_extensions import override

from textmill.checkpoint.calibration import Calibration
from textmill.checkpoint.run_seal import RunSeal
from textmill.config.code_names import CodeNames, UnknownCodeError, code_in
from textmill.config.ingredient import as_config
from textmill.config.planning.key import plan_parts
from textmill.config.planning.plan import Plan, make_plan
from textmill.config.recipe import Recipe
from textmill.config.registry import UnknownNameError, for_ingredient
from textmill.config.sources.own_files import OwnFile, own_files
from textmill.config.sources.script import table_of_recipe
from textmill.config.values.raw_values import Entries, Scalar, is_null, untyped
from textmill.config.values.yaml_files import read_yaml
from textmill.data.formats.cells import CellError, cell_of
from textmill.errors import CheckpointError, CodeNotAllowedError, DataError, PlanError, UserError
from textmill.exported.row_predictor import AnswerOptions, RowPredictor, rows_in
from textmill.inference import registries
from textmill.inference.checkpoints import Opened, use_checkpoint
from textmill.models.layers.linear import keeping_copies
from textmill.models.layers.precision import autocast
from textmill.models.ngrams import NgramTextScores
from textmill.runtime.devices import Env
from textmill.tasks.embedding import text_vectors
from textmill.tasks.evaluation import Evaluation, evaluate
from textmill.tasks.task import Row, Task
from textmill.text.columns.token_ids import TextColumn
from textmill.text.explanations import Explanation, NgramWeight
from textmill.text.processors.text_processor import TextProcessor
from textmill.text.processors.texts import LabelText
from textmill.text.tokenizers.ngram_tokenizer import NgramTokenizer

LOG = logging.getLogger("textmill")

AnswerPrecision = Literal["fp32", "bf16"]
"""Types in which a trained model multiplies."""


class Predictor(RowPredictor):
    """Answers strings with the task's trained module and its saved text processor.

    Args:
        task: The task, its module with trained weights.
        checkpoint: Name of the checkpoint the weights come from.
        precision: Type of the numbers in matrix products. With ``bf16`` on a CPU each matrix is
            kept in that type, too, from its first use on: weights no longer change.

    Example:
        ``textmill.load("runs/demo/0a1b")("Good morning.")`` gives a
        :class:`textmill.text.answers.Translated`.
    """

    def __init__(
        self, task: Task, *, checkpoint: str = "", precision: AnswerPrecision = "fp32"
    ) -> None:
        super().__init__(task.text.input_columns, task.text.optional_columns)
        self.task, self.checkpoint, self.precision = task, checkpoint, precision
        self.checks_itself = task.predict_checks
        self._copies = dict[Tensor, Tensor]()
        task.module.eval()

    @override
    def __repr__(self) -> str:
        task, columns = type(self.task).__name__, ", ".join(self.columns)
        where = f" of {self.checkpoint}" if self.checkpoint else ""
        return f"<Predictor: {task}{where}, answers rows of {columns}, on {self.task.device}>"

    @contextmanager
    def computing(self) -> Iterator[None]:
        """Computes in the precision while it is open."""
        with autocast(self.precision, self.task.device), keeping_copies(self._copies):
            yield

    @override
    def answers(self, rows: Sequence[Row]) -> list[Any]:
        with self.computing():
            return self.task.predict(rows)

    @override
    def embedder(self) -> "Predictor":
        made = text_vectors(self.task)
        return self if made is self.task else self._of(made)

    @override
    def explain(self, row: str | Row, *, label: str | None = None) -> Explanation:
        """As of every predictor; of a linear model of a text's n-grams also what each of them adds.

        Example:
            ``textmill.load("runs/sms/0a1b").explain("Free entry!").ngrams[0]`` has the n-gram of
            most weight.
        """
        found = super().explain(row, label=label)
        return replace(found, ngrams=self._ngrams(self.row(row), found.label))

    def _ngrams(self, row: Row, label: str) -> tuple[NgramWeight, ...]:
        module, text = self.task.module, self.task.text
        if not (isinstance(module, NgramTextScores) and isinstance(text, LabelText)):
            return ()
        column = text.inputs.get("text")
        if not isinstance(column, TextColumn) or not isinstance(column.tokenizer, NgramTokenizer):
            return ()
        ids = torch.from_numpy(column.encode([row[column.name]]).values)[None].to(self.task.device)
        places, weights = module.added(text.label.labels.names.index(label), ids)
        order = weights.abs().argsort(descending=True).tolist()
        named = column.tokenizer.named(places.tolist())
        return tuple(
            NgramWeight(ngram=named[at][0], kind=named[at][1], weight=float(weights[at]))
            for at in order
        )

    def in_precision(self, precision: AnswerPrecision) -> "Predictor":
        """The same model with products of another type."""
        return self._of(self.task, precision)

    def evaluate(self, rows: Iterable[Row]) -> Evaluation:
        """Measures the model on rows that have the answers, too, as the task's own data has them.

        Args:
            rows: Mappings of columns, by the task's names for them or the training file's; or a
                table, as in a call. Rows with None or NaN in place of a text or an answer are left
                out, which a warning tells.

        Raises:
            DataError: A row lacks a column.

        Example:
            ``textmill.load("runs/sms/0a1b").evaluate(frame)`` shows a table of the values.
        """
        every = [self._measured(number, given) for number, given in enumerate(rows_in(rows))]
        cells = [row for row in every if row is not None]
        if lacking := len(every) - len(cells):
            first = every.index(None)
            if not cells:
                raise DataError(f"Row {first} lacks a text or an answer, and so do all others.")
            LOG.warning(
                "%s of %s rows lack a text or an answer, and are not measured; the first is row "
                "%d (from 0).",
                *(f"{lacking:,}", f"{len(every):,}", first),
            )
        with self.computing():
            return evaluate(self.task, self.task.batches(cells, train=False, seed=0))

    def _measured(self, number: int, given: Any) -> Row | None:
        """A row with its answers as a file would have it; None if one of its cells is no value."""
        try:
            row = self.row(given)
            lacking = [name for name in self.task.text.target_columns if name not in row]
            if lacking:
                raise DataError(f"the column '{lacking[0]}' is missing, which has the answers.")
            used = [name for name in self.task.text.columns if name in row]
            if any(_is_missing(row[name]) for name in used):
                return None
            return {name: cell_of(row[name]) for name in used}
        except (CellError, DataError) as error:
            raise DataError(f"Row {number}: {error}") from error

    def _of(self, task: Task, precision: AnswerPrecision | None = None) -> "Predictor":
        """The same of another task that has the module's weights, or in another precision."""
        made = Predictor(task, checkpoint=self.checkpoint, precision=precision or self.precision)
        made.data = self.data
        if precision is None:
            made._copies = self._copies
        return made

    @override
    def check(self, row: Row) -> None:
        self.task.check(row)

    @override
    def answer_row(self, answer: Any) -> Mapping[str, Any]:
        return self.task.answer_row(answer)

    @override
    def with_options(self, options: AnswerOptions) -> RowPredictor:
        config: Any = self.task.config
        decoding, given = getattr(config, "decoding", None), options.given
        if decoding is not None and given and {*given} <= {"n_best", "beam_size"}:
            if not decoding.sample:
                least = max(decoding.beam_size, options.n_best or 1)
                given = {"n_best": min(decoding.n_best, options.beam_size or least), **given}
                given.setdefault("beam_size", least)
            changed = {"decoding": replace(decoding, **given)}
        elif hasattr(config, "top_k") and [*given] == ["n_best"]:
            changed = {"top_k": options.n_best}
        elif hasattr(config, "beam_size") and [*given] == ["beam_size"]:
            changed = given
        else:
            return super().with_options(options)
        task = copy.copy(self.task)
        task.config = replace(config, **changed)
        return self._of(task)

    @override
    def divided(self, row: Row) -> Row:
        return self.task.text.divided(row)

    @property
    @override
    def text_columns(self) -> tuple[str, ...]:
        return self.task.text.text_columns

    @property
    @override
    def answer_class(self) -> Any:
        return self.task.answer_class


def _is_missing(value: Any) -> bool:
    """Whether a cell is no value: None, NaN, or what pandas has in their place."""
    is_nan = isinstance(value, float) and math.isnan(value)
    return value is None or is_nan or type(value).__name__ in ("NAType", "NaTType")


class NeedsCodeError(CodeNotAllowedError):
    """A part of the predictor's path is the recipe's own code."""


def _needs_code(
    run: Path, part: str, kind: str | None = None, swap: str | None = None
) -> NeedsCodeError:
    """The error that names the part which is not the library's, and what to do."""
    top, script = read_yaml(run / "config.yaml").entries, run / "recipe.py"
    trust = "allow it: --allow-code on the command line, allow_code=True in Python."
    word = "" if kind is None else f"{kind:.80}"
    if swap is not None or script.is_file():
        own = f"the recipe's own ({script if swap is None else f'swapped by {part}={swap}'})"
    else:
        own = "the experiment's own" if "recipe" in top else "a Recipe that was made in Python"
    if kind is None or (word.startswith("@") and ("." not in word or "<locals>" in word)):
        made = f"of type '{word}', code" if word else "made by code"
        text = f"The {part} of {run} is {made} of {own}, which is not run unasked. "
        if "recipe" not in top and swap is None and not script.is_file():
            way = f"textmill.run_experiment(recipe, 'evaluate', run_dir='{run}')"
            return NeedsCodeError(f"{text}No file names it: the program that has it calls {way}.")
        return NeedsCodeError(f"{text}If you trust it, {trust}")
    text = f"The {part} of {run} is of type '{word}', which "
    if word.startswith("@"):
        text += f"is not imported here. Import it first (--include {word[1:].rpartition('.')[0]})"
    else:
        text += "nothing imported here has registered. Import the module that registers it"
        known = untyped(top["include"]) if "include" in top else None
        listed = known if isinstance(known, list) else ["MODULE"]
        text += f" ({' '.join(f'--include {each}' for each in listed)})"
    if script.is_file():
        return NeedsCodeError(f"{text}; or, if it is {own} and you trust that, {trust}")
    return NeedsCodeError(f"{text}; or, if you trust the run, {trust}")


def load_run(
    run: Path,
    *,
    checkpoint: str = "best",
    device: str = "auto",
    allow_code: bool = False,
    wanted: bool = False,
) -> Predictor:
    """Loads a run whose task and module are components that are registered or imported here.

    With ``allow_code`` the modules that its ``config.yaml`` names may be imported; ``wanted`` says
    that the caller allows the run's own code and tries this first.

    Raises:
        NeedsCodeError: The task or the module, or a part of them, is the recipe's own.
        UserError: What is imported here is not what the run was trained with.
    """
    env = Env.detect(device)
    how = {"allow_code": allow_code, "wanted": wanted}
    return use_checkpoint(run, checkpoint, lambda opened: _loaded(run, opened, env, **how))


def _loaded(run: Path, opened: Opened, env: Env, *, allow_code: bool, wanted: bool) -> Predictor:
    provided = {"env": env, **fitted_parts(run, opened.text)}
    parts = ("module", "task")
    plan = saved_plan(run, "built", parts, provided=tuple(provided), allow_code=allow_code)
    try:
        task: Task = plan.start(provided).get("task")
    except RuntimeError as error:  # torch's word for sizes that make no module
        raise CheckpointError(
            f"{opened.path}: the model in config.yaml cannot be built: {error}"
        ) from error
    task.module.to(env.device)
    code = [*plan_parts(plan), *text_parts(opened.text)]
    if allow_code:
        warn_of_edited(run, code)
    else:
        refuse_edited(run, code, wanted=wanted)
    return predictor_of(task, opened)


def fitted_parts(run: Path, text: TextProcessor) -> dict[str, Any]:
    """The ingredients of a run that its saved text processor stands for."""
    settings = saved_nodes(run, "settings").entries
    return text.ingredients_for([name for name, node in settings.items() if not is_null(node)])


def text_parts(text: TextProcessor) -> Iterator[Any]:
    """The classes and functions that a text processor is made of."""
    for part in (text, *text.ingredients.values()):
        yield type(part)
        yield from code_in(getattr(part, "config", None))


def edited_files(run: Path, files: Iterable[OwnFile]) -> str:
    """The files that have changed since a run was trained, by its seal, in words."""
    seal = RunSeal.read(run)
    if seal is None:
        return ""
    known = {*seal.code.values(), *seal.parts.values()}
    return " and ".join(file.shown for file in files if file.sha256 not in known)


def warn_of_edited(run: Path, parts: Iterable[Any]) -> None:
    """Warns if a run is used with a person's own code that is not what it was trained with."""
    if names := _edited_names(run, parts):
        LOG.warning(
            "%s changed since %s was trained: the answers may be those of another model. "
            "Restore it, or train anew.",
            names,
            run,
        )


def refuse_edited(run: Path, parts: Iterable[Any], *, wanted: bool) -> None:
    """Refuses imported code that is not the code that a run was trained with.

    It may belong to another run whose module has the same name. If the run keeps no copy of its
    code and it is not ``wanted``, the imported code is used with a warning.
    """
    if not (wanted or (run / "recipe.py").is_file()):
        warn_of_edited(run, parts)
    elif names := _edited_names(run, parts):
        if (run / "recipe.py").is_file():
            raise NeedsCodeError(
                f"{names} changed since {run} was trained. Restore it, or let the run's own copy "
                "be used, if you trust it: --allow-code on the command line, allow_code=True in "
                "Python."
            )
        raise UserError(
            f"{names} changed since {run} was trained, and this process has imported it "
            "already. Use the run in a process of its own, which imports what it was trained with."
        )


def _edited_names(run: Path, parts: Iterable[Any]) -> str:
    """The files that differ; empty if none does, or it cannot be told."""
    try:
        return edited_files(run, own_files(parts))
    except UserError as error:  # as of a class that was typed at a prompt
        LOG.warning("Not compared with the code that %s was trained with: %s", run, error)
        return ""


def predictor_of(task: Task, opened: Opened) -> Predictor:
    """Puts a checkpoint's weights, text processor and calibration into a task."""
    opened.load_weights(task.module)
    try:
        task.use_text(opened.text)
    except CheckpointError as error:
        raise CheckpointError(f"{opened.path}: {error}.") from None
    text = getattr(task.text, "answering", task.text)
    if isinstance(text, LabelText) and (found := Calibration.of(opened.path)) is not None:
        text.calibrate(found.temperature, found.thresholds)
    return Predictor(task, checkpoint=opened.path.name)


def saved_nodes(run: Path, section: Literal["built", "settings"]) -> Entries:
    """A section of a run's ``config.yaml``; empty where it has none.

    ``built`` records only what differs from ``settings``: the rest is taken from there.
    """
    path = run / "config.yaml"
    if not path.is_file():
        raise UserError(
            f"{run} has no config.yaml; wanted a folder that textmill train has written."
        )
    top = read_yaml(path)
    found: dict[str, Any] = {}
    for name in ("settings", "built")[: 2 if section == "built" else 1]:
        part = top.entries.get(name)
        found |= part.entries if isinstance(part, Entries) else {}
    return Entries(found, top.place)


def saved_plan(
    run: Path,
    section: Literal["built", "settings"],
    names: Sequence[str],
    *,
    provided: Sequence[str],
    words: Sequence[str] = (),
    instead: Mapping[str, str] | None = None,
    allow_code: bool = False,
) -> Plan:
    """Plans ingredients of a run from data alone: each must be a component known by its ``type``.

    The section is ``built``, with the sizes that came from data, or ``settings``, as resolved.
    ``provided`` are given as objects, and ``instead`` names another ingredient whose saved settings
    are taken. With ``allow_code`` the modules that the file names may be imported.
    """
    saved = saved_nodes(run, section)
    taken = {name: (instead or {}).get(name, name) for name in names}
    kept = {name: saved.entries[key] for name, key in taken.items() if key in saved.entries}
    top = read_yaml(run / "config.yaml").entries.get("swaps")
    swapped = top.entries if isinstance(top, Entries) else {}  # import paths; nothing is imported
    swaps = {name: item.text for name, item in swapped.items() if isinstance(item, Scalar)}
    closed = () if allow_code else (str(run / "config.yaml"),)
    code = CodeNames(closed=closed)
    table = {
        name: _component(run, name, kept.get(name), swap=swaps.get(taken[name]), code=code)
        for name in names
    }
    plan = make_plan(
        table_of_recipe(Recipe(**table), name=str(run / "config.yaml")),
        defaults=table_of_recipe(Recipe(), name="nothing"),
        layers=[Entries(kept, saved.place)],
        words=words,
        targets=names,
        always=provided,
        draft=True,
        closed=closed,
    )
    for part, kind in plan.unknown:
        raise _needs_code(run, part, kind)
    if plan.problems:
        raise PlanError(plan.problems)
    return plan


def _component(run: Path, name: str, node: Any, *, swap: str | None, code: CodeNames) -> Any:
    """The component that an ingredient of a run was, by its type.

    What an import path was swapped in for is the recipe's own, unless it is known here.
    """
    kind = node.entries.get("type") if isinstance(node, Entries) else None
    registry = registries.models if name == "module" else for_ingredient(name)
    if not isinstance(kind, Scalar):
        raise _needs_code(run, name, swap=swap)
    try:
        if kind.text.startswith("@"):
            found = code.find(kind.text, kind.place)
            if as_config(found) is not None:
                return found
        elif registry is not None:
            return registry.get(kind.text)
    except (UnknownNameError, UnknownCodeError):
        pass
    raise _needs_code(run, name, kind.text, swap=swap)
