"""``textmill check RECIPE``: everything that would go wrong, before it does."""

import argparse
import sys
import textwrap

from textmill.cli.arguments import add_recipe, recipe_options
from textmill.runtime.logging import printable


def add(parser: argparse.ArgumentParser) -> None:
    """Describes the command."""
    parser.description = (
        "Plans the recipe, reads every row, and puts one real batch through module, "
        "loss, backward, metrics, checkpoint and prediction. Lists everything that is wrong."
    )
    add_recipe(parser)


def run(args: argparse.Namespace) -> int:
    """Checks; exit code 2 if anything is wrong."""
    from textmill.preflight.check import check

    found = check(args.recipe, args.words, **recipe_options(args), say=print)
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
