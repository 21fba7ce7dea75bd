"""What a model is, in a few facts of its run folder: how it was trained, and how good it is."""

from collections.abc import Mapping
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from textmill.config.values.raw_values import untyped
from textmill.config.values.yaml_files import read_yaml
from textmill.errors import DataError, UserError
from textmill.metrics.intervals import wilson
from textmill.runtime.files import parse_json, read_all

LARGEST = 1 << 20
"""Bytes of a run's ``run.json``."""
OF_ROWS = ("accuracy", "exact_match")
"""Metrics that are a share of the rows, right or not, if rows have labels: their intervals are
known from it. The accuracy of models of text is one of tokens."""
MOST_LABELS = 1000


def model_card(run: Path, text: Any) -> dict[str, Any]:
    """Facts of a model: ``recipe``, ``labels``, ``data``, ``metric``, ``trained``, as are known.

    Args:
        run: The run folder; an export that lies in none is told by its text processor alone.
        text: The model's text processor.
    """
    card = dict[str, Any]()
    if labels := _labels(text):
        card["labels"] = labels[:MOST_LABELS]
    try:
        info = parse_json(read_all(run / "run.json", LARGEST, DataError), "run.json", DataError)
        card["recipe"] = str(info["recipe"])
        rows = {name: int(part["rows"]) for name, part in info["data_summary"].items()}
        card["data"] = {"rows": rows, "files": _files(run, list(rows))}
        name = info["selected_by"]["metric"]
        value = float(info["result"]["best"][name])
        card["metric"] = {"name": name, "value": value}
        kind = name.rpartition("/")[2]
        is_of_rows = kind in OF_ROWS and (labels or kind != "accuracy")
        if is_of_rows and (count := rows.get("valid_data", 0)):
            card["metric"]["interval"] = wilson(value * count, count)
    except (DataError, LookupError, TypeError, ValueError, AttributeError):
        pass  # what is not there, or of another version, is left out
    with suppress(OSError):
        trained = datetime.fromtimestamp((run / "run.json").stat().st_mtime, UTC)
        card["trained"] = trained.date().isoformat()
    return card


def _labels(text: Any) -> list[str]:
    """The labels of rows or of words; empty if the answers are none."""
    for role in ("label", "tags"):
        labels = getattr(getattr(text, "targets", {}).get(role), "labels", None)
        if names := getattr(labels, "names", None):
            return [str(name) for name in names]
    return []


def _files(run: Path, names: list[str]) -> dict[str, str]:
    """The names of the data's files, without their folders."""
    found = dict[str, str]()
    with suppress(UserError, OSError, KeyError, TypeError):
        settings: Any = untyped(read_yaml(run / "config.yaml").entries["settings"])
        for name in names:
            path = settings[name].get("path") if isinstance(settings.get(name), Mapping) else None
            if isinstance(path, str):
                found[name] = Path(path).name
    return found
