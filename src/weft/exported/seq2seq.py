"""Exported models that generate text: by the saved text processor, the saved search and a graph."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any, Protocol

from typing_extensions import override

from weft.errors import DataError
from weft.exported.manifest import ExportError
from weft.exported.row_predictor import Row, RowPredictor
from weft.text.answer_rows import TextRow
from weft.text.processors.text_processor import Seq2SeqText, source_text

__all__ = ["ExportedSeq2Seq", "Found", "Graph", "Search", "Translated"]


@dataclass(frozen=True)
class Translated:
    """A generated text with its score; ``str()`` gives the text.

    Example:
        >>> print(Translated("Bonjour.", -0.31))
        Bonjour.
    """

    text: str
    """The text."""
    score: float
    """Its length-normalized log-probability (natural logarithm; higher is more certain)."""
    alternatives: tuple["Translated", ...] = ()
    """The other hypotheses of an n-best search, best first."""

    @override
    def __str__(self) -> str:
        return self.text

    def row(self) -> TextRow:
        """The answer as plain data, as a file of predictions has it.

        Example:
            >>> Translated("Bonjour.", -0.31).row()
            {'prediction': 'Bonjour.', 'score': -0.31}
        """
        row: TextRow = {"prediction": self.text, "score": round(self.score, 6)}
        if self.alternatives:
            row["alternatives"] = [
                {"prediction": a.text, "score": round(a.score, 6)} for a in self.alternatives
            ]
        return row


@dataclass(frozen=True)
class Found:
    """A target sequence that an exported graph's search found."""

    ids: list[int]
    """Token ids without the prefix and without the end mark."""
    score: float
    """As :attr:`Translated.score`."""


LARGEST = 1 << 20
"""Of numbers: no model has as many positions."""
LARGEST_BEAM = 1_000
"""As in training: more would only take memory."""


@dataclass(frozen=True, kw_only=True)
class Search:
    """Settings of a search, as :class:`weft.models.decoding.search_settings.Decoding` has them.

    Example:
        >>> Search(max_length=64).limit(9)
        28
    """

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
    max_length: int
    """Most ids that can be generated: for so many the model has positions."""

    def limit(self, length: int) -> int:
        """The most ids to generate for a source of this many."""
        factor = min(self.max_length_a, float(self.max_length))
        return min(int(factor * length) + min(self.max_length_b, self.max_length), self.max_length)

    def to_json(self) -> dict[str, Any]:
        """As JSON values."""
        return asdict(self)

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> "Search":
        """Reads what :meth:`to_json` gave.

        Raises:
            ExportError: It holds something else.
        """
        known = {field.name: field.type for field in fields(cls)}
        if set(values) != set(known):
            odd = ", ".join(sorted(set(values) ^ set(known), key=str))
            raise ExportError(f"the settings of the search are not this weft's: {odd:.200}")
        for name, value in values.items():
            if not _fits(known[name], value):
                raise ExportError(f"the setting '{name}' of the search cannot be {value!r:.80}")
        search = cls(**values)
        positive = ("beam_size", "n_best", "max_length", "max_length_b")
        wrong = [name for name in positive if getattr(search, name) < 1]
        if search.max_length_a < 0:
            wrong.append("max_length_a")
        if search.beam_size > LARGEST_BEAM:
            wrong.append("beam_size")
        if search.n_best > search.beam_size:
            wrong.append("n_best")
        if search.early_stopping not in ("first", "heuristic", "never"):
            wrong.append("early_stopping")
        if wrong:
            name = wrong[0]
            raise ExportError(f"the setting '{name}' of the search cannot be {values[name]!r:.80}")
        return search


def _fits(kind: Any, value: Any) -> bool:
    if kind is str:
        return isinstance(value, str)
    if isinstance(value, bool):
        return False
    if kind is int:
        return isinstance(value, int) and 0 <= value <= LARGEST
    return isinstance(value, int | float) and abs(value) <= LARGEST  # neither infinite nor NaN


CHARACTERS_A_TOKEN = 100
"""A longer source is not encoded to know that it is too long."""
ROWS = 64
"""Sources searched together; all are of one length, so there is no padding."""


class Graph(Protocol):
    """What runs a graph."""

    def find(self, rows: Sequence[Sequence[int]], limit: int) -> list[list[Found]]:
        """Hypotheses of each source of ids, the best first, of at most ``limit`` ids."""
        ...


class ExportedSeq2Seq(RowPredictor):
    """Answers strings as the trained model did, without torch.

    Args:
        text: The saved text processor.
        search: How answers are searched.
        graph: What computes them.
    """

    def __init__(self, text: Seq2SeqText, search: Search, graph: Graph) -> None:
        super().__init__(text.input_columns)
        self.text, self.search, self.graph = text, search, graph
        self.data: Mapping[str, Any] = {}
        """How the run's data was read, where it was a file."""

    @override
    def answers(self, rows: Sequence[Row]) -> list[Translated]:
        if not rows:
            return []
        for row in rows:
            _refuse_prefix(row)
        found = self.find(self.encoded(rows))
        texts = iter(self.text.decode([h.ids for hypotheses in found for h in hypotheses]))
        answers = [[Translated(next(texts), h.score) for h in many] for many in found]
        return [Translated(a[0].text, a[0].score, tuple(a[1:])) for a in answers]

    def encoded(self, rows: Sequence[Row]) -> list[list[int]]:
        """Ids of the sources.

        Raises:
            DataError: One is longer than the model takes.
        """
        encoded = self.text.encode(rows, with_targets=False)
        if len(encoded.over_length):
            row = int(encoded.over_length[0])
            found = int(encoded["source"].lengths[row])
            raise DataError(
                f"Row {row}, column 'source': has {found} tokens; "
                f"the model takes at most {self.text.limits['source']}."
            )
        return [ids.tolist() for ids in encoded["source"]]

    def find(self, sources: Sequence[Sequence[int]]) -> list[list[Found]]:
        """Hypotheses of each source, the best first; sources of one length are searched at once."""
        by_length: dict[int, list[int]] = defaultdict(list)
        for number, ids in enumerate(sources):
            by_length[len(ids)].append(number)
        found: dict[int, list[Found]] = {}
        for length, numbers in by_length.items():
            for start in range(0, len(numbers), ROWS):
                some = numbers[start : start + ROWS]
                made = self.graph.find([sources[i] for i in some], self.search.limit(length))
                found.update(zip(some, made, strict=True))
        return [found[i] for i in range(len(sources))]

    @override
    def check(self, row: Row) -> None:
        source = source_text(row)
        _refuse_prefix(row)
        limit = self.text.limits["source"]
        too_long = limit is not None and len(source) > CHARACTERS_A_TOKEN * limit
        if too_long or len(self.text.encode([row], with_targets=False).over_length):
            raise DataError(f"'source' is longer than the {limit} tokens the model takes.")

    @override
    def answer_row(self, answer: Translated) -> TextRow:
        return answer.row()


def _refuse_prefix(row: Row) -> None:
    """Refuses a row that says how its answer begins, which graphs do not read."""
    if row.get("prefix"):
        raise DataError(
            "An export answers without a 'prefix'; this row has one. Ask the run it was made of."
        )
