"""``weft check RECIPE``: everything that would go wrong, before it does."""

import argparse
import sys
import textwrap
from typing import Any

from weft.cli.arguments import add_recipe
from weft.runtime.logging import printable

__all__ = ["add", "run"]


def add(subparsers: Any) -> None:
    """Adds the command."""
    parser = subparsers.add_parser(
        "check",
        help="check a recipe, its data and one real batch before training",
        description="Plans the recipe, reads every row, and puts one real batch through module, "
        "loss, backward, metrics, checkpoint and prediction. Lists everything that is wrong.",
    )
    add_recipe(parser)


def run(args: argparse.Namespace) -> int:
    """Checks; exit code 2 if anything is wrong."""
    from weft.preflight.check import check

    found = check(
        args.recipe,
        args.words,
        configs=args.config,
        allow_code=args.allow_code,
        device=args.device,
        say=print,
    )
    for note in found.notes:
        print(f"note: {note}")
    sys.stdout.flush()  # problems, on stderr, come after what was tried
    count = len(found.problems)
    if not count:
        print("Ready to train.")
        return 0
    print(f"{count} problem{'s' if count != 1 else ''}:", file=sys.stderr)
    for problem in found.problems:
        print(textwrap.indent(printable(problem), "    ").replace("    ", "  ", 1), file=sys.stderr)
    return 2
