"""``weft runs report RUN``: a page that shows a run."""

import argparse
from pathlib import Path
from typing import Any

__all__ = ["add", "run"]


def add(actions: Any) -> None:
    """Adds the action."""
    parser = actions.add_parser(
        "report",
        help="write report.html: one file that shows a run in a browser",
        description="Writes the report of a run anew: curves, answers, settings, data, "
        "environment, and what tells it from another run. One file, without scripts or network.",
    )
    parser.add_argument("run", help="the folder of a run")
    parser.add_argument(
        "--against", metavar="RUN", help="the run to compare with (default: the last one beside it)"
    )
    parser.add_argument(
        "--output", metavar="FILE", help="the file to write (default: report.html in the run)"
    )
    parser.set_defaults(perform=run)


def run(args: argparse.Namespace) -> int:
    """Writes it and says where."""
    from weft.recipes.html_reporter import write_report
    from weft.runtime.terminal import printable

    path = write_report(
        Path(args.run),
        against=Path(args.against) if args.against else None,
        target=Path(args.output) if args.output else None,
    )
    print(printable(str(path)))
    return 0
