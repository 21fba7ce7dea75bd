"""How a run's data is read, which is how rows that it is to answer are read."""

from pathlib import Path
from typing import Any

from textmill.config.values.raw_values import is_null
from textmill.config.values.typed_values import plain
from textmill.data.data_files import first_file
from textmill.data.input_files import SETTINGS
from textmill.data.text_pairs import TextPairs
from textmill.inference.load import NeedsCodeError, Predictor, saved_nodes, saved_plan

FIRST = ("valid_data", "test_data", "train_data")
"""Whose settings say how a file is read: the first that a run has."""


def recorded_layout(predictor: Predictor, run: str | Path) -> dict[str, Any]:
    """How the run's data is read, with its first file; empty if it is of no file of columns."""
    folder = Path(run)
    if not (folder / "config.yaml").is_file():
        return {}
    saved = saved_nodes(folder, "settings").entries
    name = next((name for name in FIRST if name in saved and not is_null(saved[name])), None)
    if name is None:
        return {}
    provided = ("env", *predictor.task.text.ingredients)
    try:
        config = saved_plan(folder, "settings", [name], provided=provided).nodes[name].config
    except NeedsCodeError:
        return {}
    if not isinstance(config, TextPairs.Config):
        return {}
    said = {
        name: plain(getattr(config, name))
        for name in ("format", *SETTINGS)
        if hasattr(config, name)
    }
    return {"path": str(first_file(config.path)), **said}
