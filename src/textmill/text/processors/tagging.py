"""Text processors of words: words, and what stands beside them, to labels or to a tree."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike
from typing_extensions import override

from textmill.errors import DataError
from textmill.text.answers import Answer, TaggedSpan
from textmill.text.cells import DividedText, RowCheck, Rows, cell_at, texts_in, unlisted, words_in
from textmill.text.columns.column import ColumnKind
from textmill.text.columns.inputs import BESIDE_WORDS, WORD_KINDS
from textmill.text.columns.labels import TagsColumn, TreesColumn
from textmill.text.columns.texts import TextsColumn
from textmill.text.columns.words import WordsColumn
from textmill.text.features.labels import split_labels
from textmill.text.features.slots import places_of, text_of
from textmill.text.features.tag_spans import Scheme, marked_parts
from textmill.text.features.tree_tags import read_cell
from textmill.text.processors.column_processor import ColumnsText
from textmill.text.processors.text_processor import Encoded, text_processors


@dataclass(frozen=True)
class TaggedWords(Answer):
    """Words with a tag each."""

    tags: tuple[str, ...]
    """A label for each word; of a tree, what opens and closes at it, or a parser's actions."""
    scores: tuple[float, ...]
    """The probability of each; of actions, one number, that of all together."""

    @property
    def score(self) -> float:
        return min(self.scores, default=1.0)


@dataclass(frozen=True)
class Tagged(TaggedWords):
    """Words with a label each; ``str()`` gives the labels."""

    keys = ("prediction=__str__", "score", "scores", "spans?", "tokens=divided?")

    words: tuple[str, ...] = ()
    """The words, as they are in the text; or the texts that the labels are of."""
    spans: tuple[TaggedSpan, ...] | None = None
    """What the tags mark; None if they are of no scheme of spans."""
    divided: tuple[str, ...] | None = None
    """The words, if they are not those that white space divides."""

    @override
    def __str__(self) -> str:
        return " ".join(self.tags)


@dataclass(frozen=True)
class TagsCheck(RowCheck):
    """A row has as many tags as words."""

    words: str
    """The column of the words."""
    tags: str
    separator: str | None = None
    """Between two tags; None: white space."""
    texts: bool = False
    """Whether the column has lists of texts, and each text a tag."""
    reads = ("words", "tags")

    @override
    def refuse(self, row: Mapping[str, Any]) -> None:
        words = (texts_in if self.texts else words_in)(row[self.words], self.words, 0)
        tags = split_labels(row[self.tags], self.separator, column=self.tags, row=0)
        if len(words) != len(tags):
            kind = "text" if self.texts else "word"
            raise _other_number(0, kind, self.words, len(words), self.tags, len(tags))


def _other_number(row: int, kind: str, name: str, count: int, column: str, found: int) -> DataError:
    return DataError(
        f"Row {row} has {count} {kind}s in '{name}', but {found} tags in '{column}': wanted one "
        f"for each {kind}."
    )


class TagsText(ColumnsText):
    """Base of text processors of words, and what stands beside them, to a tag for each."""

    leading = "words"
    kinds: ClassVar[Mapping[str, ColumnKind]] = {**WORD_KINDS, "tags": TagsColumn}
    target_roles = frozenset({"tags"})
    optional = BESIDE_WORDS

    @property
    def tags(self) -> Any:
        """The column of the tags."""
        return self.targets["tags"]

    @override
    def decode(self, outputs: Iterable[tuple[ArrayLike, ArrayLike]]) -> list[Any]:
        """Answers from the number and the probability of each word's tag."""
        names, answer = self.tags.labels.names, self.answer_class
        assert answer is not None
        return [
            answer(
                tuple(names[number] for number in np.asarray(numbers).tolist()),
                tuple(np.asarray(scores, dtype=np.float64).tolist()),
            )
            for numbers, scores in outputs
        ]


@text_processors.register("tagging")
class TaggingText(TagsText):
    """Words, and what stands beside them, or texts, to a label for each."""

    answer_class = Tagged
    kind = "tagging"
    kinds: ClassVar[Mapping[str, ColumnKind]] = {
        **TagsText.kinds,
        "words": WordsColumn | TextsColumn,
    }
    answer_settings = {"scheme": (None, "bio", "bilou", "io")}  # noqa: RUF012  # of the base
    scheme: Scheme | None = None
    """How labels mark spans; None: they do not."""

    @override
    def check_targets(self, rows: Rows, encoded: Encoded) -> None:
        column = self.inputs["words"]
        words, tags = column.places(encoded["words"]), self.tags.places(encoded["tags"])
        if len(wrong := np.flatnonzero(words != tags)):
            row, kind = int(wrong[0]), "text" if isinstance(column, TextsColumn) else "word"
            raise _other_number(row, kind, column.name, words[row], self.tags.name, tags[row])

    @override
    def completed(self, answer: Tagged, row: Mapping[str, Any]) -> Tagged:
        column = self.inputs["words"]
        if isinstance(column, TextsColumn):
            texts = column.texts(cell_at(row, column.name), 0)[: len(answer.tags)]
            return Tagged(answer.tags, answer.scores, tuple(texts))
        text = text_of(cell_at(row, column.name), column.name, 0)
        places = places_of(text)[: len(answer.tags)]
        words = tuple(text[start:end] for start, end in places)
        spans = None
        if self.scheme:
            parts = marked_parts(text, places, answer.tags, answer.scores, self.scheme)
            spans = tuple(TaggedSpan(kind=kind, **part) for kind, part in parts)
        divided = words if isinstance(text, DividedText) else None
        return Tagged(answer.tags, answer.scores, words, spans, divided)


@dataclass(frozen=True)
class Parsed(TaggedWords):
    """A sentence's tree; ``str()`` gives it in brackets."""

    keys = ("prediction=tree", "score")

    tree: str = ""
    """In brackets."""

    @override
    def __str__(self) -> str:
        return self.tree


@dataclass(frozen=True)
class TreeCheck(RowCheck):
    """A row has a tree, which is of the words of its sentence."""

    words: str
    """The column of the sentence."""
    tree: str
    reads = ("words", "tree")

    @override
    def refuse(self, row: Mapping[str, Any], number: int = 0) -> None:
        words = words_in(cell_at(row, self.words), self.words, number)
        leaves, _ = read_cell(unlisted(row[self.tree]), column=self.tree, row=number)
        if words != leaves:
            pairs = enumerate(zip_longest(words, leaves))
            at, (word, leaf) = next((at, pair) for at, pair in pairs if pair[0] != pair[1])
            raise DataError(
                f"Row {number}: the tree in '{self.tree}' is not of the words in '{self.words}': "
                f"word {at} (from 0) is {word!r:.60}, but in the tree {leaf!r:.60}. Trees of other "
                "words want task.type=semantic_parsing."
            )


@text_processors.register("trees")
class TreesText(TagsText):
    """Words, and what stands beside them, to the tree of intents and slots over them."""

    answer_class = Parsed
    kind = "trees"
    kinds: ClassVar[Mapping[str, ColumnKind]] = {**WORD_KINDS, "tags": TreesColumn}

    @override
    def check_targets(self, rows: Rows, encoded: Encoded) -> None:
        check = TreeCheck(self.inputs["words"].name, self.tags.name)
        for number, row in enumerate(rows):
            check.refuse(row, number)

    @override
    def completed(self, answer: Parsed, row: Mapping[str, Any]) -> Parsed:
        column = self.inputs["words"].name
        tree = self.tags.labels.tree(words_in(cell_at(row, column), column, 0), answer.tags)
        return Parsed(answer.tags, answer.scores, tree)
