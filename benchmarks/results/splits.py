"""Small sets of classification, made of larger ones: what ``classification/ngrams`` is held to.

Labels that no file has are taken from what it has: whether a sentence has a proper noun, say.
"""

import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Literal

Row = tuple[str, ...]
"""A label and one text, or two."""
Part = Literal["train", "dev"]

SIZES = (500, 2000, 0)
"""Rows of a training part; 0: all there are."""


def drawn(rows: Sequence[Row], size: int, seed: int) -> list[Row]:
    """So many rows, other ones for each seed; all in their order, where ``size`` is 0."""
    return random.Random(seed).sample(rows, min(size, len(rows))) if size else [*rows]


def of_table(folder: str, *columns: int) -> Callable[[Path, Part], list[Row]]:
    """Cells of a TSV file without a header."""

    def rows(data: Path, part: Part) -> list[Row]:
        lines = (data / folder / f"{part}.tsv").read_text(encoding="utf-8").splitlines()
        table = (line.split("\t") for line in lines if line.strip())
        return [tuple(row[column] for column in columns) for row in table]

    return rows


def of_trees(data: Path, part: Part) -> list[Row]:
    """The outermost intent of top-en's parses, and the text."""
    found = of_table("top-en", 2, 1)(data, part)
    return [(tree.split()[0].removeprefix("[IN:"), text) for tree, text in found]


def of_words(file: str, has: Callable[[Sequence[str]], bool]) -> Callable[[Path, Part], list[Row]]:
    """Whether one word of a sentence has something, and the sentence; of CoNLL files."""

    def rows(data: Path, part: Part) -> list[Row]:
        sentences = list(_sentences((data / file.format(part)).read_text(encoding="utf-8")))
        return [
            ("yes" if any(map(has, words)) else "no", " ".join(word[0] for word in words))
            for words in sentences
        ]

    return rows


def _sentences(text: str) -> Iterator[list[list[str]]]:
    for block in text.split("\n\n"):
        words = [line.split("\t") for line in block.splitlines() if line.strip()]
        if words:
            yield words


def share_of_nouns(data: Path, part: Part) -> list[Row]:
    """How many of a sentence's words are nouns, from 0 to 1, and the sentence."""
    sentences = list(_sentences((data / f"ud-ewt/{part}.tsv").read_text(encoding="utf-8")))
    return [
        (
            str(sum(word[1] in ("NOUN", "PROPN") for word in words) / len(words)),
            " ".join(word[0] for word in words),
        )
        for words in sentences
    ]


def length_of_slots(data: Path, part: Part) -> list[Row]:
    """How many brackets a parse of top-en has, and the text."""
    return [(str(tree.count("[")), text) for tree, text in of_table("top-en", 2, 1)(data, part)]


NUMBERS: Mapping[str, Callable[[Path, Part], list[Row]]] = {
    "ud-ewt-noun-share": share_of_nouns,
    "top-en-brackets": length_of_slots,
}
"""As ``SPLITS``, with a number in a label's place."""
SPLITS: Mapping[str, Callable[[Path, Part], list[Row]]] = {
    "sms-spam": of_table("sms-spam", 0, 1),
    "snips-intents": of_table("snips", 0, 1),
    "snli-hypothesis": of_table("snli-small", 0, 2),
    "snli-pair": of_table("snli-small", 0, 1, 2),
    "ud-ewt-proper-noun": of_words("ud-ewt/{}.tsv", lambda word: word[1] == "PROPN"),
    "ud-ewt-past-tense": of_words("ud-ewt/{}.tsv", lambda word: word[2] == "VBD"),
    "wnut17-has-entity": of_words("wnut17/{}.conll", lambda word: word[1] != "O"),
    "top-en-intents": of_trees,
}
"""From a folder of data to the rows of its training or its dev part."""
