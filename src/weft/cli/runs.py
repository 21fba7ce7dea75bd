"""``weft runs``: list, verify, compare, report on and prune run folders."""

import argparse
from typing import Any

from weft.cli import runs_diff, runs_list, runs_prune, runs_report, runs_verify

__all__ = ["add", "run"]


def add(subparsers: Any) -> None:
    """Adds the command."""
    parser = subparsers.add_parser("runs", help="list, verify, compare and prune runs")
    parser.set_defaults(perform=runs_list.run)
    actions = parser.add_subparsers(title="actions", dest="action", metavar="ACTION")
    runs_list.add(actions)
    for action in (runs_verify, runs_diff, runs_report, runs_prune):
        action.add(actions)


def run(args: argparse.Namespace) -> int:
    """Does what the action says."""
    code: int = args.perform(args)
    return code
