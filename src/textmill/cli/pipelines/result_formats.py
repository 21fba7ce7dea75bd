"""Results of pipelines as they are written: lines of text, JSON lines, or a table."""

import csv
import json
from typing import Any, Literal, Protocol

from typing_extensions import override

from textmill.runtime.logging import printable

Format = Literal["text", "json", "csv"]
SUFFIXES: dict[str, Format] = {".csv": "csv", ".json": "json", ".jsonl": "json", ".ndjson": "json"}
"""The format that the name of a file asks for."""


class TextFile(Protocol):
    """What takes text."""

    def write(self, text: str, /) -> Any:
        """Appends a text."""


class ResultFormat:
    """Base of the ways to write results.

    Args:
        file: Where they go.
        pipeline: What they are of.
        several: Whether there are several files.
    """

    def __init__(self, file: TextFile, pipeline: Any, *, several: bool) -> None:
        self.file, self.pipeline, self.several = file, pipeline, several

    def write(self, name: str, result: Any) -> None:
        """Writes a result for the file of a name."""

    def write_error(self, name: str, error: str) -> None:
        """Writes that a file could not be read, where the format has a place for it."""


class ResultLines(ResultFormat):
    """Lines for a person, each behind its file's name where there are several.

    Of a text that could not be answered an empty line keeps the place.
    """

    @override
    def write(self, name: str, result: Any) -> None:
        for line in [""] if result.error else result.lines():
            self.file.write(f"{f'{name}: ' if self.several else ''}{printable(line)}\n")


class ResultJson(ResultFormat):
    """A JSON object on each line, with all that is known."""

    @override
    def write(self, name: str, result: Any) -> None:
        self._write({"file": name, **result.row()})

    @override
    def write_error(self, name: str, error: str) -> None:
        self._write({"file": name, "error": error})

    def _write(self, row: dict[str, Any]) -> None:
        self.file.write(json.dumps(row, ensure_ascii=False) + "\n")


class ResultTable(ResultFormat):
    """A table of comma-separated values, with what a spreadsheet can use."""

    @override
    def __init__(self, file: TextFile, pipeline: Any, *, several: bool) -> None:
        super().__init__(file, pipeline, several=several)
        names = ("file", "line", "page", *pipeline.columns, "text", "error")
        self._table = csv.DictWriter(file, names, lineterminator="\n")
        self._table.writeheader()

    @override
    def write(self, name: str, result: Any) -> None:
        place = {"file": name, "line": result.line, "page": result.page}
        if result.error:
            self._table.writerow({**place, "text": result.text, "error": result.error})
            return
        # A document would stand beside each of its rows, whole: a text of a line is no document.
        text = {"text": result.text} if self.pipeline.by_line else {}
        self._table.writerows({**place, **text, **cells} for cells in result.cells())

    @override
    def write_error(self, name: str, error: str) -> None:
        self._table.writerow({"file": name, "error": error})


FORMATS: dict[Format, type[ResultFormat]] = {
    "csv": ResultTable,
    "json": ResultJson,
    "text": ResultLines,
}
"""How each format is written."""
