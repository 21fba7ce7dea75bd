"""Text processors of words: words, and what stands beside them, to labels or to a tree."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from typing_extensions import override

from textmill.errors import DataError
from textmill.text.answers import Answer, TaggedSpan
from textmill.text.cells import Rows, of_one_row, unlisted, words_in
from textmill.text.columns.inputs import BESIDE_WORDS, WORD_KINDS
from textmill.text.columns.labels import TagsColumn, TreesColumn
from textmill.text.features.labels import split_labels
from textmill.text.features.slots import places_of, text_of
from textmill.text.features.tag_spans import Scheme, tag_spans
from textmill.text.features.tree_tags import read_cell, tree_of_tags
from textmill.text.processors.column_processor import ColumnsText
from textmill.text.processors.text_processor import Encoded, text_processors


@dataclass(frozen=True)
class Tagged(Answer):
    """Words with a label each; ``str()`` gives the labels."""

    keys = ("prediction=__str__", "score", "scores", "spans?")

    tags: tuple[str, ...]
    """A label for each word."""
    scores: tuple[float, ...]
    """The probability of each."""
    words: tuple[str, ...] = ()
    """The words, as they are in the text."""
    spans: tuple[TaggedSpan, ...] | None = None
    """What the tags mark; None where they are of no scheme of spans."""

    @property
    def score(self) -> float:
        return min(self.scores, default=1.0)

    @override
    def __str__(self) -> str:
        return " ".join(self.tags)


@dataclass(frozen=True)
class TagsCheck:
    """A row has as many tags as words."""

    words: str
    """The column of the words."""
    tags: str
    separator: str | None = None
    """Between two tags; None: white space."""

    def __call__(self, row: Mapping[str, Any]) -> str | None:
        if self.words not in row or self.tags not in row:
            return None
        try:
            words = words_in(row[self.words], self.words, 0)
            tags = split_labels(row[self.tags], self.separator, column=self.tags, row=0)
            if len(words) != len(tags):
                raise _other_number(0, {self.words: len(words)}, {self.tags: len(tags)})
        except DataError as error:
            return of_one_row(error)
        return None


def _other_number(row: int, words: Mapping[str, int], tags: Mapping[str, int]) -> DataError:
    (name, count), (column, found) = *words.items(), *tags.items()
    return DataError(
        f"Row {row} has {count} words in '{name}', but {found} tags in '{column}': wanted one for "
        "each word."
    )


@text_processors.register("tagging")
class TaggingText(ColumnsText):
    """Words, and what stands beside them, to a label for each."""

    answer_class = Tagged
    kind = "tagging"
    leading = "words"
    kinds = {**WORD_KINDS, "tags": TagsColumn}  # noqa: RUF012  # a ClassVar of the base
    target_roles = frozenset({"tags"})
    optional = BESIDE_WORDS
    answer_settings = {"scheme": (None, "bio", "bilou", "io")}  # noqa: RUF012  # as above
    scheme: Scheme | None = None
    """How labels mark spans; None: they do not."""

    @property
    def tags(self) -> TagsColumn:
        column = self.targets["tags"]
        assert isinstance(column, TagsColumn)
        return column

    @override
    def encode(self, rows: Rows, *, with_targets: bool, truncate: bool = False) -> Encoded:
        found = super().encode(rows, with_targets=with_targets)
        if with_targets:
            words = found["words"].lengths // self.inputs["words"].width
            tags = found["tags"].lengths // self.tags.width
            if len(wrong := np.flatnonzero(words != tags)):
                row = int(wrong[0])
                name = self.inputs["words"].name
                raise _other_number(row, {name: words[row]}, {self.tags.name: tags[row]})
        return self.cut(found) if truncate else found

    @override
    def decode(self, outputs: Iterable[tuple[ArrayLike, ArrayLike]]) -> list[Tagged]:
        names = self.tags.labels.names
        return [
            Tagged(
                tuple(names[number] for number in np.asarray(numbers).tolist()),
                tuple(np.asarray(scores, dtype=np.float64).tolist()),
            )
            for numbers, scores in outputs
        ]

    @override
    def completed(self, answer: Tagged, row: Mapping[str, Any]) -> Tagged:
        column = self.inputs["words"].name
        text = text_of(row[column], column, 0)
        places = places_of(text)[: len(answer.tags)]
        words = tuple(text[start:end] for start, end in places)
        spans = []
        for kind, first, after in tag_spans(answer.tags, self.scheme) if self.scheme else []:
            start, end = places[first][0], places[after - 1][1]
            score = min(answer.scores[first:after])
            part = text[start:end]
            spans.append(TaggedSpan(kind=kind, text=part, start=start, end=end, score=score))
        return Tagged(answer.tags, answer.scores, words, tuple(spans) if self.scheme else None)


@dataclass(frozen=True)
class Parsed(Answer):
    """A sentence's tree; ``str()`` gives it in brackets."""

    keys = ("prediction=tree", "score")

    tree: str
    """In brackets."""
    tags: tuple[str, ...]
    """What opens and closes at each word."""
    scores: tuple[float, ...]
    """The probability of each tag."""

    @property
    def score(self) -> float:
        return min(self.scores, default=1.0)

    @override
    def __str__(self) -> str:
        return self.tree


@dataclass(frozen=True)
class TreeCheck:
    """A row has a tree, which is of the words of its sentence."""

    words: str
    """The column of the sentence."""
    tree: str

    def __call__(self, row: Mapping[str, Any]) -> str | None:
        if self.words not in row or self.tree not in row:
            return None
        try:
            words = words_in(row[self.words], self.words, 0)
            leaves, _ = read_cell(unlisted(row[self.tree]), column=self.tree, row=0)
            _refuse_other_words(words, leaves, columns=(self.words, self.tree), number=0)
        except DataError as error:
            return of_one_row(error)
        return None


def _refuse_other_words(
    words: Sequence[str], leaves: Sequence[str], *, columns: tuple[str, str], number: int
) -> None:
    if words != leaves:
        pairs = enumerate(zip_longest(words, leaves))
        at, (word, leaf) = next((at, pair) for at, pair in pairs if pair[0] != pair[1])
        raise DataError(
            f"Row {number}: the tree in '{columns[1]}' is not of the words in '{columns[0]}': word "
            f"{at} (from 0) is {word!r:.60}, but in the tree {leaf!r:.60}. Trees of other words "
            "want task.type=semantic_parsing."
        )


@text_processors.register("trees")
class TreesText(ColumnsText):
    """Words, and what stands beside them, to the tree of intents and slots over them."""

    answer_class = Parsed
    kind = "trees"
    leading = "words"
    kinds = {**WORD_KINDS, "tags": TreesColumn}  # noqa: RUF012  # a ClassVar of the base
    target_roles = frozenset({"tags"})
    optional = BESIDE_WORDS

    @property
    def tags(self) -> TreesColumn:
        column = self.targets["tags"]
        assert isinstance(column, TreesColumn)
        return column

    def words(self, row: Mapping[str, Any], number: int = 0) -> list[str]:
        name = self.inputs["words"].name
        return words_in(row[name], name, number)

    @override
    def encode(self, rows: Rows, *, with_targets: bool, truncate: bool = False) -> Encoded:
        found = super().encode(rows, with_targets=with_targets)
        if with_targets:
            for number, row in enumerate(rows):
                self._check(row, number)
        return self.cut(found) if truncate else found

    def _check(self, row: Mapping[str, Any], number: int) -> None:
        words, (leaves, _) = self.words(row, number), self.tags.parts(row[self.tags.name])
        columns = (self.inputs["words"].name, self.tags.name)
        _refuse_other_words(words, leaves, columns=columns, number=number)

    @override
    def decode(self, outputs: Iterable[tuple[ArrayLike, ArrayLike]]) -> list[Parsed]:
        names = self.tags.labels.names
        return [
            Parsed(
                "",
                tuple(names[number] for number in np.asarray(numbers).tolist()),
                tuple(np.asarray(scores, dtype=np.float64).tolist()),
            )
            for numbers, scores in outputs
        ]

    @override
    def completed(self, answer: Parsed, row: Mapping[str, Any]) -> Parsed:
        words = self.words(row)[: len(answer.tags)]
        tree = tree_of_tags(words, answer.tags, root=self.tags.labels.root)
        return Parsed(tree, answer.tags, answer.scores)
