"""The text processor of trees over words: a tag for each word, and the tree that they make."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from typing_extensions import override

from textmill.errors import DataError
from textmill.text.answers import Answer
from textmill.text.cells import Rows, of_one_row, unlisted, words_in
from textmill.text.columns.inputs import BESIDE_WORDS, WORD_KINDS
from textmill.text.columns.trees import TreesColumn
from textmill.text.features.tree_tags import read_cell, tree_of_tags
from textmill.text.processors.column_processor import ColumnsText
from textmill.text.processors.text_processor import Encoded, text_processors


@dataclass(frozen=True)
class Parsed(Answer):
    """A sentence's tree; ``str()`` gives it in brackets.

    Example:
        >>> print(Parsed("[IN:CALL call ]", ("[IN:CALL",), (0.9,)))
        [IN:CALL call ]
    """

    keys = ("prediction=tree", "score")

    tree: str
    """In brackets."""
    tags: tuple[str, ...]
    """What opens and closes at each word."""
    scores: tuple[float, ...]
    """The probability of each tag."""

    @property
    def score(self) -> float:
        """The probability of the least certain tag; 1 where there is no word."""
        return min(self.scores, default=1.0)

    @override
    def __str__(self) -> str:
        return self.tree


@dataclass(frozen=True)
class TreeCheck:
    """A row has a tree, which is of the words of its sentence.

    Example:
        >>> TreeCheck("source", "target")({"source": "stop", "target": "[IN:STOP stop"})
        "column 'target': A tree is written [IN:LABEL words [SL:LABEL words ] ], but 1 brackets \
stay open: '[IN:STOP stop'"
    """

    words: str
    """The column of the sentence."""
    tree: str

    def __call__(self, row: Mapping[str, Any]) -> str | None:
        """What is wrong with a row; None: nothing, or it does not have the columns."""
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
    """Refuses a tree that is not of its row's words."""
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
        """The column of the trees."""
        column = self.targets["tags"]
        assert isinstance(column, TreesColumn)
        return column

    def words(self, row: Mapping[str, Any], number: int = 0) -> list[str]:
        """The words of a row."""
        name = self.inputs["words"].name
        return words_in(row[name], name, number)

    @override
    def encode(self, rows: Rows, *, with_targets: bool, truncate: bool = False) -> Encoded:
        """Encodes the columns.

        Raises:
            DataError: A row lacks a column, has a value that cannot be used, or a tree of other
                words than its sentence; names it.
        """
        found = super().encode(rows, with_targets=with_targets)
        if with_targets:
            for number, row in enumerate(rows):
                self._check(row, number)
        return self.cut(found) if truncate else found

    def _check(self, row: Mapping[str, Any], number: int) -> None:
        """Refuses a tree that is not of its row's words."""
        words, (leaves, _) = self.words(row, number), self.tags.parts(row[self.tags.name])
        columns = (self.inputs["words"].name, self.tags.name)
        _refuse_other_words(words, leaves, columns=columns, number=number)

    @override
    def decode(self, outputs: Iterable[tuple[ArrayLike, ArrayLike]]) -> list[Parsed]:
        """Answers from the number and the probability of each word's tag, without the tree."""
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
        """The answer with the tree that its tags make of its row's words."""
        words = self.words(row)[: len(answer.tags)]
        tree = tree_of_tags(words, answer.tags, root=self.tags.labels.root)
        return Parsed(tree, answer.tags, answer.scores)
