"""The built-in corpus as a data ingredient."""

import hashlib
from collections.abc import Iterator
from typing import Literal

from textmill.config.component import Component
from textmill.config.component import Config as BaseConfig
from textmill.data.batching import Batched, MaxTokens
from textmill.data.rows import Rows
from textmill.recipes import registries
from textmill.recipes.corpus.parts import load_corpus


@registries.datasets.register("corpus_pairs")
class CorpusPairs(Component, Batched):
    """Rows of one part of the built-in English-French corpus; nothing is downloaded."""

    class Config(BaseConfig):
        part: Literal["train", "valid", "test"] = "train"
        """The part; no sentence is in two of them."""
        corpus_seed: int = 0
        """Which of the sentences are held out: 0 as they are shipped, another deals them anew."""
        max_tokens: MaxTokens = 2048
        """Tokens of one optimizer step over all ranks, padding counted, of source and target; not
        used if batch_size is set. auto: a number that suits the device, found when a run starts."""
        batch_size: int | None = None
        """Rows of one optimizer step, over all ranks."""
        shuffle: bool = True
        """Whether each epoch has another order of the rows, which follows from the run's seed and
        the epoch."""

    def __init__(self, config: "CorpusPairs.Config") -> None:
        self.config = config
        _ = self.batching  # refuses sizes that are none
        pairs = getattr(load_corpus(config.corpus_seed), config.part)
        self._rows = Rows({"source": [en for en, _ in pairs], "target": [fr for _, fr in pairs]})

    def __len__(self) -> int:
        return len(self._rows)

    def __iter__(self) -> Iterator[dict[str, str]]:
        return iter(self._rows)

    def rows(self) -> Rows:
        return self._rows

    def fingerprint(self) -> str:
        lines = (f"{row['source']}\t{row['target']}\n".encode() for row in self._rows)
        return hashlib.sha256(b"".join(lines)).hexdigest()
