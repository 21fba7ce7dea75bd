"""``textmill evaluate RUN``: measure a trained run on its data, or on other data."""

import argparse
import json
from pathlib import Path
from typing import Any

from textmill.cli.arguments import add_run, add_words, check_output, run_options
from textmill.runtime.logging import log_to_stderr, printable


def add(parser: argparse.ArgumentParser) -> None:
    """Describes the command."""
    parser.description = (
        "Evaluates the best checkpoint of a run on its valid_data and test_data, or on "
        "other data: textmill evaluate RUN valid_data.path=other.tsv"
    )
    add_run(parser)
    add_words(parser, "settings of valid_data and test_data")
    parser.add_argument(
        "--predictions", metavar="FILE", help="write each row with its prediction, as JSON lines"
    )
    parser.add_argument(
        "--values", metavar="FILE", help="write all values, by the name of their data, as JSON"
    )


def run(args: argparse.Namespace) -> int:
    """Evaluates, and prints a table for each data ingredient."""
    log_to_stderr()
    for option in ("predictions", "values"):
        if path := getattr(args, option):
            check_output(f"--{option}", Path(path))
    from textmill.metrics.tables import is_of_label, labels_table, values_table
    from textmill.runs.load_run import evaluate

    found = evaluate(args.run, args.words, **run_options(args))
    for name, evaluation in found.items():
        print(f"{name} ({len(evaluation.rows):,} answered rows)")
        whole = {n: value for n, value in evaluation.values.items() if not is_of_label(n)}
        ways, details = evaluation.directions, evaluation.details
        print(values_table(whole, directions=ways, details=details))
        if labels := labels_table(evaluation.values):
            print(f"\nlabels of {name}\n{labels}")
        print("".join(f"\n{printable(remark)}\n" for remark in evaluation.remarks), end="")
    if args.predictions:
        _write(args.predictions, found)
    if args.values:
        _write_values(args.values, found)
    return 0


def _write(path: str, found: dict[str, Any]) -> None:
    from textmill.metrics.reporters.jsonl import json_value
    from textmill.runtime.files import write_atomic

    rows = [json_value({"data": name, **row}) for name, e in found.items() for row in e.rows]
    text = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
    write_atomic(Path(path), text.encode("utf-8", "backslashreplace"))


def _write_values(path: str, found: dict[str, Any]) -> None:
    from textmill.metrics.reporters.jsonl import json_value
    from textmill.runtime.files import write_atomic

    values = {name: json_value(dict(each.values)) for name, each in found.items()}
    write_atomic(Path(path), json.dumps(values, ensure_ascii=False, indent=2) + "\n")
