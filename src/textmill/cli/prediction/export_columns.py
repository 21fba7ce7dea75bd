"""How a file or a pipe becomes rows for an export to answer: as the run's data was read."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from textmill.config.planning.plan import make_plan
from textmill.config.recipe import Recipe
from textmill.config.sources.script import table_of_recipe
from textmill.data.formats.by_suffix import HAVING
from textmill.data.formats.row_format import RowFormat
from textmill.data.input_files import input_layout, piped_layout
from textmill.data.text_pairs import TextPairs
from textmill.errors import UserError

DATA = "valid_data"
READ = ("format", "columns", *HAVING)
"""The settings that say how a file is read."""


def file_layout(
    columns: Sequence[str], data: Mapping[str, Any], file: str, words: Sequence[str]
) -> RowFormat:
    """The layout of a file of columns.

    Args:
        columns: Those that the model reads.
        data: What the export says of the run's data.
        file: The file.
        words: Other settings, as ``"header=true"``.
    """
    config, said = _config(data, words)
    return input_layout(Path(file), config, columns, said=said)


def pipe_layout(
    columns: Sequence[str], data: Mapping[str, Any], head: bytes, words: Sequence[str], *, name: str
) -> RowFormat | None:
    """The layout of what begins with these lines; None where it is lines of text."""
    config, said = _config(data, words)
    return piped_layout(head, config, columns, {}, name=name, said=said)


def _config(data: Mapping[str, Any], words: Sequence[str]) -> tuple[TextPairs.Config, set[str]]:
    """The settings, and which of them the words name; all are checked as a recipe's are."""
    mine = [word.removeprefix(f"{DATA}.") for word in words]
    said = {word.partition("=")[0].partition(".")[0] for word in mine}
    if unread := [name for name in said if name not in READ]:
        raise UserError(
            f"{min(unread)}: says nothing of how a file is read; textmill predict takes "
            f"{', '.join(READ)}."
        )
    known = [f"{name}={json.dumps(data[name])}" for name in ("path", *READ) if name in data]
    plan = make_plan(
        table_of_recipe(Recipe(**{DATA: TextPairs.Config(path=Path("rows.tsv"))}), name="export"),
        defaults=table_of_recipe(Recipe(), name="nothing"),
        words=[f"{DATA}.{word}" for word in (*known, *mine)],
        targets=[DATA],
    )
    config = plan.nodes[DATA].config
    assert isinstance(config, TextPairs.Config)
    return config, said
