"""``weft train RECIPE``: train a recipe, or go on training it."""

import argparse
import os
from collections.abc import Mapping
from typing import Any

from weft.cli.arguments import add_recipe, recipe_options
from weft.errors import UserError
from weft.runtime.devices import Env
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
    parser.add_argument(
        "--nproc", type=_count, metavar="N", help="train in N processes of this machine"
    )
    parser.add_argument(
        "--max-restarts",
        type=int,
        default=0,
        metavar="N",
        help="with --nproc: start all processes again, up to N times, when one dies",
    )


def run(args: argparse.Namespace) -> int:
    """Trains, and prints the result and the folder on stdout."""
    if args.nproc is not None:
        log_to_stderr()
        return _launched(args)
    if args.max_restarts:
        raise UserError("--max-restarts is for several processes: give --nproc too.")
    rank = Env.detect("cpu").rank
    log_to_stderr(rank)
    from weft.runs.train import train

    options = recipe_options(args)
    done = train(args.recipe, args.words, run_dir=args.run_dir, again=args.again, **options)
    if rank:
        return 0
    for line in [*result_lines(done.result), f"run: {done.folder}"]:
        print(printable(line))
    return 0


def _count(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"wanted a number of processes from 1, found {text!r}")
    return int(text)


def _launched(args: argparse.Namespace) -> int:
    """Starts this command again in several processes."""
    if args.again and args.max_restarts:
        raise UserError(
            "--again trains in the next free folder, and so would each restart. Name a folder: "
            "--run-dir DIR, or leave --max-restarts out."
        )
    if "RANK" in os.environ:
        raise UserError(
            "--nproc starts the processes itself, but RANK is set: torchrun, or another launcher, "
            "has started some. Leave --nproc out, or unset RANK and WORLD_SIZE."
        )
    from weft.launch.processes import launch

    words = ["train", args.recipe, *args.words, "--device", args.device]
    words += [f"--config={path}" for path in args.config]
    words += [f"--include={module}" for module in args.include]
    words += [] if args.run_dir is None else [f"--run-dir={args.run_dir}"]
    words += ["--again"] if args.again else []
    words += ["--allow-code"] if args.allow_code else []
    return launch(words, nproc=args.nproc, max_restarts=args.max_restarts)


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
