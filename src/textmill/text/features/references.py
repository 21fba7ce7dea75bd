"""The references of a row: all summaries of it that are right."""

import json
from collections.abc import Mapping
from typing import Any

from textmill.errors import DataError
from textmill.text.cells import unlisted

REFERENCES = "references"
"""The column of all right summaries of a row."""


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
