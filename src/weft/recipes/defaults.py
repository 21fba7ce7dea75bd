"""The ingredients a recipe need not name. A recipe replaces one by defining its name.

A default added later never changes an old script: what is here follows from what the recipe has.
"""

from collections.abc import Sequence

from weft.config.ingredient import BuiltFrom
from weft.metrics.reporters import Reporter
from weft.metrics.reporters.console import Console
from weft.metrics.reporters.jsonl import JsonLines
from weft.metrics.reporters.predictions import Predictions
from weft.recipes import registries
from weft.runtime.run_context import Experiment
from weft.tasks.translation import Translation
from weft.text.columns.numbers import Numbers
from weft.text.features.dictionaries import Dictionary
from weft.text.features.spelling import Affixes, Characters
from weft.training import AdamW, InverseSquareRoot
from weft.training.loop import Trainer
from weft.training.observers import Callback

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
