"""The launcher that a command line asks for, with its settings."""

import argparse
from dataclasses import fields
from typing import TYPE_CHECKING, Any

from textmill.cli.arguments import recipe_options
from textmill.config.values.raw_values import untyped
from textmill.config.values.yaml_files import parse_word
from textmill.errors import UserError
from textmill.launch.ray import Ray
from textmill.launch.slurm import Slurm

if TYPE_CHECKING:
    from textmill.launch.cells import Named

LAUNCHERS: dict[str, Any] = {"slurm": Slurm, "ray": Ray}
"""What ``--launcher`` can name, with its settings."""


def add_launcher(parser: argparse.ArgumentParser) -> None:
    """The options of commands that can run elsewhere."""
    parser.add_argument(
        "--launcher",
        choices=[*LAUNCHERS],
        help="run by Slurm or on a Ray cluster; its settings are words, as slurm.time=2h: "
        + "; ".join(f"{name}.{{{','.join(_names(kind))}}}" for name, kind in LAUNCHERS.items()),
    )
    parser.add_argument("--partition", metavar="P", help="of Slurm: short for slurm.partition=P")


def asked_launcher(args: argparse.Namespace) -> tuple[Slurm | Ray | None, list[str]]:
    """The settings of the launcher that is asked for, None for this machine, and the other words.

    Raises:
        UserError: A setting is unknown or cannot be, or ``--partition`` is not for the launcher.
    """
    name = args.launcher
    if args.partition is not None and name != "slurm":
        raise UserError(f"--partition {args.partition} is for --launcher slurm.")
    if name is None:
        return None, list(args.words)
    given = {"partition": args.partition} if args.partition is not None else {}
    rest = []
    for word in args.words:
        if word.startswith(f"{name}."):
            read = parse_word(word)
            given[".".join(read.path[1:])] = untyped(read.node)
        else:
            rest.append(word)
    return LAUNCHERS[name](**given), rest


def named_recipe(args: argparse.Namespace) -> "Named":
    """The recipe of a command that starts others, with the options that they are to have."""
    from textmill.launch.cells import Named

    options = recipe_options(args)
    configs, include = tuple(options.pop("configs")), tuple(args.include)
    return Named(args.recipe, configs, include=include, debug=args.debug, **options)


def _names(kind: Any) -> list[str]:
    return [field.name for field in fields(kind)]
