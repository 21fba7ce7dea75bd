"""The text processor of masked language models: rows of text, and texts with masks to be filled."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from typing_extensions import override

from textmill.errors import DataError
from textmill.text.answers import Answer
from textmill.text.columns.column import texts_of
from textmill.text.processors.language_model import MeasuredText, TextOnly
from textmill.text.processors.text_processor import text_processors
from textmill.text.tokenizers.tokenizer import PieceKinds, pieces_of

MASK = "[MASK]"
"""What a text has in place of a token that is to be found, as BERT's texts do."""


@dataclass(frozen=True)
class Fill(Answer):
    """A token that may stand in place of a mask; ``str()`` gives its text.

    Example:
        >>> print(Fill("alarm", 0.75))
        alarm
    """

    keys = ("text", "score")

    text: str
    """The token as it is written."""
    score: float
    """Its probability among all tokens."""

    @override
    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True)
class Filled(Answer):
    """A text with its masks filled; ``str()`` gives it.

    Example:
        >>> answer = Filled("set my alarm", ((Fill("set", 0.5),), (Fill("alarm", 0.8),)))
        >>> print(answer, answer.score)
        set my alarm 0.4
    """

    keys = ("prediction=text", "score", "masks")

    text: str
    """The text with the likeliest token in place of each mask."""
    masks: tuple[tuple[Fill, ...], ...]
    """Of each mask the likeliest tokens, the best first."""

    @property
    def score(self) -> float:
        """Product of the probabilities of the tokens that were filled in, each found by itself."""
        return math.prod(fills[0].score for fills in self.masks)

    @override
    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True)
class FoundTokens(MeasuredText):
    """How well a model finds the masked tokens of a row of text.

    Example:
        >>> round(FoundTokens(nats=2 * math.log(8), tokens=2, found=1).perplexity, 6)
        8.0
    """

    keys = ("masked=tokens", "found", "perplexity=rounded")

    found: int
    """How many of the tokens that were to be found it finds likeliest."""


@text_processors.register("masked")
class MaskedText(TextOnly):
    """Rows of text to train on; texts with ``[MASK]`` to answer.

    Any tokenizer will do: the mask's id is one beyond its vocabulary.
    """

    answer_class = Filled
    kind = "masked"

    @property
    def mask_idx(self) -> int:
        """The id of the mask."""
        return self.tokenizer.vocab_info.size

    @cached_property
    def pieces(self) -> PieceKinds:
        """What the ids of the vocabulary are."""
        return pieces_of(self.tokenizer)

    def masked(self, texts: Sequence[str], *, longest: int | None = None) -> list[list[int]]:
        """Ids of texts, with the mask's in place of each ``[MASK]``.

        Args:
            texts: The texts.
            longest: Most ids that the model reads; None is any number.

        Raises:
            DataError: A text has no mask, or more ids; names its row.

        Example:
            >>> from textmill.text.tokenizers.word_tokenizer import WordTokenizer
            >>> text = MaskedText.of(WordTokenizer.Config(words=("set", "my")).build())
            >>> text.masked(["set [MASK] alarm", "[MASK]"])
            [[2, 4, 1], [4]]
        """
        parts = [text.split(MASK) for text in texts_of(texts, self.column)]
        for row, found in enumerate(parts):
            if len(found) == 1:
                raise DataError(
                    f"Row {row}, column '{self.column}': has no {MASK}, so there is nothing to "
                    f"fill in. Write {MASK} in place of a word."
                )
        encoder = self.tokenizer.create_encoder()
        # A space before a mask belongs to the token in its place, but of tokens that have none.
        cut = not self.pieces.spaces
        given = (
            part.removesuffix(" ") if cut and number < len(each) else part
            for each in parts
            for number, part in enumerate(each, 1)
        )
        rows = iter(encoder.batch(["", *given]))
        # What stands before and behind the ids of every text, by those of an empty one.
        empty = next(rows).tolist()
        ends = int(empty[-1:] == [self.tokenizer.vocab_info.eos_idx])
        before, after = empty[: len(empty) - ends], empty[len(empty) - ends :]
        masked: list[list[int]] = []
        for part in parts:
            ids: list[int] = []
            for row in (next(rows).tolist() for _ in part):
                ids += [self.mask_idx, *row[len(before) : len(row) - ends]]
            masked.append([*before, *ids[1:], *after])
        for row, ids in enumerate(masked):
            if longest is not None and len(ids) > longest:
                raise DataError(
                    f"Row {row}, column '{self.column}': has {len(ids)} tokens, but the "
                    f"model reads at most {longest}. Give the part of the text around its {MASK}."
                )
        return masked

    @override
    def decode(self, outputs: Iterable[tuple[ArrayLike, ArrayLike]]) -> list[Any]:
        """Of texts, the tokens that may stand in place of each mask.

        Args:
            outputs: Of each text ids and their probabilities, best first; each *Shape:* ``[M, K]``
                for M masks.

        Returns:
            Of each text a tuple of :class:`Fill` for each mask.
        """
        answers = []
        decoder = self.tokenizer.create_decoder()
        for ids, scores in outputs:
            numbers, values = np.asarray(ids), np.asarray(scores, np.float64)
            texts = iter(decoder.batch([[number] for number in numbers.ravel().tolist()]))
            answers.append(
                tuple(tuple(Fill(next(texts), score) for score in row) for row in values.tolist())
            )
        return answers

    def filled(self, text: str, masks: tuple[tuple[Fill, ...], ...]) -> Filled:
        """The answer to a text, given the tokens of each of its masks."""
        first, *others = text.split(MASK)
        spaced = self.pieces.spaces
        for fills, part in zip(masks, others, strict=True):
            first += (fills[0].text if spaced else fills[0].text.strip()) + part
        return Filled(first, masks)
