"""A tiny translator in memory: its rows, trainers of it, and what they leave."""

import random
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from tests.runs.tiny import metrics_of
from textmill.checkpoint import Checkpoints
from textmill.data.batching import Batching
from textmill.metrics.reporters.jsonl import JsonLines, Predictions
from textmill.models.decoding import Decoding
from textmill.models.transformer import Transformer
from textmill.runtime.devices import Env, Experiment
from textmill.tasks import Translation
from textmill.text.tokenizers.sentencepiece import MultilingualTokenizer
from textmill.training import AdamW, Callback, Every, InverseSquareRoot, Trainer

WORDS = {
    "the cat": "le chat", "the dog": "le chien", "a bird": "un oiseau", "my friend": "mon ami",
    "sees": "voit", "eats": "mange", "likes": "aime", "bread": "du pain", "fish": "du poisson",
    "a house": "une maison",
}  # fmt: skip
SUBJECTS, VERBS, OBJECTS = (list(WORDS)[i:j] for i, j in ((0, 4), (4, 7), (7, 10)))


def sentences():
    """All 36 sentences of the grammar, in an order that is mixed and always the same."""
    words = [(s, v, o) for s in SUBJECTS for v in VERBS for o in OBJECTS]
    rows = [
        {"source": " ".join(three), "target": " ".join(WORDS[word] for word in three)}
        for three in words
    ]
    random.Random(5).shuffle(rows)
    return rows


class Adverse(Translation):
    """A task whose validation loss is the worse the longer it trains, best at the first."""

    calls = 0

    def reduce(self, metrics):
        type(self).calls += 1
        return {**super().reduce(metrics), "loss": float(type(self).calls)}


class Rows:
    """Rows at hand, with their batching: what a reader gives."""

    def __init__(self, rows, **batching):
        self._rows, self.batching = rows, Batching(**batching)

    def __iter__(self):
        return iter(self._rows)

    def rows(self):
        return self._rows


class Killed(BaseException):
    """Stands for SIGKILL: nothing in textmill catches it."""


class KillAt(Callback):
    """Ends everything at one event of one step."""

    def __init__(self, step, event="step"):
        self.at = step
        setattr(self, event, self.kill)

    def kill(self, progress, *_):
        if progress.steps == self.at:
            raise Killed


class AsksAt(Callback):
    """Asks to stop at one event of one step, and only then."""

    def __init__(self, event, step=0):
        setattr(self, event, lambda progress, *_: progress.steps == step)


@dataclass
class Bench:
    """Makes trainers in one folder, each as a new process would: from the same seeds."""

    tokenizer: MultilingualTokenizer
    folder: Path
    trainer: dict[str, Any] = field(default_factory=dict)
    task_class: type = Translation
    task: dict[str, Any] = field(default_factory=dict)
    schedule: Any = None
    scheduler: Callable[[Any], Any] | None = None  # of torch's, of the optimizer
    optimizer: AdamW.Config | None = None
    train_data: Callable[[], Any] | None = None
    valid_data: Callable[[], Any] | None = lambda: Rows(sentences()[30:], batch_size=4)
    test_data: Callable[[], Any] | None = lambda: Rows(sentences()[28:32], batch_size=3)
    callbacks: Callable[[], list[Callback]] = list
    model: Any = Transformer
    dropout: float = 0.1
    lr: float = 5e-3
    eps: float = 1e-9

    def but(self, **changes):
        """Another bench, in the same folder if no other is named."""
        return replace(self, **changes)

    def make(self, *callbacks, **trainer):
        """A fresh trainer, as a new process would build it."""
        torch.manual_seed(3)
        random.seed(3)
        np.random.seed(3)  # noqa: NPY002  # what code of one's own may draw from
        module = self.model.Config(
            dim=16, ffn_dim=32, num_heads=2, num_encoder_layers=1, num_decoder_layers=1,
            dropout=self.dropout,
        ).build(tokenizer=self.tokenizer)  # fmt: skip
        decoding = Decoding(max_length_a=0.5, max_length_b=4)
        config = self.task_class.Config(**{"decoding": decoding, **self.task})
        task = config.build(module=module, tokenizer=self.tokenizer)
        xp = Experiment(folder=self.folder, recipe="tiny")
        self.folder.mkdir(parents=True, exist_ok=True)
        defaults = {
            "max_steps": 12, "accumulate": 2, "evaluate_every": Every(5),
            "save_every": Every(3), "report_every": Every(2),
        }  # fmt: skip
        data = self.train_data or (lambda: Rows(sentences()[:28], batch_size=4))
        made = self.optimizer or AdamW.Config(lr=self.lr, eps=self.eps)
        optimizer = made.build(module=module, task=task)
        schedule = self.schedule or InverseSquareRoot.Config(warmup_steps=4).build()
        return Trainer.Config(**{**defaults, **self.trainer, **trainer}).build(
            task=task, optimizer=optimizer,
            lr_scheduler=self.scheduler(optimizer) if self.scheduler else schedule,
            train_data=data(), valid_data=self.valid_data and self.valid_data(),
            test_data=self.test_data and self.test_data(),
            reporters=[JsonLines.Config().build(xp=xp), Predictions.Config().build(xp=xp)],
            callbacks=[*self.callbacks(), *callbacks], env=Env(), xp=xp,
        )  # fmt: skip


def outcome(trainer):
    """Everything a run leaves that must not depend on what happened to it."""
    folder, last = trainer.xp.folder, trainer.checkpoints.last()
    assert last is not None
    saved = {name: Checkpoints.load_part(last, name) for name in ("model", "optimizer", "data")}
    files = sorted((folder / "predictions").glob("*")) if trainer.valid is not None else []
    return {
        "tested weights": dict(trainer.task.module.state_dict()), **saved, "last": last.name,
        "metrics": metrics_of(folder),
        "predictions": {path.name: path.read_bytes() for path in files},
        "history": trainer.selection and trainer.selection.history, "summary": trainer.summary,
        "steps": (trainer.clock.now.steps, trainer.clock.now.epochs, trainer.clock.now.examples),
    }  # fmt: skip


def differences(one, other, path=""):
    """Where two outcomes differ, bitwise; nothing when they are the same."""
    if isinstance(one, torch.Tensor) and isinstance(other, torch.Tensor):
        same = one.dtype == other.dtype and torch.equal(one, other)
    elif isinstance(one, dict) and isinstance(other, dict):
        if one.keys() != other.keys():
            return [f"{path}: {sorted(map(str, one))} / {sorted(map(str, other))}"]
        return [line for k in one for line in differences(one[k], other[k], f"{path}.{k}")]
    elif isinstance(one, list | tuple) and isinstance(other, list | tuple):
        if len(one) != len(other):
            return [f"{path}: {len(one)} / {len(other)} items"]
        pairs = enumerate(zip(one, other, strict=True))
        return [line for i, (a, b) in pairs for line in differences(a, b, f"{path}.{i}")]
    else:
        same = repr(one) == repr(other)
    return [] if same else [f"{path}: {one!r} / {other!r}"[:300]]


def killed_and_resumed(bench, *kills, folder=""):
    """The trainer of a run that each of ``kills`` ended, one process after the other."""
    here = bench.but(folder=bench.folder / folder)
    for kill in kills:
        with pytest.raises(Killed):
            here.make(kill).fit()
    trainer = here.make()
    trainer.fit()
    return trainer


def undisturbed(here):
    """The trainer of the same run in another folder, which nothing ended."""
    trainer = here.but(folder=here.folder / "undisturbed").make()
    trainer.fit()
    return trainer


def prove(here, steps, event="step"):
    """Killed at any of these steps a run leaves what the undisturbed one does, which is given."""
    whole = undisturbed(here)
    wanted = outcome(whole)
    for step in steps:
        found = outcome(killed_and_resumed(here, KillAt(step, event), folder=f"{event}-{step}"))
        assert differences(wanted, found) == [], (event, step)
    return whole
