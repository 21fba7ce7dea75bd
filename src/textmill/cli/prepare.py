"""``textmill prepare RECIPE``: read and tokenize the data once, before training."""

import argparse

from textmill.cli.arguments import add_recipe, recipe_options
from textmill.runtime.logging import log_to_stderr


def add(parser: argparse.ArgumentParser) -> None:
    """Describes the command."""
    parser.description = (
        "Reads every row, says which are bad, and keeps the tokens where training "
        "finds them: in $TEXTMILL_CACHE, by default ~/.cache/textmill. Training does it by itself "
        "where it was not done; a store that was cut off goes on from its last whole chunk."
    )
    add_recipe(parser)
    parser.add_argument(
        "--verify",
        action="store_true",
        help="read every byte of the stores that are there; a damaged one is made again",
    )
    parser.add_argument(
        "--workers",
        type=int,
        metavar="N",
        help="processes that encode; by default as many as pay, at most 8",
    )


def run(args: argparse.Namespace) -> int:
    """Prepares and says what was done."""
    log_to_stderr()
    from textmill.preflight.prepare import prepare

    options = recipe_options(args)
    prepare(args.recipe, args.words, **options, verify=args.verify, workers=args.workers)
    return 0
