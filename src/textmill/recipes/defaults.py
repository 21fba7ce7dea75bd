"""The ingredients a recipe need not name. A recipe replaces one by defining its name.

A default added later never changes an old script: what is here follows from what the recipe has.
"""

from collections.abc import Sequence

from textmill.config.ingredient import BuiltFrom
from textmill.metrics.reporters import Reporter
from textmill.metrics.reporters.console import Console
from textmill.metrics.reporters.jsonl import JsonLines, Predictions
from textmill.recipes import registries
from textmill.runtime.devices import Experiment
from textmill.tasks.generation import Translation
from textmill.text.columns.dictionary import Dictionary
from textmill.text.columns.numbers import Numbers
from textmill.text.features.spelling import Affixes, Characters
from textmill.training import AdamW, InverseSquareRoot
from textmill.training.loop import Trainer
from textmill.training.observers import Callback

task = Translation.Config()
module = BuiltFrom("model")
optimizer = AdamW.Config()
lr_scheduler = InverseSquareRoot.Config()
trainer = Trainer.Config()


def dense() -> Numbers | None:
    """Numbers beside a text: none. ``dense.type=fitted`` takes those of the column ``dense``."""
    return None


def characters() -> Characters | None:
    """Characters of words: none. ``characters.type=fitted`` takes those of the column ``words``."""
    return None


def affixes() -> Affixes | None:
    """Affixes of words: none. ``affixes.type=fitted`` takes those of the column ``words``."""
    return None


def dictionary() -> Dictionary | None:
    """What is known of words: nothing. ``dictionary.type=phrases`` takes a file of phrases."""
    return None


def reporters(
    xp: Experiment, console: bool = True, html: bool = True, also: tuple[str, ...] = ()
) -> Sequence[Reporter]:
    """Where values and examples go: the console, metrics.jsonl, predictions and report.html.

    Args:
        xp: The run, in whose folder they write.
        console: Whether the console shows progress and values.
        html: Whether report.html is written, after evaluations and at the end.
        also: Further reporters by their registered names, as they are by default: [tensorboard].
    """
    shown: list[Reporter] = [Console.Config().build()] if console else []
    files: list[Reporter] = [JsonLines.Config().build(xp=xp), Predictions.Config().build(xp=xp)]
    # By its name, since it shows what differs from the defaults: it imports this module.
    named = [*(["html"] if html else []), *also]
    return [*shown, *files, *(registries.reporters.get(n).Config().build(xp=xp) for n in named)]


def callbacks() -> Sequence[Callback]:
    """Observers of the run; none."""
    return ()
