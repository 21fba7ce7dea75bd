"""A small classifier, whose runs a hostile hand changes: it needs no code and half a second."""

import atexit
import random
import shutil
from functools import cache
from pathlib import Path
from tempfile import mkdtemp

import textmill

STEPS = 4


@cache
def data() -> Path:
    """A folder with ``train.tsv`` and ``dev.tsv``."""
    folder = Path(mkdtemp(prefix="textmill-small-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    draws = random.Random(1)
    rows = [
        f"{label}\t{' '.join(draws.choices('abcd', k=4))} {label}\n"
        for label in draws.choices(("ham", "spam"), k=40)
    ]
    (folder / "train.tsv").write_text("".join(rows))
    (folder / "dev.tsv").write_text("".join(rows[:10]))
    return folder


def words(**settings: object) -> list[str]:
    """The settings of a run, as on the command line."""
    every = dict.fromkeys(("evaluate_every", "save_every"), "2 steps")
    given = {
        "train_data.path": data() / "train.tsv",
        "valid_data.path": data() / "dev.tsv",
        "model.embedding.dim": 8,
        "model.hidden": "[8]",
        "tokenizer": "{type: fitted_words}",
        "trainer.max_steps": STEPS,
        **{f"trainer.{name}": value for name, value in every.items()},
        "reporters.console": "false",
        "reporters.html": "false",
        **settings,
    }
    return [f"{name}={value}" for name, value in given.items()]


@cache
def small_run() -> Path:
    """A finished run; tests change copies of it."""
    return textmill.train("classification/averaging", words(), run_dir=data() / "run").folder
