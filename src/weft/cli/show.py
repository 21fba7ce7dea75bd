"""``weft show NAME``: what a component is, and its settings with types and defaults."""

import argparse
from typing import Any

from weft.config.component_help import describe

__all__ = ["add", "run"]


def add(subparsers: Any) -> None:
    """Adds the command."""
    parser = subparsers.add_parser("show", help="show one component")
    parser.add_argument(
        "name", help="a registered name, as 'weft list' prints it: adamw, optimizer/adamw"
    )


def run(args: argparse.Namespace) -> int:
    """Prints the component."""
    print(describe(args.name), end="")
    return 0
