"""Answers of JSON and columnar files as the columns that SQuAD's own files have: lists as JSON."""

import json
from collections.abc import Collection, Mapping
from typing import Any

from weft.text.nested_answers import split_answers

__all__ = ["ANSWERS", "json_answers"]

ANSWERS = ("answers", "answer_starts")
"""What a row has them under."""


def json_answers(found: Mapping[str, Any], keys: Collection[Any] = ANSWERS) -> dict[str, str] | str:
    """The answers of a row, and where they begin, as JSON lists; or what is wrong with them.

    Hugging Face's data sets have an object of both lists, others two lists.

    Args:
        found: A row, with all that is in it.
        keys: What is read of it; of a row that is asked for no ``answer_starts`` answers stay.

    Returns:
        Nothing where there is neither an object nor two lists.

    Example:
        >>> json_answers({"answers": {"text": ["Rollo"], "answer_start": [0]}})
        {'answers': '["Rollo"]', 'answer_starts': '[0]'}
        >>> json_answers({"answers": ["Rollo"], "answer_starts": [0]})
        {'answers': '["Rollo"]', 'answer_starts': '[0]'}
        >>> json_answers({"answers": "Rollo"})
        {}
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
