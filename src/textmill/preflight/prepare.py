"""Preparing a recipe's data: ``textmill prepare RECIPE`` reads every row and keeps its tokens."""

import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from textmill.config.planning.overrides import Overrides
from textmill.config.planning.session import Session
from textmill.data.batching import Batched
from textmill.data.store import tokens
from textmill.data.store.tokens import TokenStore, characters_of, kept_fingerprint
from textmill.data.text_pairs import TextPairs
from textmill.errors import UserError
from textmill.preflight.load_data import all_data, fingerprint_of, read_one
from textmill.recipes.planning import plan_recipe, seed_of
from textmill.runtime.seeds import fold, seed_everything
from textmill.tasks.batches.row_batches import is_row, peek_first, rows_of
from textmill.text.processors.text_processor import TextProcessor


def prepare(
    recipe: str | Path,
    words: Overrides = (),
    *,
    configs: Sequence[str | Path] = (),
    allow_code: bool = False,
    device: str = "auto",
    verify: bool = False,
    workers: int | None = None,
    say: Callable[[str], None] = print,
) -> dict[str, Path]:
    """Reads and tokenizes all data of a recipe, so that training finds it done.

    The recipe is named as :func:`textmill.runs.train.train` takes it; ``say`` is called with the
    lines of the report. With ``verify`` every byte of the stores that are there is read, and one
    that is damaged is made again; ``workers`` is how many processes encode, None as many as pay.

    Returns:
        The folder of each store, by the data's name; data too small for one is not in it.

    Raises:
        BadRowsError: There are more bad rows than are allowed.
        StorageError: A store cannot be written.
    """
    if workers is not None and workers < 0:
        raise UserError(f"workers: wanted 0 or more processes, found {workers}.")
    planned = plan_recipe(
        recipe, words, configs=configs, targets=["trainer"], allow_code=allow_code
    )
    for note in planned.plan.notes:
        say(note)
    with tempfile.TemporaryDirectory(prefix="textmill-prepare-") as folder:
        session = planned.start(Path(folder), "prepare", device)
        seed_everything(fold(seed_of(planned.plan), "data"))  # as training does: the same rows
        read = dict[str, tuple[Any, Session]]()
        for name, (own, inner) in all_data(session).items():
            count, data = read_one(own, inner), own.get(inner)
            read[name] = data, own
            if count is None:
                continue
            say(f"{name}: {count}")
            for row in (data.bad_rows if isinstance(data, TextPairs) else ())[:20]:
                say(f"  {row}")
            if count.bad > 20:
                say(f"  ... and {count.bad - 20} more")
        folders = {}
        for name, (data, own) in read.items():
            text: TextProcessor = own.get("task").text
            if (store := _store(name, data, text, say)) is not None:
                rows, _ = rows_of(data, train=name.endswith("train_data"))
                store.get(text, rows, workers=workers, whole=verify, say=say)
                opened = store.open()
                assert opened is not None, f"{store.folder} was just opened"
                manifest, encoded = opened
                ids = sum(len(column.values) for column in encoded.columns.values())
                counted = f"{encoded.num_rows:,} rows, {ids:,} tokens"
                say(f"{name}: {counted}, {manifest.size / 1e6:,.1f} MB in {store.folder}")
                folders[name] = store.folder
    return folders


def _store(
    name: str, data: Any, text: TextProcessor, say: Callable[[str], None]
) -> TokenStore | None:
    """Where the tokens of some data belong; None, and why, where nothing is kept of it."""
    first, data = peek_first(data)
    if not is_row(first, text.columns):
        why = "ready batches, which are made anew in each run"
    elif fingerprint_of(data) is None:
        why = "rows without a fingerprint, which are encoded anew in each run"
    elif isinstance(data, Batched) and not data.keeps_tokens:
        why = f"encoded anew in each run, as {name}.keep_tokens=false says"
    elif (fingerprint := kept_fingerprint(data, text)) is None:
        why = (
            "encoded anew in each run: the data, the text processor or its tokenizer is code "
            "of your own, and a store does not know when it changes"
        )
    else:
        rows, _ = rows_of(data, train=name.endswith("train_data"))
        characters = characters_of(rows, text.columns)
        if characters >= tokens.LEAST_CHARACTERS:
            return TokenStore.of(text, fingerprint)
        why = (
            f"{characters:,} characters, encoded anew in each run: a store pays from "
            f"{tokens.LEAST_CHARACTERS:,} on"
        )
    say(f"{name}: {why}")
    return None
