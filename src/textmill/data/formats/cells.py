"""Values of JSON lines, Parquet and Arrow as the text that a TSV would have of them."""

import json
import math
from collections.abc import Collection, Iterable, Mapping
from typing import Any

from textmill.text.cells import ListCell, split_answers

KINDS = {
    dict: "an object",
    list: "a list",
    str: "text",
    bool: "true or false",
    int: "a number",
    float: "a number",
    type(None): "null",
}
"""What errors call the types of values."""


class CellError(ValueError):
    """A value that no cell can be: what was wanted and what was found."""


def cell_of(value: Any) -> str:
    """A value as text: a number exactly, a list of such values as a `ListCell`.

    Objects of numbers, such as the probabilities of labels, and lists of such objects or of lists
    of numbers, such as the features of words, are text as JSON.

    The task's column types it: ``"3.5"`` is a number where a number is wanted.
    """
    if _is_table(value):
        return json.dumps(value, ensure_ascii=False)
    if not isinstance(value, list):
        return _scalar(value, "wanted text, a number or a list of them")
    return list_cell(value)


def list_cell(parts: Iterable[Any]) -> ListCell:
    wanted = "wanted a list of texts or numbers"
    return ListCell(_scalar(part, wanted, at) for at, part in enumerate(parts))


def _is_table(value: Any) -> bool:
    """Whether a value is an object or a list of lists or objects, and all in them are numbers."""
    is_nested = isinstance(value, list) and any(isinstance(part, dict | list) for part in value)
    inside, has_numbers = [value], False
    while (is_nested or isinstance(value, dict)) and inside:
        part = inside.pop()
        if isinstance(part, dict | list):
            inside += part.values() if isinstance(part, dict) else part
        elif type(part) in (int, float):
            has_numbers = True
        else:
            return False
    return has_numbers


def json_of(text: str | bytes) -> Any:
    """What a JSON text says; an object with a key twice is none, as either value may be meant."""
    try:
        return json.loads(text, object_pairs_hook=_object)
    except RecursionError:
        raise ValueError("not JSON: nested too deeply") from None
    except json.JSONDecodeError as error:
        raise ValueError(f"not JSON: {error}") from None


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"the key {twice[:80]!r} is there twice")
    return found


def as_list(cell: str) -> str:
    """A cell as a list: a text as one of one; an empty cell stays empty."""
    return cell if not cell or isinstance(cell, ListCell) else ListCell([cell])


def _scalar(value: Any, wanted: str, at: int | None = None) -> str:
    """A value that is no list; ``at`` is its place in one."""
    place = "" if at is None else f" at {at}"
    if isinstance(value, str):
        if (problem := text_problem(value)) is not None:
            raise CellError(problem + (place and f", in the text{place} of the list"))
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return _number(value, place)
    raise CellError(f"{wanted}, found {KINDS.get(type(value), type(value).__name__)}{place}")


def _number(value: float, place: str) -> str:
    try:
        is_finite = math.isfinite(value)
    except OverflowError:
        digits = len(str(abs(value)))
        raise CellError(
            f"wanted a number that a float64 holds, found one of {digits} digits{place}"
        ) from None
    if not is_finite:
        raise CellError(f"wanted a finite number, found {value}{place}")
    return str(value) if isinstance(value, int) else repr(float(value))  # of numpy's, too


def text_problem(text: str) -> str | None:
    """What no text can have, and this one has: NUL, or half of a surrogate pair."""
    if "\0" in text:
        return f"NUL at character {text.index(chr(0))}"
    if not text.isascii():
        try:
            text.encode()
        except UnicodeEncodeError as error:
            return f"half of a surrogate pair at character {error.start}"
    return None


ANSWERS = ("answers", "answer_starts")
"""What a row has them under."""


def json_answers(found: Mapping[str, Any], keys: Collection[Any] = ANSWERS) -> dict[str, str] | str:
    """The answers of a row, and where they begin, as JSON lists; or what is wrong with them.

    Hugging Face's data sets have an object of both lists, others two lists.
    """
    answers, starts = (found.get(key) for key in ANSWERS)
    if ANSWERS[1] not in keys:
        return {}
    if isinstance(answers, Mapping):
        split = split_answers(answers)
        if isinstance(split, str):
            return f"{ANSWERS[0]!r}: {split}"
        answers, starts = split
    if not (isinstance(answers, list) and isinstance(starts, list)):
        return {}
    lists = (answers, starts)
    return {
        key: json.dumps(part, ensure_ascii=False) for key, part in zip(ANSWERS, lists, strict=True)
    }


def cell_text(value: Any) -> str:
    """A value as a cell of CSV; lists and objects are JSON."""
    if isinstance(value, bool | list | tuple | Mapping):
        return json_text(value)
    return "" if value is None else _plain(value)


def json_text(value: Any) -> str:
    """A value as JSON; NaN and infinities, which JSON does not have, are null."""
    try:
        return json.dumps(value, ensure_ascii=False, allow_nan=False, default=_plain)
    except ValueError:
        return json.dumps(_finite(value), ensure_ascii=False, default=_plain)


def _finite(value: Any) -> Any:
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {key: _finite(item) for key, item in value.items()}
    return [_finite(item) for item in value] if isinstance(value, list | tuple) else value


def _plain(value: Any) -> str:
    """Text for a value that JSON does not have: bytes, a date."""
    return value.decode("utf-8", "backslashreplace") if isinstance(value, bytes) else str(value)


def encodable(text: str) -> str:
    """A text in which half of a surrogate pair is an escape."""
    return text.encode("utf-8", "backslashreplace").decode()
