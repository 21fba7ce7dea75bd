"""``textmill help RECIPE``: every ingredient with its settings; what is missing stands out."""

import argparse

from textmill.cli.arguments import add_recipe

ABOUT_RECIPES = ("help", "check", "test", "train")
ABOUT_RUNS = ("help", "train", "evaluate")


def add(parser: argparse.ArgumentParser) -> None:
    add_recipe(parser)
    parser.add_argument(
        "--all", action="store_true", help="show the settings, too, that few people change"
    )


def run(args: argparse.Namespace) -> int:
    """Prints the help of the recipe; exit code 2 where it is wrong, not only incomplete."""
    from textmill.cli.main import COMMANDS
    from textmill.config.help import recipe_help
    from textmill.recipes.planning import library_defaults, open_named

    source, run_folder = open_named(args.recipe, args.config, allow_code=args.allow_code)
    shown = ABOUT_RUNS if run_folder is not None else ABOUT_RECIPES
    text, problems = recipe_help(
        source.table,
        library_defaults(),
        recipe=args.recipe,
        layers=source.layers,
        words=args.words,
        everything=args.all,
        usage={name: COMMANDS[name][1] for name in shown},
        closed=source.closed,
    )
    print(text, end="")
    return 2 if problems else 0
