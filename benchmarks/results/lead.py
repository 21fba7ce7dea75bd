"""The baselines of summaries that need no training: a text's first sentence, and its best one."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks.results.files import Files
from benchmarks.results.found import Found
from benchmarks.results.scores import Score, found_of
from textmill.metrics.rouge import Rouge, RougeKind

KINDS: tuple[RougeKind, ...] = ("rouge1", "rouge2", "rougeL")


@dataclass(frozen=True)
class OneSentence:
    """One of the sentences that a row's source is a list of; no choice is above the best one.

    It is scored as textmill's task scores summaries: by stems, against the reference that it is
    best by
    in ROUGE-1."""

    best: bool = False
    """Whether it is the best one; else the first."""

    @property
    def name(self) -> str:
        return "best sentence" if self.best else "first sentence"

    def found(self, files: Files, reading: Mapping[str, Any]) -> Found:
        """ROUGE on the dev rows; nothing is read from the training file."""
        each: dict[str, list[float]] = {kind: [] for kind in KINDS}
        for line in files.dev.read_text(encoding="utf-8").splitlines():
            row = json.loads(line)
            sentences = row["source"] if self.best else row["source"][:1]
            found = max((_rouge(text, row["target"]) for text in sentences), key=_of_words)
            for kind, value in found.items():
                each[kind].append(value)
        return found_of({k: Score(np.array(v), np.ones(len(v))) for k, v in each.items()})


def _rouge(text: str, references: Sequence[str]) -> Mapping[str, float]:
    metric = Rouge.Config(kinds=KINDS, chosen_by="rouge1", stems=True).build()
    metric.update([text], [references])
    return metric.compute()


def _of_words(found: Mapping[str, float]) -> float:
    return found["rouge1"]
