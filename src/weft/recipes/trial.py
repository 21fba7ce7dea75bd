"""Trying one ingredient of a recipe: ``weft test RECIPE -f NAME``."""

import tempfile
import time
from collections.abc import Callable, Iterable, Mapping, Sequence, Sized
from functools import partial
from pathlib import Path
from typing import Any

from weft.config.recipe import Recipe
from weft.config.words import Overrides
from weft.data.seq2seq import Seq2SeqBatch
from weft.errors import WeftError
from weft.recipes.first_batch import describe_batch
from weft.recipes.max_tokens import take_max_tokens
from weft.recipes.planning import plan_recipe
from weft.recipes.reading import DATA, read_data
from weft.recipes.run import seed_of
from weft.runtime.devices import Env
from weft.runtime.experiment import Experiment
from weft.runtime.seeds import seed_all
from weft.tasks.row_batches import peek
from weft.tasks.task import Task
from weft.text.tokenizer import Tokenizer

__all__ = ["try_ingredient"]

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
) -> Any:
    """Builds one ingredient and what it needs; data is also iterated, and measured.

    Args:
        recipe: A script, an experiment, a YAML file or a Recipe; it need not be complete.
        name: The ingredient.
        words: Settings as on the command line.
        configs: YAML files of settings.
        allow_code: Whether code that a run folder brings may be executed.
        device: ``auto``, or a device as torch names it.
        say: Called with the lines of the report.

    Returns:
        What the ingredient made.
    """
    plan = partial(plan_recipe, recipe, words, configs=configs, allow_code=allow_code)
    planned = plan(targets=[name])
    for note in planned.plan.notes:
        say(note)
    with tempfile.TemporaryDirectory(prefix="weft-test-") as folder:
        xp = Experiment(folder=Path(folder), recipe=planned.name)
        provided = {"env": Env.detect(device), "xp": xp, "entry_point": "test"}
        session = planned.plan.start(provided)
        seed_all(seed_of(planned.plan), 0)
        made = session.get(name)
        if name in DATA:
            read_data(name, made)
            whole = plan(targets=[name, "task"], draft=True)
            complete = not whole.plan.problems
            session = whole.plan.start({**provided, name: made}) if complete else session
            task = session.get("task") if complete else None
            tokenizer = session.get("tokenizer") if session.has("tokenizer") else None
            known = tokenizer if isinstance(tokenizer, Tokenizer) else None
            _measure(name, made, task, tokenizer=known, say=say)
    say(f"Success! {name}() = {_shown(made)}")
    return made


def _shown(made: object) -> str:
    text = repr(made)
    return text if len(text) <= 2000 else f"{text[:2000]}…"


def _measure(
    name: str, data: Iterable[Any], task: Task | None, *, tokenizer: Tokenizer | None, say: Say
) -> None:
    first = peek(data)
    if first is None:
        raise WeftError(f"{name} is empty.")
    if isinstance(first, Mapping):
        say(f"{name}: {_rows_read(data)}; the first: {dict(first)}")
        if task is None:
            say("The recipe has no complete task yet; batches are shown once it has.")
            return
        if getattr(getattr(data, "batching", None), "is_auto", False):
            take_max_tokens({name: data}, SHOWN_CELLS)
            say(f"max_tokens=auto: shown with {SHOWN_CELLS:,}; weft check says what it finds.")
        data = task.batches_of(name, data, train=name == "train_data", seed=1)
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


class _Counts:
    """What is counted of the batches of an epoch."""

    def __init__(self) -> None:
        self.batches = self.examples = self.tokens = self.source = self.target = 0
        self.cells = 0.0
        self.first: Any = None

    def add(self, batch: Any) -> None:
        """Counts a batch; tokens only where its type says how many are padding."""
        self.first = batch if not self.batches else self.first
        self.batches += 1
        self.examples += len(batch) if hasattr(batch, "__len__") else 1
        if isinstance(batch, Seq2SeqBatch):
            self.tokens += batch.num_tokens
            self.cells += batch.num_tokens / (1 - batch.padding) if batch.num_tokens else 0
            self.source = max(self.source, batch.source.shape[1])
            self.target = max(self.target, 0 if batch.target is None else batch.target.shape[1])


def _iterate(name: str, batches: Iterable[Any], tokenizer: Tokenizer | None, say: Say) -> None:
    """Reads up to one epoch; says how much, how fast and how padded, and shows its first batch."""
    start = time.perf_counter()
    counts, ended = _Counts(), True
    for batch in batches:
        counts.add(batch)
        if time.perf_counter() - start > SECONDS:
            ended = False
            break
    seconds = time.perf_counter() - start
    what = "one epoch" if ended else f"the first {seconds:.0f} s of an epoch"
    count, examples, tokens = counts.batches, counts.examples, counts.tokens
    say(f"{name}, {what}: {count:,} batches, {examples:,} examples in {seconds:.2f} s")
    if tokens:
        say(f"{tokens / seconds:,.0f} tokens/s, padding {100 * (1 - tokens / counts.cells):.1f} %")
        longest = f"{counts.source} ids" + (f", target {counts.target}" if counts.target else "")
        say(
            f"a batch has {examples / count:,.1f} examples and {tokens / count:,.0f} tokens on "
            f"average; the longest source has {longest}"
        )
    for line in describe_batch(counts.first, tokenizer):
        say(line)
