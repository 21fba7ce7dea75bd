"""``textmill show NAME``: what a component is, with its settings; of what an experiment is made."""

import argparse

from textmill.cli.arguments import add_include
from textmill.config.help import describe


def add(parser: argparse.ArgumentParser) -> None:
    """Describes the command."""
    parser.add_argument(
        "name", help="a registered name, as 'textmill list' prints it: adamw, optimizer/adamw"
    )
    add_include(parser)


def run(args: argparse.Namespace) -> int:
    """Prints the component."""
    print(describe(args.name), end="")
    return 0
