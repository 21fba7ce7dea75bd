"""JSON lines: one object a line."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, BinaryIO

from typing_extensions import override

from weft.data.bad_rows import BadRow
from weft.data.formats.answers import json_answers
from weft.data.formats.row_format import LineScan, Row, RowFormat, Scan, text_of
from weft.data.line_blocks import MAX_LINE_BYTES
from weft.errors import UserError

__all__ = ["JsonLinesFormat", "json_lines_format", "pick_row"]

KINDS = {
    dict: "an object",
    list: "a list",
    str: "text",
    bool: "true or false",
    int: "a number",
    float: "a number",
    type(None): "null",
}


@dataclass(frozen=True)
class JsonLinesFormat(RowFormat):
    """Objects of which some keys are columns; made by `json_lines_format`.

    Attributes:
        max_line_bytes: A longer line is a bad row, and is not held in memory.
        lists: The columns that are lists, written as JSON; other lists become one text.
    """

    max_line_bytes: int = MAX_LINE_BYTES
    lists: tuple[str, ...] = ()

    @override
    def scan(self, stream: BinaryIO, name: str) -> Scan:
        return _JsonScan(stream, name, self)


def json_lines_format(
    columns: Sequence[str] | Mapping[str, int | str] = ("source", "target"),
    *,
    required: Sequence[str] | None = None,
    max_line_bytes: int = MAX_LINE_BYTES,
    lists: Sequence[str] = (),
) -> JsonLinesFormat:
    """JSON lines.

    Args:
        columns: Names of keys, or a name for each key; ``translation.en`` is the key ``en`` of the
            object ``translation`` where there is no key of that whole name, and ``summaries.0`` the
            first of the list ``summaries``.
        required: The columns that a row cannot be without; all by default.
        max_line_bytes: The longest line that is read, in bytes.
        lists: Columns that stay lists of texts, written as JSON; a text there is a list of one.

    Raises:
        UserError: A column is named by a position, or ``lists`` names one that is none.
    """
    places = named_places(columns, "JSON lines")
    unknown = next((name for name in lists if name not in places), None)
    if unknown is not None:
        raise UserError(f"lists: wanted names of columns ({', '.join(places)}), found {unknown!r}.")
    wanted = tuple(places) if required is None else tuple(required)
    return JsonLinesFormat(places, wanted, max_line_bytes, tuple(lists))


def named_places(
    columns: Sequence[str] | Mapping[str, int | str], what: str
) -> dict[str, int | str]:
    """Columns by the name they have in the file.

    Raises:
        UserError: A column is named by a position.
    """
    places: dict[str, int | str] = {}
    places.update(columns if isinstance(columns, Mapping) else {name: name for name in columns})
    for name, at in places.items():
        if not isinstance(at, str):
            raise UserError(
                f"columns: {what} have names, no positions; wanted the name of {name!r} in the "
                f"file, found {at}."
            )
    return places


class _JsonScan(LineScan):
    def __init__(self, stream: BinaryIO, name: str, layout: JsonLinesFormat) -> None:
        super().__init__(stream, name, layout.max_line_bytes)
        self._layout = layout

    @override
    def __iter__(self) -> Iterator[tuple[int, Row | BadRow]]:
        for line in self.lines():
            self.place = line.offset
            row = line.problem or self._row(line.raw, first=line.number == 1)
            yield line.number, line.bad(self.name, row) if isinstance(row, str) else row

    @property
    @override
    def total(self) -> int:
        return self.num_lines

    def _row(self, raw: bytes, *, first: bool) -> Row | str:
        text, problem = text_of(raw, first=first)
        if problem is not None:
            return problem
        if not text.strip():
            return "the line is blank"
        try:
            found = json.loads(text)
        except RecursionError:
            return "not JSON: nested too deeply"
        except ValueError as error:  # also of a number of more than 4,300 digits
            return f"not JSON: {error}"
        if not isinstance(found, dict):
            return f"wanted an object, found {KINDS[type(found)]}"
        return pick_row(found, self._layout)


def pick_row(found: Mapping[str, Any], layout: JsonLinesFormat) -> Row | str:
    """The columns of an object, or what is wrong with it; a list of texts is one with spaces.

    Those of ``layout.lists`` are written as JSON instead, and so are :func:`json_answers`.

    >>> layout = json_lines_format({"source": "en", "target": "fr.text"})
    >>> pick_row({"en": "Hi.", "fr": {"text": "Salut."}}, layout)
    ('Hi.', 'Salut.')
    >>> pick_row({"en": ["How", "are", "you?"], "fr": {"text": "Ça va ?"}}, layout)
    ('How are you?', 'Ça va ?')
    >>> pick_row({"en": "Hi.", "fr": {"text": 1}}, layout)
    "'fr.text': wanted text, found a number"
    """
    row = list[str]()
    answers = json_answers(found, layout.columns.values())
    if isinstance(answers, str):
        return answers
    for name, key in layout.columns.items():
        value: Any = answers.get(str(key)) or value_at(found, str(key))
        if value is None and name not in layout.required:
            value = ""
        texts = value if isinstance(value, list) else [value]
        if isinstance(value, list) and all(isinstance(part, str) for part in value):
            value = " ".join(value)
        problem = problem_of(found, str(key), value)
        if problem is not None:
            return problem
        if name in layout.lists and value and key not in answers:
            value = json.dumps(texts, ensure_ascii=False)
        row.append(value)
    return layout.blank(tuple(row)) or tuple(row)


def value_at(found: Any, key: str) -> Any:
    """What is at the key, or at a path of keys and places in lists; None where there is nothing."""
    if isinstance(found, list):
        first, _, rest = key.partition(".")
        inner = found[int(first)] if first.isdecimal() and int(first) < len(found) else None
        return value_at(inner, rest) if rest else inner
    if not isinstance(found, Mapping):
        return None
    if key in found or "." not in key:
        return found.get(key)
    first, _, rest = key.partition(".")
    return value_at(found.get(first), rest)


def problem_of(found: Mapping[str, Any], key: str, value: Any) -> str | None:
    """What is wrong with a value that is to be a text; None where nothing is."""
    if value is None and key not in found:
        return f"no key {key!r}; the keys are {', '.join(map(repr, found)) or 'none'}"[:300]
    if not isinstance(value, str):
        return f"{key!r}: wanted text, found {KINDS.get(type(value), type(value).__name__)}"
    if "\0" in value:
        return f"{key!r}: NUL at character {value.index(chr(0))}"
    if not value.isascii():
        try:
            value.encode()
        except UnicodeEncodeError as error:
            return f"{key!r}: half of a surrogate pair at character {error.start}"
    return None
