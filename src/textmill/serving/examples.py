"""Rows to try a model with: those that its run was evaluated on."""

import json
from pathlib import Path
from typing import Any

from textmill.errors import DataError
from textmill.exported.manifest import ExportError, ExportManifest, is_export
from textmill.exported.row_predictor import RowPredictor, is_answerable
from textmill.runtime.files import opened, parse_json, read_all

RUN = "run.json"
SHOWN = 6
LONGEST = 20_000
"""Most characters of an example."""
LOOKED_AT = 1 << 20
"""Bytes that are read of a file of predictions."""


def examples_of(served: Path, predictor: RowPredictor) -> list[dict[str, Any]]:
    """Some rows of the newest evaluation in a run folder that the model can answer.

    An export inside its run has the run's.
    """
    run = run_of(served.resolve())
    for path in sorted((run / "predictions").glob("*.jsonl"), reverse=True):
        try:
            with opened(path, DataError) as (file, _):
                lines = file.read(LOOKED_AT).split(b"\n")[:-1]
            rows = [json.loads(line) for line in lines]
            found = [{name: row[name] for name in predictor.columns} for row in rows]
        except (DataError, ValueError, TypeError, KeyError):  # of another task, or damaged
            continue
        short = [row for row in found if len(json.dumps(row)) <= LONGEST]
        if short:
            spread = short[:: max(1, len(short) // SHOWN)][:SHOWN]
            return [row for row in spread if is_answerable(predictor, row)]
    return []


def run_of(served: Path) -> Path:
    """The run folder that an export belongs to and lies in; else the folder that is given."""
    if not is_export(served):
        return served
    run = served.parent.parent
    try:
        key = parse_json(read_all(run / RUN, LOOKED_AT, DataError), RUN, DataError).get("key")
        return run if key and ExportManifest.read(served).source.get("key") == key else served
    except (DataError, ExportError, AttributeError):
        return served
