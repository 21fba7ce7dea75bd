"""``textmill grid RECIPE lr=1e-4,3e-4``: a run for each combination of values, and one table."""

import argparse
import logging
import shutil
import sys

from typing_extensions import override

from textmill.cli.arguments import add_recipe
from textmill.cli.launchers import add_launcher, asked_launcher, named_recipe
from textmill.errors import UserError
from textmill.runtime.logging import log_to_stderr, printable

LOG = logging.getLogger("textmill")


def add(parser: argparse.ArgumentParser) -> None:
    """Describes the command."""
    parser.description = (
        "Trains a recipe with each combination of values: name.setting=VALUE,VALUE. Every cell is "
        "a usual run, named by its key. All are planned, and the first is checked, before any "
        "starts. The same command "
        "goes on with a grid that was interrupted, values can be added to it, and of one that is "
        "finished it prints the table. Exit code 1 where a cell failed."
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
        "for each core where there is none)",
    )
    parser.add_argument(
        "--fail-fast", action="store_true", help="stop all cells as soon as one has failed"
    )
    add_launcher(parser)


def run(args: argparse.Namespace) -> int:
    """Trains the cells, and prints the table and the best run on stdout."""
    log_to_stderr()
    from textmill.launch.grid_command import run_grid

    elsewhere, words = asked_launcher(args)
    if args.search:
        _refuse_search(args)
    elif args.trials is not None:
        raise UserError("--trials is for a search. Add --search optuna, or leave it out.")
    line = StatusLine()
    asked = {name: getattr(args, name) for name in ("seeds", "trials", "jobs", "fail_fast")}
    asked["elsewhere"] = elsewhere
    try:
        done = run_grid(named_recipe(args), words, **asked, show=line.show)
    finally:
        line.clear()
    for text in done.lines():
        print(printable(text))
    return 1 if done.failed else 0


def _refuse_search(args: argparse.Namespace) -> None:
    """Refuses a search that lacks its length or its package, or that is asked for seeds."""
    from textmill.launch.search import COMMAND
    from textmill.runs.study import import_optuna

    if args.seeds is not None:
        raise UserError(
            "--seeds is for a grid. Search with one seed, then train the best again with several: "
            "textmill grid RECIPE lr=THE_BEST --seeds 5"
        )
    if args.trials is None or args.trials < 1:
        raise UserError("a search wants its length: --trials 30.")
    import_optuna(COMMAND)


class StatusLine(logging.Filter):
    """A last line on a terminal that says how far a command is; nothing elsewhere.

    What is logged takes its place, and it is drawn again below.
    """

    def __init__(self) -> None:
        super().__init__()
        self.text, self.on = "", sys.stderr.isatty()
        if self.on:
            for handler in LOG.handlers:
                handler.addFilter(self)

    def show(self, text: str) -> None:
        """Draws the line anew where it says something else."""
        if self.on and text != self.text:
            width = shutil.get_terminal_size().columns - 1
            sys.stderr.write(f"\r\x1b[K{printable(text)[:width]}")
            sys.stderr.flush()
            self.text = text

    def clear(self) -> None:
        """Takes the line away."""
        if self.on and self.text:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()
        self.text = ""

    @override
    def filter(self, record: logging.LogRecord) -> bool:
        """Takes the line away before something is logged."""
        self.clear()
        return True
