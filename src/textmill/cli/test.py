"""``textmill test RECIPE -f NAME``: build one ingredient and look at it."""

import argparse

from textmill.cli.arguments import add_recipe, recipe_options
from textmill.runtime.logging import log_to_stderr


def add(parser: argparse.ArgumentParser) -> None:
    """Describes the command."""
    parser.description = (
        "Builds one ingredient with everything it needs. Data is read through and "
        "measured: batches, examples, tokens a second and the share of padding; the first batch "
        "is shown by its shapes, and its first example as text and ids."
    )
    add_recipe(parser)
    parser.add_argument(
        "-f",
        "--ingredient",
        dest="ingredients",
        action="append",
        required=True,
        metavar="NAME",
        help="the ingredient, as train_data; several are tried in their order",
    )


def run(args: argparse.Namespace) -> int:
    """Builds the ingredient and says what it is."""
    log_to_stderr()
    from textmill.preflight.ingredient_probe import try_ingredient

    for name in args.ingredients:
        try_ingredient(args.recipe, name, args.words, **recipe_options(args))
    return 0
