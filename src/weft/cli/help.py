"""``weft help RECIPE``: every ingredient with its settings; what is missing stands out."""

import argparse
from typing import Any

__all__ = ["add", "run"]

ABOUT_RECIPES = ("help", "check", "test", "train")
ABOUT_RUNS = ("help", "train", "evaluate")


def add(subparsers: Any) -> None:
    """Adds the command."""
    parser = subparsers.add_parser("help", help="show a recipe's ingredients and settings")
    parser.add_argument("recipe", help="a script, an experiment, a YAML file or a run folder")
    parser.add_argument(
        "words", nargs="*", metavar="name.setting=value", help="settings to show changed"
    )
    parser.add_argument(
        "--config", action="append", default=[], metavar="FILE", help="a YAML file of settings"
    )
    parser.add_argument(
        "--allow-code", action="store_true", help="execute a script that a run folder names"
    )


def run(args: argparse.Namespace) -> int:
    """Prints the help of the recipe."""
    from weft.cli.main import COMMANDS
    from weft.config.help import help_text
    from weft.recipes.planning import library_defaults, open_named

    source, run_folder = open_named(args.recipe, args.config, allow_code=args.allow_code)
    shown = ABOUT_RUNS if run_folder is not None else ABOUT_RECIPES
    text = help_text(
        source.table,
        library_defaults(),
        recipe=args.recipe,
        layers=source.layers,
        words=args.words,
        usage={name: COMMANDS[name][1] for name in shown},
    )
    print(text, end="")
    return 0
