"""Text processors that are made of columns: one object for all tasks of typed columns."""

import copy
from collections.abc import Collection, Container, Iterable, Mapping
from pathlib import Path
from typing import Any, ClassVar, Final, Self

import numpy as np
from numpy.typing import NDArray
from typing_extensions import override

from textmill.errors import UserError
from textmill.text.cells import Rows, cell_at, values_of, whole_column
from textmill.text.columns.column import Column, ColumnKind
from textmill.text.columns.inputs import BESIDE_TEXT, BESIDE_WORDS
from textmill.text.columns.numbers import NumberColumn
from textmill.text.columns.token_ids import IdsColumn
from textmill.text.columns.words import WordsColumn
from textmill.text.metadata import SavedTextError, read_settings
from textmill.text.processors.text_processor import Encoded, TextProcessor, text_processors

MOST = 100
"""Columns that a saved path may name."""
WEIGHTS: Final[Mapping[str, ColumnKind]] = dict.fromkeys(("weight", "slot_weight"), NumberColumn)
"""Targets that any text processor may have: how much a row counts, and its slots."""


class ColumnsText(TextProcessor):
    """Rows of typed columns to arrays, and scores to answers.

    A task's own is a subclass: it says what the columns can be, by the role they play, and by
    ``decode`` what an answer is.

    Args:
        inputs: The columns that every row must have, in prediction too, by their role.
        targets: Those that only training and evaluation need, by their role.
    """

    kinds: ClassVar[Mapping[str, ColumnKind]]
    """What a column of each role can be."""
    target_roles: ClassVar[frozenset[str]] = frozenset()
    """The roles that only training and evaluation need."""
    optional: ClassVar[frozenset[str]] = frozenset()
    """The roles that may be left out."""
    alike: ClassVar[tuple[str, ...]] = ()
    """The roles of texts that have one tokenizer and one limit."""
    leading: ClassVar[str | None] = None
    """The role whose limit is that of all: what belongs to words over it is cut with them."""
    answer_settings: ClassVar[Mapping[str, Container[Any]]] = {}
    """Attributes that the task sets, on which answers depend, each with its possible values."""

    def __init__(self, inputs: Mapping[str, Column], targets: Mapping[str, Column]) -> None:
        self.inputs, self.targets = dict(inputs), dict(targets)
        names = [column.name for column in self.all.values() if not column.shares]
        for name in names:
            if names.count(name) > 1:
                raise UserError(f"The columns of a row must differ, but '{name}' is there twice.")
        for role, column in self.inputs.items():
            column.check_beside(role, self.inputs)

    @property
    def answering(self) -> "ColumnsText":
        """What decodes outputs, by its ``answer_settings``: of an ensemble the first member."""
        return self

    @property
    def present_settings(self) -> dict[str, Any]:
        """The values of ``answer_settings``."""
        return {name: getattr(self, name) for name in self.answer_settings}

    @property
    def all(self) -> dict[str, Column]:
        """All columns by their role, inputs first."""
        return {**self.inputs, **self.targets}

    @property
    @override
    def input_columns(self) -> tuple[str, ...]:  # type: ignore[override]  # known when it is made
        return tuple(dict.fromkeys(whole_column(column.name) for column in self.inputs.values()))

    @property
    @override
    def target_columns(self) -> tuple[str, ...]:  # type: ignore[override]  # known when it is made
        return tuple(column.name for column in self.targets.values())

    @property
    @override
    def text_columns(self) -> tuple[str, ...]:
        texts = (c for c in self.inputs.values() if isinstance(c, IdsColumn))
        return tuple(dict.fromkeys(whole_column(column.name) for column in texts))

    @override
    def divided(self, row: Mapping[str, Any]) -> Mapping[str, Any]:
        words = self.inputs.get(self.leading or "")
        if isinstance(words, WordsColumn) and type(text := row.get(words.name)) is str:
            return {**row, words.name: words.raw_words.divided(text)}
        return row

    @property
    @override
    def weight(self) -> Column | None:
        return self.targets.get("weight")

    @property
    @override
    def ingredients(self) -> dict[str, Any]:
        return {**fitted_with(self.targets), **fitted_with(self.inputs)}

    @override
    def ingredients_for(self, names: Collection[str]) -> dict[str, Any]:
        # Numbers that are a target are not features; a model would take them as such by the name.
        inputs = fitted_with(self.inputs)
        beside = (BESIDE_TEXT | BESIDE_WORDS) - {*inputs, *names}
        return {name: made for name, made in self.ingredients.items() if name not in beside}

    @property
    def limits(self) -> dict[str, int]:
        """The most places that a row may have, of the roles that have a limit."""
        return {role: c.limit for role, c in self.all.items() if c.limit is not None}

    @property
    def limits_in_words(self) -> str:
        """How many tokens a row may have, of which columns."""
        return " or ".join(
            f"{limit} {self.all[role].unit} of '{self.all[role].name}'"
            for role, limit in self.limits.items()
        )

    @property
    @override
    def arrays(self) -> dict[str, str]:
        return {role: column.kept_as for role, column in self.all.items()}

    @override
    def difference(self, other: TextProcessor) -> str:
        assert isinstance(other, ColumnsText), "a task has asked for its kind"
        for part in ("inputs", "targets"):
            found, wanted = _listed(getattr(self, part)), _listed(getattr(other, part))
            if found != wanted:
                return f"has the {part} {found}, but those of the task are {wanted}"
        return ""

    def with_unseen(self) -> Self:
        """A copy for evaluated rows: labels that did not occur in training become ``UNSEEN``."""
        other = copy.copy(self)
        other.targets = {role: column.with_unseen() for role, column in self.targets.items()}
        return other

    def unseen_in(self, row: Mapping[str, Any], role: str) -> list[str]:
        """The labels in the column of a role that did not occur in training."""
        column = self.targets[role]
        return column.unseen_in(row[column.name])

    @override
    def encode(self, rows: Rows, *, with_targets: bool, truncate: bool = False) -> Encoded:
        """Encodes the columns, each under its role; columns that no role has are not looked at."""
        encoded, over, kinds = {}, np.zeros(len(rows), dtype=np.bool_), self.all
        rows = self.with_read_targets(rows) if with_targets else rows
        for role, column in (kinds if with_targets else self.inputs).items():
            made = column.encode(values_of(rows, column.name))
            if column.limit is not None:
                over |= column.places(made) > column.limit
            encoded[role] = made
        for role in encoded:
            kinds[role].check(encoded, kinds)
        found = Encoded(encoded, np.flatnonzero(over))
        if with_targets:
            self.check_targets(rows, found)
        return self.cut(found) if truncate else found

    def with_read_targets(self, rows: Rows) -> Rows:
        """Rows whose targets are as their columns encode them; unchanged by default."""
        return rows

    def check_targets(self, rows: Rows, encoded: Encoded) -> None:
        """Refuses rows whose targets do not fit their inputs."""

    def encode_one(
        self, row: Mapping[str, Any]
    ) -> tuple[dict[str, NDArray[Any]], dict[str, NDArray[np.int64]]] | None:
        """The inputs of a single row as a batch, faster than by :meth:`encode`.

        Returns:
            As :func:`~textmill.text.columns.column.padded_columns`; None where only ``encode``
            knows what the row is, or what is wrong with it.
        """
        if type(self).encode is not ColumnsText.encode:
            return None
        columns, lengths = {}, {}
        for role, column in self.inputs.items():
            ids = column.encode_one(cell_at(row, column.name))
            if ids is None or (column.limit is not None and len(ids) > column.limit):
                return None
            columns[role], lengths[role] = ids[None], np.array([len(ids)])
        return columns, lengths

    def completed(self, answer: Any, row: Mapping[str, Any]) -> Any:
        """An answer with what it takes from its row, such as words; as it is, by default."""
        return answer

    def cut(self, encoded: Encoded) -> Encoded:
        """The same with rows cut to the limits; each keeps its first numbers."""
        kinds, cut = self.all, dict(encoded)
        for role, column in encoded.items():
            limit = kinds[self.leading or role].limit
            if limit is not None:
                cut[role] = kinds[role].cut(column, limit)
        return Encoded(cut, np.zeros(0, np.int64))

    @override
    def save_files(self, folder: Path) -> dict[str, Any]:
        for role, column in self.all.items():
            column.save(folder / "columns" / role)
        return {"inputs": list(self.inputs), "targets": list(self.targets)}

    @classmethod
    @override
    def from_files(cls, folder: Path, settings: dict[str, Any]) -> Self:
        kinds = {**WEIGHTS, **cls.kinds} if cls.kinds else {}
        known, optional = set(kinds), cls.optional | set(WEIGHTS)
        listed = read_settings(settings, dict.fromkeys(("inputs", "targets"), list[str]))
        inputs, targets = listed["inputs"], listed["targets"]
        roles = [*inputs, *targets]
        names = all(role.isidentifier() for role in roles) and len({*roles}) == len(roles) <= MOST
        if not names or (known and not known - optional <= {*roles} <= known):
            raise UserError(
                f"has columns for {', '.join(roles[:MOST])!r:.200}; wanted "
                f"{', '.join(cls.kinds) or f'up to {MOST} names, each once'}."
            )
        if known and {*targets} != {*roles} & (cls.target_roles | set(WEIGHTS)):
            raise UserError(f"the targets cannot be {', '.join(targets) or 'none'}.")
        found = {role: Column.load(folder / "columns" / role) for role in roles}
        for role, column in found.items():
            if known and not isinstance(column, kinds[role]):
                raise SavedTextError(
                    f"{folder / 'columns' / role}: is a column of {column.kind}, which cannot be "
                    f"the {role} of {cls.kind}."
                )
        texts = {role: c for role in cls.alike if isinstance(c := found.get(role), IdsColumn)}
        for role, text in texts.items():  # of one tokenizer: it is held once
            first = next(iter(texts.values()))
            if (text.tokenizer.vocab_info, text.limit) != (first.tokenizer.vocab_info, first.limit):
                raise SavedTextError(
                    f"{folder / 'columns' / role}: has another tokenizer or limit than the column "
                    f"of the {cls.alike[0]}. Save the text processor again."
                )
            found[role] = type(text)(text.name, first.tokenizer, limit=first.limit)
        return cls({r: found[r] for r in inputs}, {r: found[r] for r in targets})


def fitted_with(columns: Mapping[str, Column]) -> dict[str, Any]:
    """What columns were fitted with, by the names of the recipe's ingredients."""
    return {name: made for column in columns.values() for name, made in column.fitted.items()}


def _listed(columns: Mapping[str, Column]) -> str:
    """Columns by their role, in words."""
    limits = {role: "" if (most := c.limit) is None else f", {most}" for role, c in columns.items()}
    listed = (f"{role} ({c.kind} '{c.name}'{limits[role]})" for role, c in columns.items())
    return ", ".join(listed) or "none"


@text_processors.register("columns")
class PlainColumns(ColumnsText):
    """Any columns by their roles, for a task that has no text processor of its own.

    It saves and loads itself like any other, so that a run's tokenizer and labels come back by data
    alone. What an answer is says the task, in its method ``answers``.
    """

    kind = "columns"
    kinds: ClassVar[Mapping[str, ColumnKind]] = {}  # any

    @override
    def decode(self, outputs: Iterable[Any]) -> list[Any]:
        return list(outputs)
