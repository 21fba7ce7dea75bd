"""What tells one run from another: settings, code, versions, data and results side by side."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from textmill.config.values.raw_values import written
from textmill.metrics.tables import format_value, is_share
from textmill.run_folder.record import Record, flat, mapping

ABSENT = "-"
"""Shown for what a run does not have."""


@dataclass(frozen=True)
class Difference:
    """One line of a comparison."""

    kind: str
    """``setting``, ``code``, ``version``, ``data``, ``git`` or ``result``."""
    name: str
    """The dotted name."""
    first: str
    """Its value in the first run; ``-`` if it has none."""
    second: str
    """Its value in the second run."""
    change: str = ""
    """For numbers of the result: the second minus the first."""


def compare(first: Record, second: Record) -> list[Difference]:
    """All that differs between two runs; results are listed even if they are equal."""
    pairs: list[tuple[str, Mapping[str, Any], Mapping[str, Any]]] = [
        ("setting", flat(first.settings), flat(second.settings)),
        ("code", _short(first.code), _short(second.code)),
        ("version", mapping(first.start, "versions"), mapping(second.start, "versions")),
        ("git", mapping(first.start, "git"), mapping(second.start, "git")),
        ("data", _short(mapping(first.info, "data")), _short(mapping(second.info, "data"))),
    ]
    found = []
    for kind, one, other in pairs:
        for name in {**one, **other}:
            here, there = one.get(name, ABSENT), other.get(name, ABSENT)
            if here != there:
                found.append(Difference(kind, name, written(here), written(there)))
    return found + _results(first.kept_values(), second.kept_values())


def _results(one: Mapping[str, float], other: Mapping[str, float]) -> list[Difference]:
    found = []
    for name in {**one, **other}:
        first, second = one.get(name), other.get(name)
        texts = [_number(name, value) for value in (first, second)]
        change = ""
        if first is not None and second is not None and math.isfinite(second - first):
            of_hundred = is_share(name) and not is_share(name, first, second)
            by = second - first
            sign = "+" if by > 0 else ""
            change = sign + _number("" if of_hundred else name, by) if by else "="
        found.append(Difference("result", name, texts[0], texts[1], change))
    return found


def _number(name: str, value: float | None) -> str:
    if value is None:
        return ABSENT
    whole = name.endswith("step") and math.isfinite(value)
    return format_value(name, int(value) if whole else value)


def _short(hashes: Mapping[str, Any]) -> dict[str, str]:
    """Twelve digits tell two contents apart, and fit on a line."""
    return {name: str(value)[:12] for name, value in hashes.items()}


def previous_run(path: Path) -> Path | None:
    """The run of the same recipe beside this one that was written last; None if there is none."""
    resolved = path.resolve()
    beside = [p.parent for p in resolved.parent.glob("[!.]*/run.json") if p.parent != resolved]
    dated = sorted(((p / "run.json").stat().st_mtime, p) for p in beside)
    return path.parent / dated[-1][1].name if dated else None
