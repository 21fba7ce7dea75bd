"""Text processor of an ensemble: each member reads rows by its own, and the first one answers."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
from typing_extensions import override

from textmill.errors import UserError
from textmill.text.cells import Rows
from textmill.text.columns.column import Column, ColumnKind
from textmill.text.metadata import read_settings
from textmill.text.processors.column_processor import MOST, ColumnsText
from textmill.text.processors.text_processor import Encoded, TextProcessor, text_processors


@text_processors.register("ensemble")
class EnsembleText(ColumnsText):
    """The columns of all members, those of each under roles of its own.

    The first member's roles are as they are in its run, and those of the second end in ``_2``.
    Targets are the first member's: all have the same labels.
    """

    kind = "ensemble"
    kinds: ClassVar[Mapping[str, ColumnKind]] = {}  # those of the members

    def __init__(self, members: Sequence[ColumnsText]) -> None:
        self.members = tuple(members)
        self.targets = self.members[0].targets
        self.inputs: dict[str, Column] = {}
        for number, member in enumerate(self.members):
            self.inputs |= {role_of(r, number): column for r, column in member.inputs.items()}

    @property
    @override
    def answering(self) -> ColumnsText:
        return self.members[0]

    @property
    @override
    def answer_class(self) -> type[Any] | None:  # type: ignore[override]  # that of the members
        return self.members[0].answer_class

    @property
    @override
    def ingredients(self) -> dict[str, Any]:
        """What the members are built of: for each its own ingredients, by their names."""
        return {"members": tuple(member.ingredients_for(()) for member in self.members)}

    @override
    def ingredients_for(self, names: Iterable[str]) -> dict[str, Any]:
        return self.ingredients

    def of_member(self, columns: Mapping[str, Any], number: int) -> dict[str, Any]:
        """What a member has among things by role, under its own roles; the first has targets."""
        member = self.members[number]
        roles = member.all if number == 0 else member.inputs
        return {r: columns[key] for r in roles if (key := role_of(r, number)) in columns}

    @override
    def difference(self, other: TextProcessor) -> str:
        assert isinstance(other, EnsembleText), "a task has asked for its kind"
        pairs = zip(self.members, other.members, strict=True)
        return next(filter(None, (own.difference(theirs) for own, theirs in pairs)), "")

    @override
    def with_unseen(self) -> Self:
        return type(self)([self.members[0].with_unseen(), *self.members[1:]])

    @override
    def encode(self, rows: Rows, *, with_targets: bool, truncate: bool = False) -> Encoded:
        parts = [
            member.encode(rows, with_targets=with_targets and number == 0, truncate=truncate)
            for number, member in enumerate(self.members)
        ]
        return self._joined(parts)

    @override
    def cut(self, encoded: Encoded) -> Encoded:
        none = np.zeros(0, np.int64)
        members = enumerate(self.members)
        return self._joined([m.cut(Encoded(self.of_member(encoded, n), none)) for n, m in members])

    def _joined(self, parts: Sequence[Encoded]) -> Encoded:
        columns = {role_of(r, n): made for n, part in enumerate(parts) for r, made in part.items()}
        over = np.unique(np.concatenate([part.over_length for part in parts]))
        return Encoded({role: columns[role] for role in self.all if role in columns}, over)

    @override
    def decode(self, outputs: Iterable[Any]) -> list[Any]:
        return self.members[0].decode(outputs)

    @override
    def divided(self, row: Mapping[str, Any]) -> Mapping[str, Any]:
        return self.members[0].divided(row)

    @override
    def completed(self, answer: Any, row: Mapping[str, Any]) -> Any:
        return self.members[0].completed(answer, row)

    @override
    def save_files(self, folder: Path) -> dict[str, Any]:
        for number, member in enumerate(self.members):
            member.save(folder / "members" / str(number))
        return {"members": len(self.members)}

    @classmethod
    @override
    def from_files(cls, folder: Path, settings: dict[str, Any]) -> Self:
        count = read_settings(settings, {"members": int})["members"]
        if not 2 <= count <= MOST:
            raise UserError(f"has {count} members; wanted 2 to {MOST}.")
        found = [TextProcessor.load(folder / "members" / str(n)) for n in range(count)]
        members = [each for each in found if isinstance(each, ColumnsText)]
        if len(members) < count or any(isinstance(each, EnsembleText) for each in members):
            raise UserError("has a member that reads no columns.")
        return cls(members)


def role_of(role: str, number: int) -> str:
    """The role of a member's column among those of all members; ``number`` is from 0."""
    return role if number == 0 else f"{role}_{number + 1}"
