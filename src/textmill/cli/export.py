"""``textmill export RUN --format FORMAT``: write a trained run as a folder that needs no torch."""

import argparse

from textmill.cli.arguments import add_run, run_options
from textmill.runtime.logging import log_to_stderr, printable


def add(parser: argparse.ArgumentParser) -> None:
    """Describes the command."""
    parser.description = (
        "Writes graph, processor and a manifest into one folder, and compares it with "
        "the run on real rows. textmill predict FOLDER and textmill.exported.load(FOLDER) answer "
        "with it; one of huggingface is loaded by transformers."
    )
    add_run(parser)
    parser.add_argument(
        "--format", required=True, metavar="FORMAT", help="onnx, ctranslate2 or huggingface"
    )
    parser.add_argument(
        "--quantize",
        choices=["int8"],
        help="write weights as int8: smaller and faster; what that costs is measured and printed",
    )
    parser.add_argument(
        "--max-quality-loss",
        type=float,
        metavar="SHARE",
        help="most that quantizing may make the metric worse by, as a share of it (0.05); above it "
        "nothing is written",
    )
    parser.add_argument(
        "--greedy",
        action="store_true",
        help="take the likeliest tokens where the run draws them (task.decoding.sample)",
    )
    parser.add_argument(
        "--out",
        metavar="FOLDER",
        help="the folder to write; by default RUN/export/FORMAT, or FORMAT-int8",
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
    from textmill.exported.formats import ExportSettings
    from textmill.runs.export import export

    limits = {"quantize": args.quantize, "max_quality_loss": args.max_quality_loss}
    given = {name: value for name, value in limits.items() if value is not None}
    form = ExportSettings.of({"format": args.format, **given})
    asked = {"out": args.out, "rows": args.rows, "greedy": args.greedy}
    made = export(args.run, form, **asked, **run_options(args))
    print(made.comparison.sentence)
    print(printable(str(made.folder)))
    return 0
