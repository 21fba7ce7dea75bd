"""``weft export RUN --format FORMAT``: write a trained run as a folder that needs no torch."""

import argparse

from weft.cli.arguments import add_run, run_options
from weft.runtime.logging import log_to_stderr, printable

__all__ = ["add", "run"]


def add(parser: argparse.ArgumentParser) -> None:
    """Describes the command."""
    parser.description = (
        "Writes graph, processor and a manifest into one folder, and compares it with "
        "the run on real rows. weft predict FOLDER and weft.exported.load(FOLDER) answer with it."
    )
    add_run(parser)
    parser.add_argument(
        "--format", required=True, metavar="FORMAT", help="onnx, ctranslate2 or huggingface"
    )
    parser.add_argument(
        "--out", metavar="FOLDER", help="the folder to write; by default RUN/export/FORMAT"
    )
    parser.add_argument(
        "--rows",
        metavar="FILE",
        help="a text file of rows to compare on; by default rows of the run's data, or those it "
        "kept",
    )


def run(args: argparse.Namespace) -> int:
    """Exports, and says how the export differs from the run."""
    log_to_stderr()
    from weft.runs.export import export

    made = export(args.run, args.format, out=args.out, rows=args.rows, **run_options(args))
    print(made.comparison.sentence)
    print(printable(str(made.folder)))
    return 0
