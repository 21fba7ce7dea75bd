"""Experiments that train several tasks together, on an encoder that they share.

Name each task with its recipe: ``pos.recipe=tagging/pretrained pos.train_data.path=train.conll``.
"""

from torch import nn

from textmill.config.recipe import Recipe, register_experiment
from textmill.tasks.several.multitask import Multitask
from textmill.text.tokenizers.word_tokenizer import FittedWords
from textmill.training import Adam, AdamW, Linear, Selection, Trainer


def module(task: Multitask) -> nn.Module:
    """The modules of all tasks, by their names."""
    return task.module


MEAN = Selection.Config(metric="mean")


@register_experiment("multitask/words")
def multitask_words() -> Recipe:
    """Several tasks on words, vectors and an encoder that they share; name each by its recipe."""
    return Recipe(
        tokenizer=FittedWords.Config(columns=("text",), min_count=2),
        task=Multitask.Config(share=("embedding", "encoder")),
        module=module,
        optimizer=Adam.Config(lr=2e-3),
        lr_scheduler=Linear.Config(warmup_steps=50),
        trainer=Trainer.Config(max_epochs=10, ema=0.999, selection=MEAN),
    )


@register_experiment("multitask/pretrained")
def multitask_pretrained() -> Recipe:
    """Several tasks on one pretrained encoder; name each by its recipe, as tagging/pretrained."""
    return Recipe(
        task=Multitask.Config(),
        module=module,
        # Those of the recipes of one task.
        optimizer=AdamW.Config(lr=2e-4, lr_width=384, weight_decay=0.01, layer_decay=0.9),
        lr_scheduler=Linear.Config(warmup_ratio=0.1),
        trainer=Trainer.Config(max_epochs=5, selection=MEAN),
    )
