"""Commands that start other trainings or evaluations: grid and watch; and their launchers."""

import argparse
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from textmill.cli.arguments import add_device_and_code, add_recipe, add_words, option_words
from textmill.cli.progress_line import ProgressLine
from textmill.config.values.raw_values import untyped
from textmill.config.values.typed_values import parse_duration
from textmill.config.values.yaml_files import parse_word
from textmill.errors import UserError
from textmill.launch.ray import Ray
from textmill.launch.slurm import Slurm
from textmill.runtime.logging import log_to_stderr, printable

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
        + "; ".join(
            f"{name}.{{{','.join(field.name for field in fields(kind))}}}"
            for name, kind in LAUNCHERS.items()
        ),
    )
    parser.add_argument("--partition", metavar="P", help="of Slurm: short for slurm.partition=P")


def asked_launcher(args: argparse.Namespace) -> tuple[Slurm | Ray | None, list[str]]:
    """The launcher that is asked for (None: this machine), and the other words."""
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

    options = tuple(option_words(args))
    return Named(args.recipe, tuple(args.config), args.device, args.allow_code, options)


def add_grid(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "Trains a recipe with each combination of values: name.setting=VALUE,VALUE. Every cell is "
        "a usual run, named by its key. All are planned, and the first is checked, before any "
        "starts. The same command goes on with a grid that was interrupted, also with more "
        "values, and prints the table of one that is finished. Exit code 1 if a cell failed."
    )
    add_recipe(parser, "a script, an experiment or a YAML file")
    parser.add_argument(
        "--seeds", type=int, metavar="N", help="train each combination with the seeds 1 to N"
    )
    parser.add_argument(
        "--search",
        choices=["optuna"],
        help="propose settings instead of training all: in lr=log(1e-5,1e-2), uniform(0,0.5), "
        "int(1,6), choice(a,b) or values with commas; cells without hope are stopped",
    )
    parser.add_argument("--trials", type=int, metavar="N", help="how many settings are proposed")
    parser.add_argument(
        "--jobs",
        type=int,
        metavar="N",
        help="cells at a time, each with its share of the cores (default: one for each GPU, or "
        "for each core if there is none)",
    )
    parser.add_argument(
        "--fail-fast", action="store_true", help="stop all cells as soon as one has failed"
    )
    add_launcher(parser)


def run_grid(args: argparse.Namespace) -> int:
    log_to_stderr()
    from textmill.launch.grid import COMMAND, run_grid

    elsewhere, words = asked_launcher(args)
    if args.search:
        from textmill.runs.study import import_optuna

        if args.seeds is not None:
            raise UserError(
                "--seeds is for a grid. Search with one seed, then train the best again with "
                "several: textmill grid RECIPE lr=THE_BEST --seeds 5"
            )
        if args.trials is None or args.trials < 1:
            raise UserError("a search wants its length: --trials 30.")
        import_optuna(COMMAND)
    elif args.trials is not None:
        raise UserError("--trials is for a search. Add --search optuna, or leave it out.")
    asked = {name: getattr(args, name) for name in ("seeds", "trials", "jobs", "fail_fast")}
    with ProgressLine() as line:
        named = named_recipe(args)
        folder, table = run_grid(named, words, **asked, elsewhere=elsewhere, show=line.say)
    for text in table.summary(folder):
        print(printable(text))
    return 1 if table.failed else 0


def add_watch(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "Evaluates each checkpoint of the runs in a folder, each once, as textmill evaluate does, "
        "while they are trained; writes the values beside the run, and marks the best. Ends when "
        "every run is finished, or when no new checkpoint has come for a time. The same command "
        "goes on with what is left. With --tune a recipe is trained from each checkpoint, and the "
        "best of those runs is kept: what a pretraining is worth, while it goes on."
    )
    parser.add_argument("workdir", help="a folder of runs, such as runs, or a run")
    add_words(parser, "settings of valid_data and test_data; with --tune, all those of its recipe")
    parser.add_argument(
        "--train", metavar="RECIPE", help="train this recipe in the folder, too, and watch it"
    )
    parser.add_argument(
        "--tune", metavar="RECIPE", help="train this recipe from each checkpoint, and compare those"
    )
    parser.add_argument(
        "--timeout",
        default="1h",
        metavar="TIME",
        help="end when no new checkpoint has come for so long (default: 1h)",
    )
    parser.add_argument(
        "--jobs", type=int, default=1, metavar="N", help="evaluations at a time (default: 1)"
    )
    add_launcher(parser)
    add_device_and_code(parser)


def run_watch(args: argparse.Namespace) -> int:
    """Evaluates, and prints the best checkpoint of each run; 1 if anything failed."""
    log_to_stderr()
    from textmill.config.sources.open_recipe import stages_of
    from textmill.launch.cells import Named
    from textmill.launch.launcher import launcher_of
    from textmill.launch.watch import Watch
    from textmill.launch.worth import Tuning, Worth, best_table
    from textmill.recipes.planning import plan_recipe

    try:
        timeout = parse_duration(args.timeout).total_seconds()
    except ValueError as error:
        raise UserError(f"--timeout: {error}") from error
    elsewhere, words = asked_launcher(args)
    root, options, code = Path(args.workdir), tuple(option_words(args)), args.allow_code
    worth = Worth(words, options)
    if args.tune is not None:
        worth = Tuning(Named(args.tune, (), args.device, code, options), words, root)
    if args.train is not None:  # its mistakes are told before anything runs
        for stage in [[settings] for settings in stages_of(args.train).values()] or [[]]:
            plan_recipe(args.train, configs=stage, targets=["trainer"], allow_code=code)
    train = [] if args.train is None else ["train", args.train, *options]
    jobs = args.jobs + (args.jobs > 0 and args.train is not None)
    launcher = launcher_of(elsewhere, jobs=jobs, device=args.device)
    with ProgressLine() as line:
        watch = Watch(root, worth, launcher, train=train, timeout=timeout, show=line.say)
        runs = watch.run()
    if table := best_table(runs, worth.asked):
        print(printable(table))
    return 1 if watch.failed or watch.trained else 0
