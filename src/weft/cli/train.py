"""``weft train RECIPE``: train a recipe, or go on training it."""

import argparse
from collections.abc import Mapping
from typing import Any

from weft.cli.arguments import add_recipe, recipe_options
from weft.runtime.logging import log_to_stderr, printable

__all__ = ["add", "run"]


def add(parser: argparse.ArgumentParser) -> None:
    """Describes the command."""
    parser.description = (
        "Trains a recipe. The same command resumes a run that was interrupted, and "
        "shows the result of one that is finished."
    )
    add_recipe(parser)
    parser.add_argument(
        "--run-dir", metavar="DIR", help="the run folder (default: runs/RECIPE/KEY)"
    )
    parser.add_argument("--again", action="store_true", help="train anew although the run exists")


def run(args: argparse.Namespace) -> int:
    """Trains, and prints the result and the folder on stdout."""
    log_to_stderr()
    from weft.runs.train import train

    options = recipe_options(args)
    done = train(args.recipe, args.words, run_dir=args.run_dir, again=args.again, **options)
    for line in [*result_lines(done.result), f"run: {done.folder}"]:
        print(printable(line))
    return 0


def result_lines(result: Mapping[str, Any]) -> list[str]:
    """The result of a run, a line each; of what is read from its folder, the numbers.

    Example:
        >>> result_lines({"steps": 1000, "best": {"step": 500, "bleu": 28.5}})
        ['steps: 1,000', 'best: bleu 28.50 at step 500']
    """
    from weft.metrics.tables import format_value, is_of_label
    from weft.run_folder.diff import mapping
    from weft.run_folder.record import numbers

    lines = [f"steps: {numbers(result, ()).get('steps', 0):,.0f}"]
    for name in ("best", "test"):
        values = numbers(mapping(result, name), ())
        at = f" at step {values.pop('step'):,.0f}" if "step" in values else ""
        shown = [f"{k} {format_value(k, v)}" for k, v in values.items() if not is_of_label(k)]
        lines += [f"{name}: {', '.join(shown)}{at}"] if shown else []
    return lines
