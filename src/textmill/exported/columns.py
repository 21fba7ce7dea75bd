"""Exported models of typed columns: by the saved text processor and a graph, without torch."""

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from typing_extensions import override

from textmill.errors import DataError
from textmill.exported.forward import FORWARDS, ColumnGraph, Forward
from textmill.exported.manifest import ExportError
from textmill.exported.row_predictor import ExportedPredictor, Row, RowPredictor
from textmill.runtime.files import read_all, write_file
from textmill.text.columns.column import padded_columns
from textmill.text.processors.column_processor import ColumnsText
from textmill.text.processors.text_processor import Encoded
from textmill.text.processors.texts import EmbeddingText

TOKENS = 4096
"""Padded tokens answered together, as the trained model does."""
MISFITS = (ArithmeticError, LookupError, MemoryError, TypeError, ValueError)
"""Errors of a text processor that decodes outputs of another graph."""
NUMBERS = (int, float, Mapping[str, int])
"""Types of a Forward's fields that are in the manifest; the others are arrays."""
LARGEST_ARRAYS = 1 << 28
"""Bytes, enough for the transitions between 8,000 labels."""


class ExportedColumns(ExportedPredictor):
    """Answers rows of typed columns.

    Args:
        forward: Runs the graph on padded columns and gives what the text processor decodes.
        refuses_long: Whether a row with too many tokens is an error; else it is truncated.
    """

    text: ColumnsText

    def __init__(
        self, text: ColumnsText, graph: ColumnGraph, forward: Forward, *, refuses_long: bool
    ) -> None:
        super().__init__(text)
        self.graph, self.forward, self.refuses_long = graph, forward, refuses_long

    @override
    def answers(self, rows: Sequence[Row]) -> list[Any]:
        if not rows:
            return []
        alone = self.text.encode_one(rows[0]) if len(rows) == 1 else None
        if alone is not None:
            return [self.text.completed(self._decoded(*alone)[0], rows[0])]
        encoded = self._encoded(rows)
        found: dict[int, Any] = {}
        for chosen in self._batches(encoded):
            columns, lengths = padded_columns(encoded, self.text.all, chosen, least=1)
            found.update(zip(chosen.tolist(), self._decoded(columns, lengths), strict=True))
        return [self.text.completed(found[number], row) for number, row in enumerate(rows)]

    @override
    def embedder(self) -> RowPredictor:
        return self if isinstance(self.text, EmbeddingText) else super().embedder()

    def _decoded(
        self, columns: Mapping[str, NDArray[Any]], lengths: Mapping[str, NDArray[Any]]
    ) -> list[Any]:
        rows = len(next(iter(columns.values())))
        try:
            answers = self.text.decode(self.forward(self.graph, columns, lengths))
        except MISFITS as error:
            raise ExportError(f"The graph and the text do not fit: {error}") from error
        if len(answers) != rows:
            raise ExportError(
                f"The graph and the text do not fit: {len(answers)} answers to {rows} rows"
            )
        return answers

    def _encoded(self, rows: Sequence[Row]) -> Encoded:
        encoded = self.text.encode(rows, with_targets=False)
        if not len(encoded.over_length):
            return encoded
        if self.refuses_long:
            row = int(encoded.over_length[0])
            which = f"Row {row} has" if len(rows) > 1 else "The row has"
            raise DataError(
                f"{which} more tokens than the model takes: {self.text.limits_in_words}. Give a "
                "longer text in parts: the trained model's limit stays."
            )
        return self.text.cut(encoded)

    def _batches(self, encoded: Encoded) -> Iterator[NDArray[np.int64]]:
        """The numbers of rows of like length, at most ``TOKENS`` padded tokens together.

        A batch ends where its padding would be more than its longest row, because a call costs
        about as much as a row: 0.2 of one (docnn), 0.5 (MiniLM), 1.2 (a tagger of characters), 4
        (n-grams alone) were measured.
        """
        lengths = np.max([column.lengths for column in encoded.values()], axis=0)
        order = np.argsort(lengths, kind="stable")
        sizes = np.maximum(lengths[order], 1).tolist()
        start = padding = 0
        for end in range(1, len(order)):
            size, count = sizes[end], end - start
            padding += count * (size - sizes[end - 1])
            if padding > size or (count + 1) * size > TOKENS:
                yield order[start:end]
                start, padding = end, 0
        yield order[start:]

    @override
    def check(self, row: Row) -> None:
        self._encoded([row])


def load_columns(
    text: ColumnsText, graph: ColumnGraph, answers: Mapping[str, Any], arrays: Path
) -> ExportedColumns:
    """Joins a text processor and a graph; ``answers`` is what :func:`answers_of` gave.

    ``arrays`` is the file that :func:`save_arrays` wrote.
    """
    from safetensors import SafetensorError
    from safetensors.numpy import load

    try:
        kind = FORWARDS[answers["forward"]]
        for name, value in answers["settings"].items():
            if value not in text.answering.answer_settings[name]:
                raise ValueError(f"the setting '{name}' cannot be {value!r:.80}")
            setattr(text.answering, name, value)
        held = dict(answers["numbers"])
        if any(each.type not in NUMBERS for each in dataclasses.fields(kind)):  # type: ignore[arg-type]
            held |= load(read_all(arrays, LARGEST_ARRAYS, ExportError))
        forward, refuses_long = kind(**held), answers["over_length"] == "error"
    except (*MISFITS, SafetensorError) as error:
        raise ExportError(f"its answers are described in another way: {error}") from None
    return ExportedColumns(text, graph, forward, refuses_long=refuses_long)


def answers_of(text: ColumnsText, forward: Forward, *, refuses_long: bool) -> dict[str, Any]:
    """The manifest's ``answers``, which :func:`load_columns` reads."""
    return {
        "forward": forward.name,
        "numbers": {k: v for k, v in _fields(forward) if not isinstance(v, np.ndarray)},
        "settings": text.answering.present_settings,
        "over_length": "error" if refuses_long else "cut",
    }


def save_arrays(forward: Forward, path: Path) -> None:
    from safetensors.numpy import save

    held = _fields(forward)
    if arrays := {k: np.ascontiguousarray(v) for k, v in held if isinstance(v, np.ndarray)}:
        write_file(path, save(arrays))


def _fields(forward: Forward) -> list[tuple[str, Any]]:
    return [(each.name, getattr(forward, each.name)) for each in dataclasses.fields(forward)]  # type: ignore[arg-type]
