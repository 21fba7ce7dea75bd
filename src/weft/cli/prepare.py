"""``weft prepare RECIPE``: read and tokenize the data once, before training."""

import argparse
from typing import Any

from weft.cli.arguments import add_recipe, log_lines

__all__ = ["add", "run"]


def add(subparsers: Any) -> None:
    """Adds the command."""
    parser = subparsers.add_parser(
        "prepare",
        help="read and tokenize a recipe's data once, before training",
        description="Reads every row, says which are bad, and keeps the tokens where training "
        "finds them: in $WEFT_CACHE, by default ~/.cache/weft. Training does it by itself where "
        "it was not done; a store that was cut off goes on from its last whole chunk.",
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
    log_lines()
    from weft.preflight.prepare import prepare

    prepare(
        args.recipe,
        args.words,
        configs=args.config,
        allow_code=args.allow_code,
        device=args.device,
        verify=args.verify,
        workers=args.workers,
    )
    return 0
