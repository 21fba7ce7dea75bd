"""The baseline of summaries that needs no training: a text's first sentence."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks.results.files import Files
from benchmarks.results.found import Found
from benchmarks.results.scores import Score, found_of
from weft.metrics.rouge import Rouge, RougeKind

KINDS: tuple[RougeKind, ...] = ("rouge1", "rouge2", "rougeL")


@dataclass(frozen=True)
class FirstSentence:
    """The first of the sentences that a row's source is a list of; the reference that it is best by
    in ROUGE-1 counts, without stemming, as weft's task scores its summaries."""

    @property
    def name(self) -> str:
        return "first sentence"

    def found(self, files: Files, reading: Mapping[str, Any]) -> Found:
        """ROUGE on the dev rows; nothing is read from the training file."""
        each: dict[str, list[float]] = {kind: [] for kind in KINDS}
        for line in files.dev.read_text(encoding="utf-8").splitlines():
            row = json.loads(line)
            metric = Rouge.Config(kinds=KINDS, chosen_by="rouge1").build()
            metric.update([row["source"][0]], [row["target"]])
            for kind, value in metric.compute().items():
                each[kind].append(value)
        return found_of({k: Score(np.array(v), np.ones(len(v))) for k, v in each.items()})
