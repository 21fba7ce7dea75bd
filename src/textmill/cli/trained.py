"""Commands that measure and export a trained run."""

import argparse
import json
from pathlib import Path

from textmill.cli.arguments import add_precision, add_run, add_words, check_output, run_options
from textmill.errors import UserError
from textmill.runtime.logging import log_to_stderr, printable


def add_evaluate(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "Evaluates the best checkpoint of a run on its valid_data and test_data, or on "
        "other data: textmill evaluate RUN other.tsv"
    )
    add_run(parser)
    add_precision(parser)
    add_words(parser, "a file of rows; settings of valid_data and test_data")
    parser.add_argument(
        "--predictions", metavar="FILE", help="write each row with its prediction, as JSON lines"
    )
    parser.add_argument(
        "--values", metavar="FILE", help="write all values, by the name of their data, as JSON"
    )


def run_evaluate(args: argparse.Namespace) -> int:
    log_to_stderr()
    for option in ("predictions", "values"):
        if path := getattr(args, option):
            check_output(f"--{option}", Path(path))
    from textmill.metrics.reporters.jsonl import json_value
    from textmill.metrics.tables import is_of_label, labels_table, values_table
    from textmill.runs.load_run import evaluate
    from textmill.runtime.files import write_atomic

    words = [f"valid_data.path={word}" if _is_file(word) else word for word in args.words]
    found = evaluate(args.run, words, **run_options(args))
    for name, evaluation in found.items():
        print(f"{name} ({len(evaluation.rows):,} answered rows)")
        whole = {n: value for n, value in evaluation.values.items() if not is_of_label(n)}
        ways, details = evaluation.directions, evaluation.details
        print(values_table(whole, directions=ways, details=details))
        if labels := labels_table(evaluation.values):
            print(f"\nlabels of {name}\n{labels}")
        print("".join(f"\n{printable(remark)}\n" for remark in evaluation.remarks), end="")
    if args.predictions:
        rows = [{"data": name, **row} for name, of in found.items() for row in of.rows]
        text = "".join(json.dumps(json_value(row), ensure_ascii=False) + "\n" for row in rows)
        write_atomic(Path(args.predictions), text.encode("utf-8", "backslashreplace"))
    if args.values:
        values = {name: json_value(dict(of.values)) for name, of in found.items()}
        write_atomic(Path(args.values), json.dumps(values, ensure_ascii=False, indent=2) + "\n")
    return 0


def _is_file(word: str) -> bool:
    return "=" not in word and Path(word).exists()


def add_calibrate(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "Fits the scores of a run that gives texts labels to its valid_data, or to other rows: "
        "textmill calibrate RUN valid_data.path=other.tsv. The run keeps the result, and answers "
        "with it from then on; measure it on rows that were not used here."
    )
    add_run(parser)
    add_words(parser, "settings of valid_data")
    parser.add_argument(
        "--correct",
        type=float,
        metavar="SHARE",
        help="leave texts without an answer so that this share of the answers is correct, as 0.95; "
        "if a text can have several labels, of the answers with each label",
    )


def run_calibrate(args: argparse.Namespace) -> int:
    log_to_stderr()
    from textmill.metrics.calibration import HEADER, reliability
    from textmill.metrics.tables import format_value, text_table
    from textmill.runs.calibrate import calibrate

    made = calibrate(args.run, args.words, correct=args.correct, **run_options(args))
    before, after = (format_value("calibration_error", error) for error in made.errors)
    print(f"{made.rows:,} rows of valid_data: temperature {made.temperature:.3f}")
    print(f"calibration error {before} before, {after} after")
    print(text_table(HEADER, reliability(made.tables[1])))
    if made.thresholds is not None:
        alike = len({*made.thresholds.values()}) == 1
        shown = {"every label": next(iter(made.thresholds.values()))} if alike else made.thresholds
        rows = [[name, f"{bound:.4f}"] for name, bound in shown.items()]
        print(f"\n{text_table(['label', 'answer above'], rows)}")
    return 0


def add_ensemble(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "Joins finished runs into one, which answers with the mean of their probabilities. The new "
        "run has all their weights: it predicts, is evaluated, exported and served like any other. "
        "Its data is that of the first run."
    )
    parser.add_argument("runs", nargs="+", metavar="RUN", help="run folders of one kind of task")
    parser.add_argument("--out", required=True, metavar="FOLDER", help="the run folder to write")
    parser.add_argument(
        "--checkpoint", default="best", help="of each run: best, last or a name (default: best)"
    )


def run_ensemble(args: argparse.Namespace) -> int:
    log_to_stderr()
    from textmill.runs.ensemble import ensemble

    ensemble(args.runs, args.out, checkpoint=args.checkpoint)
    return 0


def add_export(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "Writes graph, processor and a manifest into one folder, and compares it with "
        "the run on real rows. textmill predict FOLDER and textmill.exported.load(FOLDER) answer "
        "with it; one of huggingface is loaded by transformers."
    )
    add_run(parser)
    parser.add_argument(
        "--format",
        metavar="FORMAT",
        help="onnx, ctranslate2, huggingface, or an exporter of your own, @module.Class; by "
        "default the one in the recipe's trainer.export",
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
        help="take the likeliest tokens if the run draws them (task.decoding.sample)",
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


def run_export(args: argparse.Namespace) -> int:
    log_to_stderr()
    from textmill.exported.formats import ExportSettings
    from textmill.runs.export import export

    limits = {"quantize": args.quantize, "max_quality_loss": args.max_quality_loss}
    given = {name: value for name, value in limits.items() if value is not None}
    if given and args.format not in ("onnx", "ctranslate2"):
        raise UserError("--quantize and --max-quality-loss are for --format onnx and ctranslate2.")
    form = ExportSettings.of({"format": args.format, **given}) if given else args.format
    asked = {"out": args.out, "rows": args.rows, "greedy": args.greedy}
    made = export(args.run, form, **asked, **run_options(args))
    print(made.comparison.sentence)
    print(printable(str(made.folder)))
    return 0
