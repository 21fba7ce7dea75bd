"""Answers of models to rows, as typed objects and as plain data."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache, reduce
from operator import or_
from types import NoneType, UnionType
from typing import Any, ClassVar, NotRequired, Union, get_args, get_origin, get_type_hints

from typing_extensions import TypedDict, override

from textmill.errors import UserError

LEAST_SCORE = 2.0**-149
"""The least float32 above 0: a score that is smaller has no logarithm."""
LEAST_REST = 2.0**-24
"""What a float32 just below 1 lacks to 1."""
SUM_DIGITS = 1e-5
"""How far from 1 the sum of probabilities in float32 may be."""


class Answer:
    """Base of answers, which are frozen dataclasses: it says what they are as plain data.

    That is what ``textmill predict --json`` writes and a server answers.
    """

    keys: ClassVar[tuple[str, ...]]
    """The names of a row's values in order; ``name=attribute`` if an attribute or a method of
    another name gives the value. A name followed by ``?`` is left out if the value is the
    attribute's default, or None."""
    required: ClassVar[frozenset[str] | None] = None
    """Names that every row has; None: all but those with ``?``."""
    options: ClassVar[frozenset[str]] = frozenset()
    """What can be asked of it when it is there: :meth:`chosen` and :meth:`evidence` follow it."""

    def chosen(self, *, n_best: int | None = None, threshold: float | None = None) -> "Answer":
        """The answer by the options of a request that are among its :attr:`options`."""
        return self

    def evidence(self, label: str | None = None) -> tuple[str, float, float]:
        """What an explanation explains; of an answer that has it among its :attr:`options`.

        Returns:
            The label, by default the most probable, its probability, and its log odds; of a number
            no label, and the number twice.
        """
        raise NotImplementedError

    def row(self) -> dict[str, Any]:
        """The answer as plain data; numbers have six digits after the point."""
        found = {}
        for key, name, optional in _keys(type(self)):  # type: ignore[arg-type]
            value = getattr(self, name)
            value = value() if callable(value) else value
            if not optional or value not in (None, getattr(type(self), name, None)):
                found[key] = _plain(value)
        return found


@cache
def _keys(kind: type[Answer]) -> list[tuple[str, str, bool]]:
    """The name of each value, its attribute, and whether it may be left out."""
    names = ((text.rstrip("?"), text.endswith("?")) for text in kind.keys)
    return [
        (key, name or key, opt) for text, opt in names for key, _, name in [text.partition("=")]
    ]


@dataclass(frozen=True, kw_only=True)
class MarkedText(Answer):
    """A part of a text."""

    keys: ClassVar[tuple[str, ...]] = ("text", "start", "end", "score")

    text: str
    """As it is in the text."""
    start: int
    """The first character, from 0; of a list of words, one space is between two."""
    end: int
    """After the last character."""
    score: float
    """The probability of its least certain word."""

    @override
    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True, kw_only=True)
class TaggedSpan(MarkedText):
    """Neighbouring words of one kind, such as a name."""

    keys: ClassVar[tuple[str, ...]] = ("kind", *MarkedText.keys)

    kind: str
    """What they are, as their labels say."""


@dataclass(frozen=True)
class Generated(Answer):
    """A generated text; ``str()`` gives it."""

    keys: ClassVar[tuple[str, ...]] = ("prediction=text", "score")

    text: str
    """The text."""
    score: float
    """Its log-probability (natural logarithm), divided by its length: higher is more certain."""

    @override
    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True)
class Translated(Generated):
    """A generated text with its score; ``str()`` gives the text.

    Example:
        >>> print(Translated("Bonjour.", -0.31), Translated("Bonjour.", -0.31).row())
        Bonjour. {'prediction': 'Bonjour.', 'score': -0.31}
    """

    keys: ClassVar[tuple[str, ...]] = (*Generated.keys, "alternatives?")

    alternatives: tuple[Generated, ...] = ()
    """The other hypotheses of an n-best search, best first."""


def label_evidence(scores: Mapping[str, float], label: str | None) -> tuple[str, float, float]:
    """What :meth:`Answer.evidence` gives of the probabilities of labels.

    Of a probability near 1 a float32 has too few digits for the odds; if all probabilities add up
    to 1, those of the other labels have them.
    """
    label = max(scores, key=lambda name: scores[name]) if label is None else label
    if label not in scores:
        text = f"'{label:.80}' is no label of the model; it has {', '.join(scores):.500}."
        raise UserError(text)
    others = math.fsum(score for name, score in scores.items() if name != label)
    score = scores[label]
    rest = others if abs(others + score - 1) < SUM_DIGITS else max(1 - score, LEAST_REST)
    odds = math.log(max(score, LEAST_SCORE)) - math.log(max(rest, LEAST_SCORE))
    return label, score, odds


def number_evidence(number: float, label: str | None) -> tuple[str, float, float]:
    """What :meth:`Answer.evidence` gives of a number, which has no label."""
    if label:
        raise UserError(f"This model answers with a number, and has no label '{label:.80}'.")
    return "", number, number


def _plain(value: Any) -> Any:
    if isinstance(value, Answer):
        return value.row()
    if isinstance(value, float):
        return round(value, 6)
    if isinstance(value, Mapping):
        return {name: _plain(part) for name, part in value.items()}
    return [_plain(part) for part in value] if isinstance(value, tuple | list) else value


@cache
def row_type(kind: Any) -> Any:
    """The type of what an answer's method ``row`` gives, from which a server makes its schema.

    Of an :class:`Answer` a TypedDict of its keys; of any other class what ``row`` is annotated to
    give.
    """
    if not issubclass(kind, Answer):
        return returned_type(kind.row)
    hints, fields = get_type_hints(kind), dict[str, Any]()
    for key, name, optional in _keys(kind):
        member = getattr(kind, name, None)
        method = member.fget if isinstance(member, property) else member
        hint = get_type_hints(method)["return"] if callable(method) else hints[name]
        if optional and get_origin(hint) in (Union, UnionType):
            hint = reduce(or_, (part for part in get_args(hint) if part is not NoneType))
        required = not optional if kind.required is None else key in kind.required
        fields[key] = _plain_type(hint) if required else NotRequired[_plain_type(hint)]
    made: Any = TypedDict(f"{kind.__name__}Row", fields)  # type: ignore[misc]  # named when it is made
    made.__doc__ = str(kind.__doc__).partition("\n")[0].partition(";")[0].rstrip(".") + "."
    return made


def _plain_type(hint: Any) -> Any:
    """The type of what :func:`_plain` makes of values of a type."""
    origin, parts = get_origin(hint), [_plain_type(p) for p in get_args(hint) if p is not ...]
    if origin in (Union, UnionType):
        return reduce(or_, parts)
    if origin is None:
        return row_type(hint) if isinstance(hint, type) and issubclass(hint, Answer) else hint  # type: ignore[arg-type]
    return dict[tuple(parts)] if issubclass(origin, Mapping) else list[parts[0]]  # type: ignore[misc, valid-type]


def returned_type(method: Callable[..., Any]) -> Any:
    """What a method is annotated to give; a mapping of anything where that is not known."""
    try:
        return get_type_hints(method).get("return", Mapping[str, Any])
    except NameError:  # of a name that only type checkers know
        return Mapping[str, Any]
