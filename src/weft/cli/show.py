"""``weft show NAME``: what a component is, with its settings; of what an experiment is made."""

import argparse
from typing import Any

from weft.cli.arguments import add_include
from weft.config.help import describe

__all__ = ["add", "run"]


def add(subparsers: Any) -> None:
    """Adds the command."""
    parser = subparsers.add_parser("show", help="show one component or experiment")
    parser.add_argument(
        "name", help="a registered name, as 'weft list' prints it: adamw, optimizer/adamw"
    )
    add_include(parser)


def run(args: argparse.Namespace) -> int:
    """Prints the component."""
    print(describe(args.name), end="")
    return 0
