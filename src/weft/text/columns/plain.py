"""The text path of a task that names its columns and nothing more: answers are the task's."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, ClassVar

from typing_extensions import override

from weft.text.columns.column import Column, load_column
from weft.text.columns.path import ColumnsText
from weft.text.description import SavedTextError, settings_of, write_description
from weft.text.paths import DESCRIPTION, text_paths

__all__ = ["PlainColumns"]

MOST = 100
"""Columns that a saved path may name."""


@text_paths.register("columns")
class PlainColumns(ColumnsText):
    """Any columns by their roles: for a task of one's own, without a text path of its own.

    It saves and loads itself like any other, so that a run's tokenizer and labels come back by data
    alone. What an answer is says the task, in its method ``answers``.

    Args:
        inputs: The columns that every row must have, in prediction too, by their role.
        targets: Those that only training and evaluation need, by their role.

    Example:
        >>> from weft.text.columns.number import NumberColumn
        >>> path = PlainColumns({"age": NumberColumn("age")}, {"income": NumberColumn("income")})
        >>> path.input_columns, path.target_columns
        (('age',), ('income',))
    """

    kind = "columns"
    kinds: ClassVar[Mapping[str, tuple[type[Column], ...]]] = {}  # any

    @override
    def decode(self, outputs: Iterable[Any]) -> list[Any]:
        """The outputs as they are."""
        return list(outputs)

    @override
    def save(self, folder: Path) -> None:
        super().save(folder)
        roles = {"inputs": list(self.inputs), "targets": list(self.targets)}
        write_description(folder / DESCRIPTION, self.kind, roles)

    @classmethod
    @override
    def from_files(cls, folder: Path, settings: dict[str, Any]) -> "PlainColumns":
        settings_of(folder / DESCRIPTION, settings, {"inputs": list, "targets": list})
        roles = [*settings["inputs"], *settings["targets"]]
        if not all(isinstance(role, str) and role.isidentifier() for role in roles):
            raise SavedTextError(f"{folder / DESCRIPTION}: a column's role must be a name.")
        if len(roles) > MOST or len(set(roles)) < len(roles):
            raise SavedTextError(
                f"{folder / DESCRIPTION}: wanted up to {MOST} roles, each once, found {len(roles)}."
            )
        inputs, targets = (
            {role: load_column(folder / "columns" / role) for role in settings[part]}
            for part in ("inputs", "targets")
        )
        return cls(inputs, targets)
