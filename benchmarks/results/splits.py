"""Small sets of classification, made of larger ones: what ``classification/ngrams`` is held to.

Labels that no file has are taken from what it has: whether a sentence has a proper noun, say. All
are of training parts.
"""

import json
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, Protocol

Row = tuple[str, ...]
"""A label and one text, or two."""
Read = Callable[[Path], list[Row]]
Part = Literal["train", "dev"]


class Table(Protocol):
    """Reads a part of a set that has two."""

    def __call__(self, data: Path, part: Part = "train", /) -> list[Row]: ...


def drawn(rows: Sequence[Row], size: int, seed: int) -> list[Row]:
    """So many rows, other ones for each seed; all in their order, where ``size`` is 0."""
    return random.Random(seed).sample(rows, min(size, len(rows))) if size else [*rows]


def of_table(folder: str, *columns: int) -> Table:
    """Cells of a TSV file without a header."""

    def rows(data: Path, part: Part = "train") -> list[Row]:
        lines = (data / folder / f"{part}.tsv").read_text(encoding="utf-8").splitlines()
        table = (line.split("\t") for line in lines if line.strip())
        return [tuple(row[column] for column in columns) for row in table]

    return rows


def of_trees(data: Path) -> list[Row]:
    """The outermost intent of top-en's parses, and the text."""
    found = of_table("top-en", 2, 1)(data)
    return [(tree.split()[0].removeprefix("[IN:"), text) for tree, text in found]


def of_words(file: str, has: Callable[[Sequence[str]], bool]) -> Read:
    """Whether one word of a sentence has something, and the sentence; of CoNLL files."""

    def rows(data: Path) -> list[Row]:
        sentences = list(_sentences((data / file).read_text(encoding="utf-8")))
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


def of_lines(*files: str) -> Callable[[Path], Iterator[Any]]:
    """The values of JSON lines."""

    def values(data: Path) -> Iterator[Any]:
        for file in files:
            yield from map(json.loads, (data / file).read_text(encoding="utf-8").splitlines())

    return values


def fields_of_references(data: Path) -> list[Row]:
    """The field of each piece of a reference string, and the piece."""
    files = [f"refstrings/{name}.jsonl" for name in ("cora.train", "flux-cim-cs", "iconip")]
    rows = list[Row]()
    for reference in of_lines(*files)(data):
        piece = list[str]()
        tags = [*reference["tags"], None]
        for token, tag, after in zip(reference["tokens"], tags, tags[1:], strict=False):
            piece.append(token)
            if tag != after:
                rows.append((tag, " ".join(piece)))
                piece = []
    return rows


def summaries(data: Path) -> list[Row]:
    """Whether a text is a summary of a paper, or the last sentence of its abstract."""
    papers = list(of_lines("scitldr/train.jsonl")(data))
    texts = [("summary", paper["target"][0]) for paper in papers]
    return texts + [("abstract", paper["source"][-1]) for paper in papers]


def topics_of_questions(data: Path) -> list[Row]:
    """The article that a question of SQuAD is asked of, and the question."""
    articles = json.loads((data / "squad-dev/train.json").read_text(encoding="utf-8"))["data"]
    return [
        (article["title"], question["question"])
        for article in articles
        for paragraph in article["paragraphs"]
        for question in paragraph["qas"]
    ]


def share_of_nouns(data: Path) -> list[Row]:
    """How many of a sentence's words are nouns, from 0 to 1, and the sentence."""
    sentences = list(_sentences((data / "ud-ewt/train.tsv").read_text(encoding="utf-8")))
    return [
        (
            str(sum(word[1] in ("NOUN", "PROPN") for word in words) / len(words)),
            " ".join(word[0] for word in words),
        )
        for words in sentences
    ]


def length_of_slots(data: Path) -> list[Row]:
    """How many brackets a parse of top-en has, and the text."""
    return [(str(tree.count("[")), text) for tree, text in of_table("top-en", 2, 1)(data)]


NUMBERS: Mapping[str, Read] = {
    "ud-ewt-noun-share": share_of_nouns,
    "top-en-brackets": length_of_slots,
}
"""As ``SPLITS``, with a number in a label's place."""
SPLITS: Mapping[str, Read] = {
    "sms-spam": of_table("sms-spam", 0, 1),
    "wnut17-has-entity": of_words("wnut17/train.conll", lambda word: word[1] != "O"),
    "dataset-mentions": of_words("dataset-mentions/train.conll", lambda word: word[2] != "O"),
    "scitldr-summary": summaries,
    "ud-ewt-proper-noun": of_words("ud-ewt/train.tsv", lambda word: word[1] == "PROPN"),
    "ud-ewt-past-tense": of_words("ud-ewt/train.tsv", lambda word: word[2] == "VBD"),
    "snli-hypothesis": of_table("snli-small", 0, 2),
    "snli-pair": of_table("snli-small", 0, 1, 2),
    "refstrings-field": fields_of_references,
    "snips-intents": of_table("snips", 0, 1),
    "top-en-domains": of_table("top-en", 0, 1),
    "squad-topic": topics_of_questions,
    "top-en-intents": of_trees,
}
"""From a folder of data to the rows of its training part, the cheap ones first."""
