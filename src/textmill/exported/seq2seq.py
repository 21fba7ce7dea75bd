"""Texts that are generated: typed answers, and how an exported model searches them."""

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from textmill.text.answers import Generated, Translated
from textmill.text.cells import Rows, joined_text
from textmill.text.processors.seq2seq import Seq2SeqText
from textmill.text.tokenizers.word_tokenizer import WordTokenizer, unknown_words, with_unknown


def translated(text: Seq2SeqText, found: Sequence[Sequence[Any]]) -> list[Translated]:
    """An answer of each row's hypotheses, which have ``ids`` and ``score``, the best first."""
    texts = iter(text.decode([one.ids for hypotheses in found for one in hypotheses]))
    answers = [[Generated(next(texts), one.score) for one in hypotheses] for hypotheses in found]
    return [Translated(best.text, best.score, tuple(others)) for best, *others in answers]


def with_copied(answers: Sequence[Translated], rows: Rows, text: Seq2SeqText) -> list[Translated]:
    """Answers with the unknown words of their sources in place of their own, in order."""
    tokenizer = text.tokenizer
    assert isinstance(tokenizer, WordTokenizer), "others are refused"
    sources = [unknown_words(tokenizer, joined_text(row["source"])) for row in rows]
    return [
        Translated(
            with_unknown(answer.text, words),
            answer.score,
            tuple(replace(o, text=with_unknown(o.text, words)) for o in answer.alternatives),
        )
        for answer, words in zip(answers, sources, strict=True)
    ]


@dataclass(frozen=True)
class Found:
    """A target sequence that an exported graph's search found."""

    ids: list[int]
    """Token ids without the prefix and without the end mark."""
    score: float
    """As :attr:`Translated.score`."""


Forced = Sequence[Sequence[int]] | None
"""Ids that each row's target must begin with; None if there are none."""
LARGEST_BEAM = 1_000
"""The limit in training, too: more would only take memory."""


@dataclass(frozen=True, kw_only=True)
class Search:
    """Settings of a search: those of ``Decoding`` that a CTranslate2 program has."""

    beam_size: int = 1
    """Sequences followed at once; 1 is greedy search."""
    n_best: int = 1
    """Hypotheses for a source, at most ``beam_size``."""
    length_penalty: float = 1.0
    """Power of the length that log-probabilities are divided by."""
    early_stopping: str = "heuristic"
    """``first``, ``heuristic`` or ``never``."""
    max_length_a: float = 2.0
    """At most ``max_length_a * S + max_length_b`` ids are generated for a source of S."""
    max_length_b: int = 10
    """See ``max_length_a``."""
    max_length: int = 512
    """Most ids that can be generated: for so many the model has positions."""

    def limit(self, length: int, forced: int = 0) -> int:
        """The most ids of the target of a source of this many, those that it begins with on top."""
        factor, most = min(self.max_length_a, float(self.max_length)), self.max_length
        return min(min(int(factor * length) + min(self.max_length_b, most), most) + forced, most)


ROWS = 64
"""Most sources that are searched together."""


T = TypeVar("T")


def by_length(rows: Sequence[Sequence[Any]], answer: Callable[[list[int]], Sequence[T]]) -> list[T]:
    """Answers rows of one length together, at most :data:`ROWS`, so that nothing is padded.

    ``answer`` is given the numbers of some rows; the answers are in the order of the rows.
    """
    alike: dict[int, list[int]] = defaultdict(list)
    for number, row in enumerate(rows):
        alike[len(row)].append(number)
    found: dict[int, T] = {}
    for numbers in alike.values():
        for start in range(0, len(numbers), ROWS):
            some = numbers[start : start + ROWS]
            found.update(zip(some, answer(some), strict=True))
    return [found[number] for number in range(len(rows))]
