"""Values as strict JSON, and lines of it read back."""

import json
import math
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from weft.metrics.metric import MetricError
from weft.text.cells import unlisted

__all__ = ["complete_lines", "json_value"]

LONGEST_LINE = 64 << 20
"""Bytes of a line; that of 400,000 labels has 40 million."""


def json_value(value: object, *, name: str = "value") -> Any:
    """The same value of types that JSON has.

    JSON has no NaN and no infinities, and many readers refuse them: they become the strings
    ``NaN``, ``Infinity`` and ``-Infinity``, which Python's ``float`` and JavaScript's ``Number``
    read back. A cell that was a list in its file is one again, so that no item loses its bounds.

    Args:
        value: Numbers (those of numpy and torch too), text, paths, and mappings and lists of them.
        name: What the error calls it.

    Raises:
        MetricError: It holds something else.

    Example:
        >>> json_value({"loss": float("nan"), "rows": (1, 2), "file": Path("a.tsv")})
        {'loss': 'NaN', 'rows': [1, 2], 'file': 'a.tsv'}
    """
    value = unlisted(value)
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float):
        return _number(value)
    if isinstance(value, Mapping):
        return {str(k): json_value(v, name=f"{name}.{k}") for k, v in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        items = sorted(value, key=str) if isinstance(value, set | frozenset) else value
        return [json_value(v, name=f"{name}[{i}]") for i, v in enumerate(items)]
    if isinstance(value, Path):
        return str(value)
    if hasattr(value, "tolist"):  # numpy and torch
        return json_value(value.tolist(), name=name)
    raise MetricError(
        f"{name} is a {type(value).__name__}, which has no form in JSON. "
        "Report numbers, text, and mappings and lists of them."
    )


def _number(value: float) -> float | str:
    if math.isfinite(value):
        return float(value)
    return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"


def complete_lines(path: Path) -> list[dict[str, Any]]:
    """The lines of a log in the run folder; one that is cut off or damaged is none.

    Args:
        path: The log; where there is none, there are no lines.
    """
    found: list[dict[str, Any]] = []
    if not path.is_file():
        return found
    with path.open("rb") as file:
        while line := file.readline(LONGEST_LINE):
            with suppress(ValueError, RecursionError):
                value = json.loads(line) if line.endswith(b"\n") else None
                found += [value] if isinstance(value, dict) else []
    return found
