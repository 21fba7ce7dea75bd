"""``textmill train RECIPE``: train a recipe, or go on training it."""

import argparse
import os
from collections.abc import Mapping
from typing import Any

from textmill.cli.arguments import add_recipe, recipe_options
from textmill.cli.grid import add_launcher, asked_launcher, named_recipe
from textmill.errors import RunStoppedError, UserError
from textmill.launch.ray import Ray, train_on_ray
from textmill.launch.slurm import Slurm, SlurmJobs
from textmill.runtime.devices import Env
from textmill.runtime.logging import log_to_stderr, printable
from textmill.runtime.signals import stop_without_parent


def add(parser: argparse.ArgumentParser) -> None:
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
        "--nproc",
        type=_count,
        metavar="N",
        help="train in N processes: of this machine, of each node of Slurm, or of a Ray cluster",
    )
    parser.add_argument(
        "--max-restarts",
        type=int,
        default=0,
        metavar="N",
        help="with --nproc: start all processes again, up to N times, when one dies",
    )
    parser.add_argument(
        "--hydra",
        metavar="CONFIGS",
        help="train by Lightning what a folder of Hydra's configs describes: "
        "textmill train --hydra configs/ train.yaml trainer=cpu model.lr=2e-5",
    )
    parser.add_argument(
        "-m",
        "--multirun",
        action="store_true",
        help="with --hydra: train each combination of values, as model.lr=0.1,0.2",
    )
    add_launcher(parser)


def run(args: argparse.Namespace) -> int:
    """Trains, and prints the result and the folder on stdout."""
    if args.hydra is not None:
        return _by_lightning(args)
    if args.multirun:
        raise UserError("--multirun is for --hydra. For a recipe: textmill grid RECIPE name=a,b")
    elsewhere, args.words = asked_launcher(args)
    if elsewhere is not None or args.nproc is not None:
        log_to_stderr()
        return _launched(args, elsewhere)
    if args.max_restarts:
        raise UserError("--max-restarts is for several processes: give --nproc too.")
    rank = Env.detect("cpu").rank
    log_to_stderr(rank)
    if "TORCHELASTIC_RUN_ID" in os.environ:  # of torchrun's processes, and of --nproc's
        stop_without_parent()
    from textmill.runs.train import train

    try:
        done = train(**_asked(args))
    except RunStoppedError as error:
        if rank:  # all have stopped, and rank 0 says so
            return error.exit_code
        raise
    return 0 if rank else _printed(done)


def _by_lightning(args: argparse.Namespace) -> int:
    """Trains what Hydra's configs describe; its words are Hydra's."""
    elsewhere = {"--nproc": args.nproc, "--launcher": args.launcher, "--config": args.config}
    elsewhere["--device"] = args.device != "auto"
    if named := [option for option, value in elsewhere.items() if value]:
        raise UserError(
            f"{named[0]} is not for --hydra: Lightning has its own settings, as trainer.devices=2 "
            "and trainer.accelerator=cpu, and configs come from the folder."
        )
    log_to_stderr(Env.detect("cpu").rank)
    from textmill.interop.hydra.run import train_hydra

    asked = {"run_dir": args.run_dir, "again": args.again, "multirun": args.multirun}
    name, words = args.recipe, args.words
    if "=" in name:  # no config is named: the template's, and this is a setting already
        name, words = "train", [name, *words]
    done = train_hydra(args.hydra, name, words, **asked)
    from textmill.interop.hydra.fit import is_main

    return _printed(done) if is_main() else 0  # of several, as trainer.devices=2 has, one prints


def _printed(done: Any) -> int:
    for line in [*result_lines(done.result), f"run: {done.folder}"]:
        print(printable(line))
    return 0


def _asked(args: argparse.Namespace) -> dict[str, Any]:
    named = {"recipe": args.recipe, "overrides": args.words, "run_dir": args.run_dir}
    return {**named, "again": args.again, **recipe_options(args)}


def _count(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"wanted a number of processes from 1, found {text!r}")
    return int(text)


def _launched(args: argparse.Namespace, elsewhere: Slurm | Ray | None) -> int:
    """Starts this command again in several processes, here or elsewhere."""
    if args.again and (args.max_restarts or elsewhere is not None):
        raise UserError(
            "--again trains in the next free folder, and so would each restart. Name a folder: "
            "--run-dir DIR, or leave it out."
        )
    if "RANK" in os.environ:
        raise UserError(
            "--nproc and --launcher start the processes themselves, but RANK is set: torchrun, or "
            "another launcher, has started some. Leave them out, or unset RANK and WORLD_SIZE."
        )
    if elsewhere is not None and args.max_restarts:
        raise UserError(
            "--max-restarts is for --nproc on this machine. A launcher has its own number: "
            f"{args.launcher}.restarts={args.max_restarts}."
        )
    named = named_recipe(args)
    words = named.command(args.words)
    words += [] if args.run_dir is None else [f"--run-dir={args.run_dir}"]
    if elsewhere is None:
        from textmill.launch.processes import launch

        words += ["--again"] if args.again else []
        return launch(words, nproc=args.nproc, max_restarts=args.max_restarts)
    planned = named.plan(args.words)  # what is wrong with the recipe is reported here, not by a job
    ranks = args.nproc or 1
    if isinstance(elsewhere, Slurm):
        from textmill.runs.resume import choose_folder

        run = str(choose_folder(planned, run_dir=args.run_dir, again=False).path)
        job = SlurmJobs(elsewhere, ranks=ranks).start(words, None, run)
        print(f"job: {job.id}")
        print(printable(f"log: {job.log}"))
        return 0
    train_on_ray(_asked(args), elsewhere, ranks=ranks, include=args.include)
    from textmill.runs.train import train

    return _printed(train(**_asked(args)))  # it is finished: what came of it is printed


def result_lines(result: Mapping[str, Any]) -> list[str]:
    """The result of a run, a line each; of what is read from its folder, the numbers."""
    from textmill.metrics.tables import format_value, is_of_label
    from textmill.run_folder.record import mapping, numbers

    lines = [f"steps: {numbers(result, ()).get('steps', 0):,.0f}"]
    for name in ("best", "test"):
        values = numbers(mapping(result, name), ())
        at = f" at step {values.pop('step'):,.0f}" if "step" in values else ""
        shown = [f"{k} {format_value(k, v)}" for k, v in values.items() if not is_of_label(k)]
        lines += [f"{name}: {', '.join(shown)}{at}"] if shown else []
    return lines
