"""Schemes of tags that mark spans, told from the names of the labels, and what may follow what."""

from collections.abc import Sequence
from typing import Literal

import numpy as np
import torch
from torch import Tensor

TagScheme = Literal["bio", "bilou"]
"""``B-`` begins a span and ``I-`` goes on; in ``bilou``, ``L-`` ends one and ``U-`` is one, which
IOBES writes ``E-`` and ``S-``."""

OUTSIDE = "O"


def tag_scheme(names: Sequence[str]) -> TagScheme | None:
    """The scheme that labels are of; None where they are plain, as parts of speech are.

    Labels are of a scheme where each is ``O``, or a mark (``B``, ``I``; in ``bilou`` also ``L`` and
    ``U``, or ``E`` and ``S``) with a kind, as ``B-person``, or a mark alone; and one at least
    begins a span.

    Example:
        >>> tag_scheme(["O", "B-person", "I-person"]), tag_scheme(["O", "U-x", "B-x", "L-x"])
        ('bio', 'bilou')
        >>> tag_scheme(["NOUN", "VERB"]), tag_scheme(["B", "I", "O"]), tag_scheme(["S-x", "O"])
        (None, 'bio', 'bilou')
    """
    marks = {_mark(name) for name in names} - {OUTSIDE}
    if None in marks or not marks & {"B", "U"}:
        return None
    return "bilou" if marks & {"L", "U"} else "bio"


def allowed_transitions(names: Sequence[str], scheme: TagScheme | None) -> Tensor:
    """Which label may follow which, so that every span has a beginning, and in ``bilou`` an end.

    Args:
        names: The labels, :math:`L`.
        scheme: That they are of; None where they are plain.

    Returns:
        Bool, from a row to a column; the last but one is the start of a sentence, the last its end.
        True everywhere where the labels are plain. *Shape:* :math:`(L+2,L+2)`.

    Example:
        >>> allowed = allowed_transitions(["O", "B-x", "I-x"], "bio")
        >>> allowed[0].tolist()  # a span does not begin in its middle
        [True, True, False, True, True]
    """
    if scheme is None:
        return torch.ones(len(names) + 2, len(names) + 2, dtype=torch.bool)
    # A sentence has nothing before and behind it. Numpy, for where a module is built without memory
    # torch would import its compiler for these operations.
    marks = np.array([*map(_mark, names), OUTSIDE, OUTSIDE])
    kinds = np.array([*(name.partition("-")[2] for name in names), "", ""])
    opened = np.isin(marks, ["B", "I"])[:, None]
    within = opened & (kinds[:, None] == kinds)
    # In bilou a span that was opened is closed by L, so nothing else comes behind it.
    others = ~opened if scheme == "bilou" else np.ones_like(opened)
    return torch.tensor(np.where(np.isin(marks, ["I", "L"]), within, others).tolist())


def _mark(name: str) -> str | None:
    """The mark of a tag; None of what is no tag of a scheme."""
    mark, dash, kind = name.partition("-")
    if name == OUTSIDE:
        return OUTSIDE
    mark = {"E": "L", "S": "U"}.get(mark, mark)
    return mark if mark in ("B", "I", "L", "U") and bool(dash) == bool(kind) else None
