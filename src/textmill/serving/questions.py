"""Reads a request: its body from JSON to rows, within the limits, and its query."""

import sys
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from pydantic_core import from_json
from starlette.datastructures import QueryParams
from starlette.requests import ClientDisconnect
from starlette.requests import Request as HttpRequest

from textmill.errors import UserError
from textmill.exported.row_predictor import AnswerOptions, RowPredictor
from textmill.serving.limits import Limits, RefusedError


async def read_body(request: HttpRequest, most: int) -> bytes:
    """The whole body, of so many bytes at most."""
    announced = request.headers.get("content-length", "0")
    if int(announced) > most:
        raise _too_long(f"{int(announced):,}", most)
    body = bytearray()
    try:
        async for part in request.stream():
            body += part
            if len(body) > most:
                raise _too_long(f"at least {len(body):,}", most)
    except ClientDisconnect:
        raise RefusedError(499, "The client has left.", where="connection") from None
    return bytes(body)


def _too_long(found: str, most: int) -> RefusedError:
    text = f"Wanted a body of at most {most:,} bytes; found {found}. Ask in parts."
    return RefusedError(413, text, where="body")


def option_schemas(predictor: RowPredictor, limits: Limits) -> dict[str, dict[str, Any]]:
    """The answer options that a model takes, each with the JSON schema of its values."""
    number = {"type": "integer", "minimum": 1, "maximum": limits.beam}
    known: dict[str, tuple[Any, dict[str, Any]]] = {
        "n_best": (1, number),
        "beam_size": (limits.beam, number),
        "threshold": (0.5, {"type": "number", "minimum": 0, "maximum": 1}),
        "explain": (True, {"type": "boolean"}),
    }
    found = {}
    for name, (value, schema) in known.items():
        with suppress(UserError):
            predictor.with_options(AnswerOptions(**{name: value}))
            found[name] = schema
    return found


def read_options(asked: QueryParams, known: Mapping[str, Mapping[str, Any]]) -> AnswerOptions:
    """Answer options from the query of a request, such as ``?n_best=3``.

    ``known`` is what :func:`option_schemas` gives.
    """
    given = {}
    for name, value in asked.items():
        if name not in known:
            names = " or ".join(known) or "no parameter, since this model takes none"
            raise RefusedError(400, f"Wanted {names}; found '{name:.100}'.", where="query")
        given[name] = _option(name, value, known[name])
    return AnswerOptions(**given)


def _option(name: str, value: str, schema: Mapping[str, Any]) -> Any:
    found: float | None = None
    if schema["type"] == "boolean":
        wanted, found = "true or false", {"true": True, "false": False}.get(value)
    else:
        least, most = schema["minimum"], schema["maximum"]
        wanted = f"a number from {least} to {most}"
        whole = schema["type"] == "integer"
        if len(value) < 30 and (value.isdecimal() if whole else True):
            with suppress(ValueError):
                number = int(value) if whole else float(value)
                found = number if least <= number <= most else None
    if found is None:
        raise RefusedError(400, f"Wanted {wanted}; found '{value:.100}'.", where=f"query {name}")
    return found


def read_rows(body: bytes, predictor: RowPredictor, limits: Limits) -> tuple[list[Any], int, bool]:
    """The rows of a body, their characters, and whether the body is a single row."""
    try:
        given = from_json(body, allow_inf_nan=False)
    except ValueError as error:
        text = f"Wanted JSON: a string, an object, or a list of these; found none: {error}."
        raise RefusedError(400, text, where="body") from None
    rows = given if isinstance(given, list) else [given]
    if len(rows) > limits.items:
        text = f"Wanted at most {limits.items:,} rows; found {len(rows):,}. Ask in parts."
        raise RefusedError(413, text, where="body")
    rows = [predictor.by_own_names(row) if isinstance(row, dict) else row for row in rows]
    columns, characters = (*predictor.columns, *predictor.optional_columns), 0
    for number, row in enumerate(rows, start=1):
        cells = row if isinstance(row, dict) else {columns[0]: row}
        for name in columns:
            if name in cells:
                where = f"row {number}, column '{name}'"
                found = measured(cells[name], where)
                if found > limits.characters:
                    raise RefusedError(
                        422,
                        f"Wanted a text of at most {limits.characters:,} characters; "
                        f"found {found:,}.",
                        where=where,
                    )
                characters += found
    return rows, characters, not isinstance(given, list)


def measured(value: Any, where: str) -> int:
    """The characters of a cell: a string, a number, or a list of such."""
    if isinstance(value, str):
        return len(value)
    if isinstance(value, list):
        return sum(measured(part, where) for part in value)
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if is_number and abs(value) <= sys.float_info.max:
        return len(str(value))  # of an int of more than 4,300 digits Python makes no text
    names = {bool: "true or false", type(None): "null", dict: "an object"}
    found = names.get(type(value), "a number that no float64 holds")
    raise RefusedError(
        422, f"Wanted a string, a number, or a list of these; found {found}.", where=where
    )


def request_schema(predictor: RowPredictor, limits: Limits, *, lists: bool) -> dict[str, Any]:
    """The JSON schema of a body: one row, or a list of rows.

    ``lists``: whether a column may be a list of words, or a number, too.
    """
    columns = predictor.columns
    own_names = {own: name for own, name in predictor.own_names.items() if name in columns}
    text = {"type": "string", "maxLength": limits.characters}
    parts = {"anyOf": [text, {"type": "number"}]}
    listed = {"type": "array", "items": parts, "description": "A text given as its words."}
    cell = {"anyOf": [text, {"type": "number"}, listed]} if lists else text
    row: dict[str, Any] = {
        "type": "object",
        "title": "Row",
        "required": list(columns),
        "properties": dict.fromkeys(columns, cell)
        | dict.fromkeys(predictor.optional_columns, text),
    }
    if own_names:
        others = ", ".join(f"'{own}' for '{name}'" for own, name in own_names.items())
        row["description"] = f"A column may have its name in the training file: {others}."
    alone = [text] if len(columns) == 1 else []
    many = {
        "type": "array",
        "items": {"anyOf": [*alone, row, *([listed] if alone and lists else [])]},
        "maxItems": limits.items,
    }
    return {"anyOf": [*alone, row, many]}
