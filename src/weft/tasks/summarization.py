"""Summarization: a text to a short one, judged by ROUGE against one or more references."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from typing_extensions import override

from weft.errors import DataError
from weft.metrics.metric import Metric
from weft.metrics.rouge import Rouge, RougeKind
from weft.models.decoding import Decoding
from weft.tasks import registries
from weft.tasks.seq2seq import GenerationConfig, Seq2Seq
from weft.tasks.task import Metrics, Row
from weft.text.cells import Rows, unlisted

__all__ = ["Summarization"]

REFERENCES = "references"
"""The column of all right summaries of a row."""


@registries.tasks.register("summarization")
class Summarization(Seq2Seq):
    """Summarizes text; evaluated by its loss, and by ROUGE-1, -2 and -L of generated summaries.

    A row's ``target`` is what is learned, and the loss is of it. Where rows have a column
    ``references``, a list of texts or one written as JSON, an answer is scored against that of them
    which it shares most words with (``rouge1``); else against the target.
    """

    class Config(GenerationConfig):
        """Settings of the task."""

        decoding: Decoding = Decoding(
            beam_size=4, max_length_a=0.0, max_length_b=100, no_repeat_ngram=3
        )
        """How answers are searched. A summary is short however long its text is, and repeats
        nothing."""

    @override
    def with_references(self, rows: Sequence[Row]) -> list[dict[str, Any]]:
        """The rows with their references, where they have any, as lists.

        Raises:
            DataError: A row's references are no list of texts; it names the row.
        """
        return [
            {**row, REFERENCES: references_of(row, number)} if REFERENCES in row else dict(row)
            for number, row in enumerate(rows)
        ]

    @override
    def text_metrics(self) -> dict[str, Metric]:
        """ROUGE of stems, of the reference that is best by ROUGE-1: as SciTLDR is scored."""
        kinds: tuple[RougeKind, ...] = ("rouge1", "rouge2", "rougeL")
        return {"rouge": Rouge.Config(kinds=kinds, chosen_by="rouge1", stems=True).build()}

    @override
    def score(self, metrics: Metrics, texts: Sequence[str], examples: Rows) -> None:
        references = [example.get(REFERENCES) or [example["target"]] for example in examples]
        metrics["rouge"].update(texts, references)


def references_of(row: Mapping[str, Any], number: int) -> list[str]:
    """The references of a row, one or more.

    Raises:
        DataError: They are no list of texts, or none has a word.

    Example:
        >>> references_of({"references": '["Rain.", "It rains."]'}, 0)
        ['Rain.', 'It rains.']
    """
    given = found = unlisted(row[REFERENCES])
    if isinstance(given, str):
        try:
            found = json.loads(given)
        except (ValueError, RecursionError):
            found = None
    if not (isinstance(found, list) and all(isinstance(text, str) for text in found)):
        raise DataError(
            f"Row {number}, column '{REFERENCES}': wanted a list of texts, or one as JSON, found "
            f"{given!r:.80}. For JSON lines, set valid_data.lists=[{REFERENCES}]."
        )
    kept = [text for text in found if text.strip()]
    if not kept:
        raise DataError(
            f"Row {number}, column '{REFERENCES}': wanted one text or more, found {given!r:.80}."
        )
    return kept
