"""Answers as Hugging Face's SQuAD has them: an object of their texts and of where each begins."""

from collections.abc import Mapping
from typing import Any

__all__ = ["NESTED", "split_answers"]

NESTED = ("text", "answer_start")
"""The keys of the object; each has a list, which is empty where there is no answer."""


def split_answers(value: Mapping[str, Any]) -> tuple[list[str], list[int]] | str:
    """The texts of answers and the characters they begin at; or what is wrong, in words.

    Example:
        >>> split_answers({"text": ["in 1066"], "answer_start": [12]})
        (['in 1066'], [12])
        >>> split_answers({"text": ["in 1066"], "answer_start": []})
        "has 1 texts, but 0 numbers in 'answer_start': wanted where each begins"
    """
    texts, starts = (value.get(key) for key in NESTED)
    for key, what, part, kind in zip(
        NESTED, ("texts", "numbers"), (texts, starts), (str, int), strict=True
    ):
        if not isinstance(part, list) or any(type(each) is not kind for each in part):
            return f"wanted a list {key!r} of {what}, found {part!r:.80}"
    if len(texts or ()) != len(starts or ()):
        return (
            f"has {len(texts or ())} texts, but {len(starts or ())} numbers in 'answer_start': "
            "wanted where each begins"
        )
    return list(texts or ()), list(starts or ())
