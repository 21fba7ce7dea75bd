"""Commands that bring a model to others: its card."""

import argparse
from pathlib import Path

from textmill.cli.arguments import add_code, check_output
from textmill.runtime.logging import log_to_stderr, printable

ABOUT = "the folder of a run, as textmill train prints it, or of an export"


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
