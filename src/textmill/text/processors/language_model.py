"""Text processors of language models: texts that are gone on with, and masks to be filled."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike
from typing_extensions import override

from textmill.errors import DataError, UserError
from textmill.text.answers import Answer, Generated
from textmill.text.cells import Rows
from textmill.text.columns.column import Column, texts_of
from textmill.text.columns.token_ids import TextColumn
from textmill.text.processors.column_processor import ColumnsText
from textmill.text.processors.text_processor import Encoded, text_processors
from textmill.text.ragged import Ragged
from textmill.text.tokenizers.tokenizer import PieceKinds, Tokenizer, not_text, pieces_of


@dataclass(frozen=True)
class Continued(Generated):
    """How a text goes on; ``str()`` gives what was added, its score is that of the whole."""

    keys = (*Generated.keys, "others?")

    others: tuple[Generated, ...] = ()
    """The further ones of ``decoding.n_best``, the best first."""


@dataclass(frozen=True)
class MeasuredText(Answer):
    """How well a model expects a row of text."""

    keys: ClassVar[tuple[str, ...]] = ("perplexity=rounded", "tokens")

    nats: float
    """Negative log-likelihood of its tokens and its end, each after all that was read before."""
    tokens: int
    """How many."""

    @property
    def perplexity(self) -> float:
        try:
            return math.exp(self.nats / self.tokens)
        except OverflowError:
            return math.inf

    @property
    def rounded(self) -> float:
        return round(self.perplexity, 4)


class TextOnly(ColumnsText):
    """Base of text processors of one column of text; :meth:`of` makes it."""

    kinds = {"text": TextColumn}  # noqa: RUF012  # a ClassVar of the base

    def __init__(self, inputs: Mapping[str, Column], targets: Mapping[str, Column]) -> None:
        super().__init__(inputs, targets)
        text = self.inputs["text"]
        assert isinstance(text, TextColumn)
        self.column, self.tokenizer = text.name, text.tokenizer

    @classmethod
    def of(cls, tokenizer: Tokenizer, *, column: str = "text") -> Self:
        return cls({"text": TextColumn(column, tokenizer)}, {})


@text_processors.register("language")
class LanguageText(TextOnly):
    r"""Rows of text, each ended by the tokenizer's mark.

    ``begin_idx`` is read before the first token of a row, and is not one of its tokens: the end of
    the row before, or the tokenizer's own mark if its texts have one (Llama's).
    """

    answer_class = Continued
    kind = "language"

    def __init__(self, inputs: Mapping[str, Column], targets: Mapping[str, Column]) -> None:
        super().__init__(inputs, targets)
        tokenizer = self.tokenizer
        if tokenizer.vocab_info.eos_idx < 0:
            raise UserError(
                f"A language model needs a mark of a text's end, but the tokenizer, a "
                f"{type(tokenizer).__name__}, has none. Set tokenizer.marks=true."
            )
        info = tokenizer.vocab_info
        self.eos_idx, self.unk_idx = info.eos_idx, info.unk_idx
        empty = tokenizer.create_encoder()("").tolist()
        self._begins = len(empty) > 1 and empty[0] == info.bos_idx
        self.begin_idx = info.bos_idx if self._begins else info.eos_idx

    @override
    def encode(self, rows: Rows, *, with_targets: bool, truncate: bool = False) -> Encoded:
        found = super().encode(rows, with_targets=with_targets, truncate=truncate)
        if not self._begins:
            return found
        ids = found["text"]
        after = Ragged(
            np.delete(ids.values, ids.offsets[:-1]), ids.offsets - np.arange(len(ids.offsets))
        )
        return Encoded({"text": after}, found.over_length)

    def begun(
        self, texts: Sequence[str], *, lines: bool = False, longest: int | None = None
    ) -> list[list[int]]:
        r"""Ids of texts that are to be gone on with: without the mark of their end."""
        encoder = self.tokenizer.create_encoder()
        if error := not_text(texts_of(texts, self.column), column=self.column):
            raise error
        parts = [text.split("\n") if lines else [text] for text in texts]
        rows = iter(encoder.batch([line for part in parts for line in part]))
        # Each row has its end mark; what a text ends with is still to come.
        first = int(self._begins)
        begun = [np.concatenate([next(rows)[first:] for _ in part]).tolist()[:-1] for part in parts]
        for row, ids in enumerate(begun):
            if longest is not None and len(ids) > longest:
                raise DataError(
                    f"Row {row}, column '{self.column}': has {len(ids)} tokens, but the "
                    f"model goes on with at most {longest}. Give the last part of the text."
                )
        return begun

    def continued(
        self, begun: Sequence[Sequence[int]], found: Sequence[Sequence[tuple[Sequence[int], float]]]
    ) -> list[Continued]:
        given = self.decode(begun)
        texts = iter(self.decode([ids for hypotheses in found for ids, _ in hypotheses]))
        answers = []
        for text, hypotheses in zip(given, found, strict=True):
            best, *others = (Generated(next(texts)[len(text) :], score) for _, score in hypotheses)
            answers.append(Continued(best.text, best.score, tuple(others)))
        return answers

    @override
    def decode(self, outputs: Iterable[ArrayLike]) -> list[str]:
        rows = [np.asarray(row, dtype=np.int64).tolist() for row in outputs]
        lines, counts = list[list[int]](), list[int]()
        for row in rows:
            parts: list[list[int]] = [[]]
            for token in row:
                if token == self.eos_idx:
                    parts.append([])
                else:
                    parts[-1].append(token)
            lines += parts
            counts.append(len(parts))
        texts = iter(self.tokenizer.create_decoder().batch(lines))
        return ["\n".join(next(texts) for _ in range(count)) for count in counts]


MASK = "[MASK]"
"""Written in place of a token that the model is to fill in, as in BERT's texts."""


@dataclass(frozen=True)
class Fill(Answer):
    """A token that may stand in place of a mask; ``str()`` gives its text."""

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
    """A text with its masks filled; ``str()`` gives it."""

    keys = ("prediction=text", "score", "masks")

    text: str
    """The text with the likeliest token in place of each mask."""
    masks: tuple[tuple[Fill, ...], ...]
    """The likeliest tokens for each mask, best first."""

    @property
    def score(self) -> float:
        """Product of the probabilities of the tokens that were filled in, each found by itself."""
        return math.prod(fills[0].score for fills in self.masks)

    @override
    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True)
class FoundTokens(MeasuredText):
    """How well a model finds the masked tokens of a row of text."""

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
        return self.tokenizer.vocab_info.size

    @cached_property
    def pieces(self) -> PieceKinds:
        return pieces_of(self.tokenizer)

    def masked(self, texts: Sequence[str], *, longest: int | None = None) -> list[list[int]]:
        """Ids of texts, with the mask's in place of each ``[MASK]``."""
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
        # An empty text has only the marks that begin and end every text.
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
