"""Commands that bring a model to others and back: its card, push, pull."""

import argparse
from collections.abc import Callable
from pathlib import Path

from textmill.cli.arguments import add_code, check_output
from textmill.cli.progress_line import ProgressLine
from textmill.runtime.logging import log_to_stderr, printable

ABOUT = "the folder of a run, as textmill train prints it, or of an export"
PLACES = (
    "hf://owner/name on a Hugging Face hub (@REVISION after it), a folder, or another address that "
    "fsspec knows, as s3://bucket/name"
)


def add_model_card(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "Writes what a run is into README.md, as Hugging Face's hub shows it: what the model does, "
        "an example that works, how good it is, data, training, limits. What you write below its "
        "last line is kept when it is written again, and so is the license."
    )
    parser.add_argument("run", help=ABOUT)
    parser.add_argument(
        "--output", metavar="FILE", help="the file to write (default: README.md in the folder)"
    )
    _add_license(parser)
    add_code(parser)


def _add_license(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--license", metavar="NAME", help="the model's license for its card, as apache-2.0"
    )


def run_model_card(args: argparse.Namespace) -> int:
    log_to_stderr()
    from textmill.runs.report.model_card import write_card

    output = Path(args.output) if args.output else None
    if output is not None:
        check_output("--output", output)
    made = write_card(Path(args.run), output, license=args.license, allow_code=args.allow_code)
    print(printable(str(made)))
    return 0


def add_push(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "Brings a run or an export to an address, from which textmill pull has it: the best "
        "checkpoint, settings, the recipe's own code, values, exports, a report without rows, and "
        "the model card. Not the state of the training, and nothing with rows of the data. But "
        "settings name the files of your data with their folders. Only what changed travels; the "
        "same command goes on after an interruption."
    )
    parser.add_argument("run", help=ABOUT)
    parser.add_argument("address", help=PLACES)
    parser.add_argument(
        "--all",
        action="store_true",
        help="push the whole run, so that training can go on where it is pulled",
    )
    parser.add_argument(
        "--rows",
        action="store_true",
        help="push what has rows of the data, too: predictions, bad rows, the log, the report",
    )
    parser.add_argument("--public", action="store_true", help="let everyone see the model on a hub")
    parser.add_argument(
        "--overwrite", action="store_true", help="replace another model at the address"
    )
    _add_license(parser)
    add_code(parser)


def run_push(args: argparse.Namespace) -> int:
    log_to_stderr()
    from textmill.runs.sharing.push import push

    with ProgressLine() as line:
        done = push(
            args.run,
            args.address,
            everything=args.all,
            rows=args.rows,
            public=args.public,
            overwrite=args.overwrite,
            license=args.license,
            allow_code=args.allow_code,
            progress=_said_by(line),
        )
    size = f"{done.files:,} files, {done.size / 1e6:,.1f} MB; {done.brought:,} were brought there"
    print(printable(f"{done.address}: {size}"))
    return 0


def add_pull(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "Brings what textmill push has brought to an address into a folder, which textmill "
        "predict, serve, evaluate and export take. Every byte is compared; the folder is there "
        "when it is whole; the same command goes on after an interruption. Nothing is executed."
    )
    parser.add_argument("address", help=PLACES)
    parser.add_argument(
        "folder", nargs="?", help="the folder to make (default: the last part of the address)"
    )
    parser.add_argument(
        "--overwrite", action="store_true", help="replace a run or an export that is there"
    )


def run_pull(args: argparse.Namespace) -> int:
    log_to_stderr()
    from textmill.runs.sharing.pull import pull

    with ProgressLine() as line:
        made = pull(
            args.address,
            args.folder,
            overwrite=args.overwrite,
            progress=_said_by(line),
        )
    print(printable(str(made)))
    return 0


def _said_by(line: ProgressLine) -> Callable[[int, int], object]:
    return lambda done, size: line.say(f"{done / 1e6:,.1f} of {size / 1e6:,.1f} MB")
