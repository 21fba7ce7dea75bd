"""One ingredient of a recipe, built and looked at: ``textmill test RECIPE -f NAME``."""

import tempfile
import time
from collections.abc import Callable, Iterable, Mapping, Sequence, Sized
from dataclasses import fields, is_dataclass
from functools import partial
from pathlib import Path
from typing import Any

import torch

from textmill.config.ingredient import DATA
from textmill.config.planning.overrides import Overrides
from textmill.config.recipe import Recipe
from textmill.data.seq2seq_batch import Seq2SeqBatch
from textmill.errors import TextmillError, UserError
from textmill.preflight.load_data import load_data
from textmill.preflight.max_tokens import is_auto, take_max_tokens
from textmill.recipes.planning import plan_recipe, seed_of
from textmill.runtime.seeds import seed_all
from textmill.tasks.batches.row_batches import peek
from textmill.tasks.task import Task
from textmill.text.tokenizers.tokenizer import Tokenizer

SHOWN_IDS = 30
"""Ids of a sequence that fit on a line or two; 99 of 100 sentences have fewer."""


def describe_batch(batch: Any, tokenizer: Tokenizer | None = None) -> list[str]:
    r"""The lines that show a batch: its type, the shape of each tensor, its first example.

    The tensors of a dataclass, mapping, tuple or list are found; without any there is no line. Of a
    ``Seq2SeqBatch`` the first example is shown too, with a tokenizer as the text the model sees.
    """
    tensors = [
        f"  {name} {list(value.shape)} {str(value.dtype).removeprefix('torch.')}"
        for name, value in _parts(batch)
        if isinstance(value, torch.Tensor)
    ]
    lines = [f"the first batch is a {type(batch).__name__}:", *tensors] if tensors else []
    if isinstance(batch, Seq2SeqBatch) and len(batch):
        sides = [("source", batch.source[0, : int(batch.source_lengths[0])].tolist())]
        if batch.target is not None and batch.target_lengths is not None:
            # A target has one id more than it has labels: the one it begins with.
            sides.append(("target", batch.target[0, : int(batch.target_lengths[0]) + 1].tolist()))
        lines.append("its first example:")
        lines += [f"  {name}, {len(ids)} ids: {_shown(ids, tokenizer)}" for name, ids in sides]
    return lines


def _parts(batch: Any) -> Iterable[tuple[str, Any]]:
    """The named parts of a batch; those of a tuple or list have their number for a name."""
    if is_dataclass(batch):
        return [(field.name, getattr(batch, field.name)) for field in fields(batch)]
    if isinstance(batch, Mapping):
        return [(str(name), value) for name, value in batch.items()]
    if isinstance(batch, tuple | list):
        return [(str(number), value) for number, value in enumerate(batch)]
    return [("itself", batch)]


def _shown(ids: Sequence[int], tokenizer: Tokenizer | None) -> str:
    line = " ".join(map(str, ids[:SHOWN_IDS])) + (" ..." if len(ids) > SHOWN_IDS else "")
    if tokenizer is None:
        return line
    size = tokenizer.vocab_info.size
    strange = next((number for number in ids if not 0 <= number < size), None)
    if strange is not None:
        return f"{line} (the tokenizer has {size:,} ids, so {strange} is none of them)"
    return f"{line} = {tokenizer.create_decoder()(ids)!r}"


Say = Callable[[str], None]

SECONDS = 20.0
"""Data is read for at most so long: enough to time it, short enough to wait for."""
SHOWN_CELLS = 2048
"""Cells of the batches that are shown where their number is still to be found."""


def try_ingredient(
    recipe: str | Path | Recipe,
    name: str,
    words: Overrides = (),
    *,
    configs: Sequence[str | Path] = (),
    allow_code: bool = False,
    device: str = "auto",
    say: Say = print,
) -> None:
    """Builds one ingredient and what it needs; data is also iterated, and measured.

    The recipe is named as :func:`textmill.runs.train.train` takes it, and need not be complete;
    ``say`` is called with the lines of the report. Of several tasks ``name`` is ``tags.model``.
    """
    plan = partial(plan_recipe, recipe, words, configs=configs, allow_code=allow_code)
    owner, _, inner = name.rpartition(".")
    planned = plan(targets=[] if owner else [name])
    for note in planned.plan.notes:
        say(note)
    with tempfile.TemporaryDirectory(prefix="textmill-test-") as folder:
        session = planned.start(Path(folder), "test", device)
        own = session.tasks.get(owner) if owner or (session.tasks and name in DATA) else session
        if own is None or not own.has(inner):
            of_tasks = [f"; of the task {each} as {each}.train_data" for each in session.tasks]
            raise UserError(
                f"there is no ingredient '{name}'. Name one of the recipe{''.join(of_tasks)}."
            )
        session = own
        seed_all(seed_of(planned.plan), 0)
        made = session.get(inner)
        if inner in DATA:
            load_data(name, made)
            task = session.get("task") if session.has("task") else None
            whole = plan(targets=[inner, "task"], draft=True)
            if task is None and not whole.plan.problems:
                session = whole.start(Path(folder), "test", device, {inner: made})
                task = session.get("task")
            tokenizer = session.get("tokenizer") if session.has("tokenizer") else None
            known = tokenizer if isinstance(tokenizer, Tokenizer) else None
            _measure(name, made, task, tokenizer=known, say=say)
    shown = repr(made)
    say(f"Success! {name}() = {shown if len(shown) <= 2000 else f'{shown[:2000]}…'}")


def _measure(
    name: str, data: Iterable[Any], task: Task | None, *, tokenizer: Tokenizer | None, say: Say
) -> None:
    first = peek(data)
    if first is None:
        raise TextmillError(f"{name} is empty.")
    if isinstance(first, Mapping):
        say(f"{name}: {_rows_read(data)}; the first: {dict(first)}")
        if task is None:
            say("The recipe has no complete task yet; batches are shown once it has.")
            return
        if is_auto(data):
            take_max_tokens({name: data}, SHOWN_CELLS)
            say(f"max_tokens=auto: shown with {SHOWN_CELLS:,}; textmill check says what it finds.")
        data = task.batches_of(name, data, train=name.endswith("train_data"), seed=1)
    _iterate(name, data, tokenizer, say)


def _rows_read(data: Iterable[Any]) -> str:
    """How many rows there are; those that have no length are read for a while, one by one."""
    if isinstance(data, Sized):
        return f"{len(data):,} rows"
    start, count = time.perf_counter(), 0
    for _ in data:
        count += 1
        if time.perf_counter() - start > SECONDS:
            return f"{count:,} rows in the first {SECONDS:g} s, and more"
    return f"{count:,} rows"


def _iterate(name: str, batches: Iterable[Any], tokenizer: Tokenizer | None, say: Say) -> None:
    """Reads up to one epoch; says how much, how fast and how padded, and shows its first batch."""
    start, what = time.perf_counter(), "one epoch"
    first: Any = None
    count = examples = tokens = source = target = 0
    cells = 0.0
    for batch in batches:
        first = first if count else batch
        count += 1
        examples += len(batch) if hasattr(batch, "__len__") else 1
        if isinstance(batch, Seq2SeqBatch):  # others do not say how many tokens are padding
            tokens += batch.num_tokens
            cells += batch.num_tokens / (1 - batch.padding) if batch.num_tokens else 0
            source = max(source, batch.source.shape[1])
            target = max(target, 0 if batch.target is None else batch.target.shape[1])
        if (seconds := time.perf_counter() - start) > SECONDS:
            what = f"the first {seconds:.0f} s of an epoch"
            break
    seconds = time.perf_counter() - start
    say(f"{name}, {what}: {count:,} batches, {examples:,} examples in {seconds:.2f} s")
    if tokens:
        say(f"{tokens / seconds:,.0f} tokens/s, padding {100 * (1 - tokens / cells):.1f} %")
        longest = f"{source} ids" + (f", target {target}" if target else "")
        say(
            f"a batch has {examples / count:,.1f} examples and {tokens / count:,.0f} tokens on "
            f"average; the longest source has {longest}"
        )
    for line in describe_batch(first, tokenizer):
        say(line)
