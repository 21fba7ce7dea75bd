"""The settings by which rows to answer are read: those of the run's data, and what words say."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from textmill.config.planning.plan import make_plan
from textmill.config.recipe import Recipe
from textmill.config.sources.script import table_of_recipe
from textmill.data.input_files import SETTINGS
from textmill.data.text_rows import TextRows
from textmill.errors import UserError

DATA = "valid_data"
PREFIXES = tuple(f"{name}." for name in (DATA, "test_data", "train_data"))


def input_settings(
    data: Mapping[str, Any], columns: Sequence[str], words: Sequence[str]
) -> tuple[TextRows.Config, set[str]]:
    """How the run's data is read, with what words say; all are checked as a recipe's are.

    Args:
        data: What is recorded of the run's data; empty if it is read from no file of columns.
        columns: Those that the model reads.
        words: Other settings, as ``"header=true"`` or ``"train_data.header=true"``.

    Returns:
        The settings, and the names of those that the words say.

    Raises:
        UserError: There is no such setting, or it says nothing of how a file is read.
    """
    mine = [bare_setting(word) for word in words]
    said = {word.partition("=")[0].partition(".")[0] for word in mine}
    known = data or _plain(columns)
    given = [
        f"{name}={json.dumps(known[name], ensure_ascii=False)}"
        for name in ("path", "format", *SETTINGS)
        if name in known
    ]
    plan = make_plan(
        table_of_recipe(Recipe(**{DATA: TextRows.Config(path=Path("rows.tsv"))}), name="rows"),
        defaults=table_of_recipe(Recipe(), name="nothing"),
        words=[f"{DATA}.{word}" for word in (*given, *mine)],
        targets=[DATA],
    )
    if "format" in said:
        raise UserError("format: is an option here, as --format csv.")
    if unread := [name for name in said if name not in SETTINGS]:
        raise UserError(
            f"{min(unread)}: says nothing of how a file is read; textmill predict takes "
            f"{', '.join(SETTINGS)}."
        )
    config = plan.nodes[DATA].config
    assert isinstance(config, TextRows.Config)
    return config, said


def bare_setting(word: str) -> str:
    """A setting without the name of data before it."""
    prefix = next((prefix for prefix in PREFIXES if word.startswith(prefix)), "")
    return word.removeprefix(prefix)


def _plain(columns: Sequence[str]) -> dict[str, Any]:
    """Pairs if a source is read, as an evaluation reads them; else the inputs alone."""
    if [*columns] == ["source"]:
        return {"columns": ["source", "target"]}
    return {"columns": [*columns], "extra_columns": "error"}
