"""``weft help RECIPE``: every ingredient with its settings; what is missing stands out."""

import argparse
from typing import Any

__all__ = ["add", "run"]


def add(subparsers: Any) -> None:
    """Adds the command."""
    parser = subparsers.add_parser("help", help="show a recipe's ingredients and settings")
    parser.add_argument("recipe", help="a script, an experiment or a YAML file")
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
    from weft.config.script import table_of_module
    from weft.config.source import open_recipe

    source = open_recipe(args.recipe, configs=args.config, allow_code=args.allow_code)
    from weft.recipes import defaults  # imports torch: only once the recipe is found

    about_recipes = ("help", "check", "test", "train")
    usage = {name: line for name, (_, line) in COMMANDS.items() if name in about_recipes}
    text = help_text(
        source.table,
        table_of_module(defaults),
        recipe=args.recipe,
        layers=source.layers,
        words=args.words,
        usage=usage,
    )
    print(text, end="")
    return 0
