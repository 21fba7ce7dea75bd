"""Pipelines as a server asks them: texts, and files whose bytes are the body of a request."""

from collections.abc import Mapping, Sequence
from io import BytesIO
from types import GenericAlias
from typing import Any

from typing_extensions import TypedDict, override

from textmill.errors import DataError
from textmill.exported.row_predictor import Row, RowPredictor
from textmill.text.answers import row_type

TEXT, FILE = "text", "file"
"""The columns of a row: it has one of them."""
MOST = 10_000
"""Most results of a file, which are held in memory until all are there: 50 MB of references."""


class PipelineRows(RowPredictor):
    """A pipeline in place of a model: a row is a text, or a file; its answer a list of results.

    A file may be read for so many ``seconds``; its sender waits no longer, either.
    """

    def __init__(self, pipeline: Any, seconds: float) -> None:
        super().__init__((TEXT,))
        self.pipeline, self.seconds = pipeline, seconds

    @property
    @override
    def answer_type(self) -> Any:
        """Results, each as the pipeline's are annotated."""
        each = row_type(self.pipeline.result_class)
        made: Any = TypedDict
        return made("PipelineRow", {"results": GenericAlias(list, (each,))})

    @override
    def row(self, given: Any) -> Row:
        if isinstance(given, bytes):
            return {FILE: given}
        row = super().row(given)
        if not isinstance(row[TEXT], str):
            raise DataError(f"Column '{TEXT}': wanted a string, found {type(row[TEXT]).__name__}.")
        return row

    @override
    def answers(self, rows: Sequence[Row]) -> list[list[Any]]:
        """The results for each row; texts are answered together."""
        texts = [row[TEXT] for row in rows if TEXT in row]
        results = iter(self._of_texts(texts) if texts else ())
        return [[next(results)] if TEXT in row else self._of_file(row[FILE]) for row in rows]

    def _of_texts(self, texts: Sequence[str]) -> Sequence[Any]:
        results: Sequence[Any] = self.pipeline.predict(texts, type="str")
        for result in results:
            if result.error is not None:
                raise DataError(result.error)
        return results

    def _of_file(self, content: bytes) -> list[Any]:
        found = list[Any]()
        for result in self.pipeline.read(BytesIO(content), "the file", seconds=self.seconds):
            found.append(result)
            if len(found) > MOST:
                raise DataError(f"the file: it has more than {MOST:,} results. Send it in parts.")
        return found

    @override
    def check(self, row: Row) -> None:
        """Refuses a text that cannot be answered; of a file only an answer says it."""
        if TEXT in row:
            self._of_texts([row[TEXT]])

    @override
    def answer_row(self, answer: Sequence[Any]) -> Mapping[str, Any]:
        return {"results": [result.row() for result in answer]}
