"""``textmill watch WORKDIR``: evaluate each new checkpoint of a folder's runs as it appears."""

import argparse
from pathlib import Path

from textmill.cli.arguments import add_device_and_code, add_words
from textmill.cli.grid import StatusLine
from textmill.cli.launchers import add_launcher, asked_launcher
from textmill.config.values.scalars import parse_duration
from textmill.errors import UserError
from textmill.runtime.logging import log_to_stderr, printable


def add(parser: argparse.ArgumentParser) -> None:
    """Describes the command."""
    parser.description = (
        "Evaluates each checkpoint of the runs in a folder, each once, as textmill evaluate does, "
        "while they are trained; writes the values beside the run, and marks the best. Ends when "
        "every run is finished, or when no new checkpoint has come for a time. The same command "
        "goes on with what is left."
    )
    parser.add_argument("workdir", help="a folder of runs, such as runs, or a run")
    add_words(parser, "settings of valid_data and test_data, as of textmill evaluate")
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


def run(args: argparse.Namespace) -> int:
    """Evaluates, and prints the best checkpoint of each run; 1 where an evaluation failed."""
    log_to_stderr()
    from textmill.launch.launcher import launcher_of, option_words
    from textmill.launch.watch import Watch, best_table

    try:
        timeout = parse_duration(args.timeout).total_seconds()
    except ValueError as error:
        raise UserError(f"--timeout: {error}") from error
    elsewhere, words = asked_launcher(args)
    asked = {name: getattr(args, name) for name in ("device", "include", "allow_code", "debug")}
    line = StatusLine()
    launcher = launcher_of(elsewhere, jobs=args.jobs, device=args.device)
    watch = Watch(
        Path(args.workdir),
        words,
        launcher,
        options=option_words(**asked),
        timeout=timeout,
        show=line.show,
    )
    try:
        runs = watch.run()
    finally:
        line.clear()
    if table := best_table(runs, words):
        print(printable(table))
    return 1 if watch.failed else 0
