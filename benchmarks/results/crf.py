"""The linear baseline of tagging: CRFsuite with word, shape, affix and context features."""

import itertools
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from benchmarks.results.files import Files, rows
from benchmarks.results.found import Found
from benchmarks.results.scores import found_of, span_f1, token_accuracy, whole_rows

PARAMETERS = {"c1": 0.1, "c2": 0.01, "max_iterations": 100}
AFFIXES = (1, 2, 3, 4)
NEAR = (-2, -1, 1, 2)


@dataclass(frozen=True)
class Crf:
    """A linear-chain CRF (Lafferty et al. 2001) without vectors of words or lists of names.

    Trained by L-BFGS, 100 iterations, with L1 .1 and L2 .01.
    """

    words: str = "words"
    """The column of the words."""
    tags: str = "tags"
    """The column of their tags."""
    spans: Literal["bio", "io", "none"] = "none"
    """How tags mark spans: with spans, their F1 is a score."""
    prefix: Literal["span", "slot"] = "span"
    """What spans are called in the name of their score, as textmill's task calls it."""

    @property
    def name(self) -> str:
        return "CRFsuite"

    def found(self, files: Files, reading: Mapping[str, Any]) -> Found:
        """The scores on dev rows."""
        train, dev = rows(files.train, reading), rows(files.dev, reading)
        gold = [listed(row[self.tags]) for row in dev]
        with tempfile.TemporaryDirectory(prefix="textmill-crf-") as folder:
            tag = fitted(
                [listed(row[self.words]) for row in train],
                [listed(row[self.tags]) for row in train],
                Path(folder, "crf"),
            )
            answers = [tag(listed(row[self.words])) for row in dev]
        scores = {
            "token_accuracy": token_accuracy(gold, answers),
            "whole_sentence": whole_rows(gold, answers),
        }
        if self.spans != "none":
            scores[f"{self.prefix}_f1"] = span_f1(gold, answers, self.spans)
        return found_of(scores)


def listed(value: str | Sequence[str]) -> list[str]:
    """Words or tags, of a text or a list."""
    return value.split() if isinstance(value, str) else list(value)


def fitted(
    sentences: Sequence[Sequence[str]], tags: Sequence[Sequence[str]], path: Path
) -> Callable[[Sequence[str]], list[str]]:
    """Trains a model, kept at a path; gives what tags the words of a sentence."""
    import pycrfsuite

    trainer = pycrfsuite.Trainer(algorithm="lbfgs", params=PARAMETERS, verbose=False)
    for words, gold in zip(sentences, tags, strict=True):
        trainer.append([*features(words)], gold)
    trainer.train(str(path))
    tagger = pycrfsuite.Tagger()
    tagger.open(str(path))
    return lambda words: tagger.tag([*features(words)])


def features(words: Sequence[str]) -> Iterator[list[str]]:
    """Of each word: itself, its shape, its affixes, and the words near it."""
    own = [[*of_word(word)] for word in words]
    for place, word in enumerate(words):
        found = ["bias", *own[place]]
        found += [f"prefix={word[:n]}" for n in AFFIXES if n < len(word)]
        found += [f"suffix={word[-n:]}" for n in AFFIXES if n < len(word)]
        for step in NEAR:
            there = 0 <= place + step < len(words)
            near = own[place + step] if there else ["begin" if step < 0 else "end"]
            found += [f"{step:+}:{feature}" for feature in near]
        found += [f"after {a.lower()}|{word.lower()}" for a in words[max(place - 1, 0) : place]]
        found += [f"before {b.lower()}|{word.lower()}" for b in words[place + 1 : place + 2]]
        yield found


def of_word(word: str) -> Iterator[str]:
    """The word as it is and in small letters; its shape, whole and with runs as one."""
    yield f"word={word}"
    yield f"lower={word.lower()}"
    whole = "".join(map(kind, word))
    yield f"shape={whole}"
    yield f"runs={''.join(sign for sign, _ in itertools.groupby(whole))}"


def kind(sign: str) -> str:
    """What stands for a character in a shape: itself, where it is no letter and no digit."""
    if sign.isdigit():
        return "d"
    if sign.isalpha():
        return "X" if sign.isupper() else "x"
    return sign
