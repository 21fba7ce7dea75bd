"""Rows of a file with columns of any names: what most tasks train on."""

from dataclasses import replace

from typing_extensions import override

from textmill.data import registries
from textmill.data.formats.row_format import RowFormat
from textmill.data.formats.spans import spans_format
from textmill.data.text_pairs import TextPairs
from textmill.errors import UserError


@registries.datasets.register("text_rows")
class TextRows(TextPairs):
    r"""Rows of a file (TSV, CSV, JSON lines, ...) with a label and a text, or other columns.

    Example:
        >>> import tempfile
        >>> from pathlib import Path
        >>> folder = Path(tempfile.mkdtemp())
        >>> _ = (folder / "sms.tsv").write_text("ham\tOk, see you.\nspam\tYou won!\n")
        >>> TextRows.Config(path=folder / "sms.tsv").build().rows()[1]
        {'label': 'spam', 'text': 'You won!'}
    """

    class Config(TextPairs.Config, first=()):
        """Where the rows are, how they are read, and how they are batched."""

        columns: tuple[str, ...] | dict[str, int | str] = ("label", "text")
        """TSV and CSV: names of the first columns in their order, or in that of a header with these
        names; or each name with its position (from 0) or its name in the header. CoNLL: likewise,
        without a header; a position below 0 is from the end. Other formats: names of keys or
        columns; or each name with the file's name for it, where a.b is the field b of a, and in
        JSON a.0 the first of the list a."""
        optional: tuple[str, ...] = ()
        """Columns that a row may have empty; a row with any other one empty is bad."""
        spans: dict[str, str] | None = None
        """Columns of spans of characters, as 16:24:time,39:57:day, each with the column of the text
        that they are in: as {tags: words}. They are read as tags: O, B-time and I-time, one for
        each word; an empty cell has none."""
        batch_size: int | None = 32
        """Rows of one optimizer step, over all ranks; null where max_tokens decides."""

    config: Config

    @override
    def _format(self) -> RowFormat:
        layout, optional = super()._format(), self.config.optional
        unknown = next((name for name in optional if name not in layout.columns), None)
        if unknown is not None:
            raise UserError(
                f"optional: wanted names of columns ({', '.join(layout.columns)}), "
                f"found {unknown!r}."
            )
        spans = self.config.spans or {}
        required = (name for name in layout.required if name not in (*optional, *spans))
        return replace(layout, required=tuple(required))

    @override
    def _whole_format(self) -> RowFormat:
        spans = self.config.spans
        return spans_format(self._layout, spans) if spans else self._layout
