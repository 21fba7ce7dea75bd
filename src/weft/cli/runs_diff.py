"""``weft runs diff A B``: what tells one run from another."""

import argparse
from pathlib import Path
from typing import Any

__all__ = ["add", "run"]

TITLES = {
    "setting": "Settings",
    "code": "Code",
    "version": "Versions",
    "git": "Repository",
    "data": "Data",
    "result": "Results",
}


def add(actions: Any) -> None:
    """Adds the action."""
    parser = actions.add_parser(
        "diff",
        help="show what tells one run from another",
        description="Compares settings, code, versions, data and results of two runs, side by "
        "side. What is equal is left out, but for results.",
    )
    parser.add_argument("first", help="the folder of a run")
    parser.add_argument("second", help="the folder of another")
    parser.set_defaults(perform=run)


def run(args: argparse.Namespace) -> int:
    """Prints a table for each kind of difference."""
    from weft.metrics.tables import text_table
    from weft.recipes.diff import compare
    from weft.recipes.record import Record
    from weft.runtime.terminal import printable

    first, second = (Record.read(Path(name)) for name in (args.first, args.second))
    for name, path, run in (("A", args.first, first), ("B", args.second, second)):
        print(printable(f"{name}  {path} ({run.state})"))
    found = compare(first, second)
    for kind, title in TITLES.items():
        lines = [line for line in found if line.kind == kind]
        if not lines:
            print(f"\n{title}: {'none' if kind == 'result' else 'the same'}")
            continue
        rows = [[line.name, line.first, line.second, line.change] for line in lines]
        header = [title.lower(), "A", "B", "B - A" if kind == "result" else ""]
        print(f"\n{text_table(header, rows)}")
    return 0
