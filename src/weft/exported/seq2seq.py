"""An exported model that generates text: strings to strings by the saved text path and a graph."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from typing_extensions import override

from weft.errors import DataError
from weft.exported.answers import Found, Translated
from weft.exported.rows import Row, RowPredictor
from weft.exported.search import Search
from weft.text.paths import Seq2SeqText, source_text

__all__ = ["ExportedSeq2Seq", "Graph"]

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
        text: The saved text path.
        search: How answers are searched.
        graph: What computes them.
    """

    def __init__(self, text: Seq2SeqText, search: Search, graph: Graph) -> None:
        super().__init__(text.input_columns)
        self.text, self.search, self.graph = text, search, graph

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
    def answer_row(self, answer: Any) -> Mapping[str, Any]:
        row: Mapping[str, Any] = answer.row()
        return row


def _refuse_prefix(row: Row) -> None:
    """Refuses a row that says how its answer begins, which graphs do not read."""
    if row.get("prefix"):
        raise DataError(
            "An export answers without a 'prefix'; this row has one. Ask the run it was made of."
        )
