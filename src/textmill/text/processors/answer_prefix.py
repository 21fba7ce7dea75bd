"""The text that a person wants a generated answer to begin with."""

from collections.abc import Mapping, Sequence
from typing import Any

from textmill.errors import DataError
from textmill.text.processors.text_processor import CHARACTERS_A_TOKEN, Seq2SeqText
from textmill.text.tokenizers.tokenizer import not_text


def prefix_of(row: Mapping[str, Any], default: str) -> str:
    """What the answer to a row is to begin with: its own ``prefix``, else the default.

    Raises:
        DataError: The row's prefix is no text.

    Example:
        >>> prefix_of({"source": "Go.", "prefix": "Vas"}, ""), prefix_of({"source": "Go."}, "Je")
        ('Vas', 'Je')
    """
    prefix = row.get("prefix", default)
    if not isinstance(prefix, str):
        raise DataError(f"'prefix' must be a string; found {type(prefix).__name__}.")
    if error := not_text([prefix]):
        raise DataError(str(error).replace("Text 0", "'prefix'"))
    return prefix


def prefix_ids(text: Seq2SeqText, prefixes: Sequence[str]) -> list[list[int]] | None:
    """The ids of texts that answers begin with, without any marks.

    Args:
        text: How targets are encoded.
        prefixes: One for each answer; empty where it may begin with anything.

    Returns:
        None if all are empty.

    Raises:
        DataError: One has as many tokens as a whole target may have.
    """
    distinct = sorted(set(prefixes) - {""})
    if not distinct:
        return None
    rows = [{"source": "", "target": prefix} for prefix in distinct]
    start, limit = len(text.target_prefix), text.limits["target"]
    for prefix in distinct:
        if limit is not None and len(prefix) > CHARACTERS_A_TOKEN * limit:
            raise DataError(
                f"The prefix {prefix[:60]!r} has {len(prefix):,} characters; "
                f"an answer can begin with {limit - start - 1} tokens at most."
            )
    ids: dict[str, list[int]] = {"": []}
    for prefix, target in zip(
        distinct, text.encode(rows, with_targets=True)["target"], strict=True
    ):
        ids[prefix] = target[start:-1].tolist()
        if limit is not None and len(target) > limit:
            raise DataError(
                f"The prefix {prefix[:60]!r} has {len(ids[prefix])} tokens; "
                f"an answer can begin with {limit - start - 1} at most."
            )
    return [ids[prefix] for prefix in prefixes]
