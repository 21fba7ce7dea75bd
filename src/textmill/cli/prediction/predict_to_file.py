"""``textmill predict RUN FILE --output FILE``: rows and answers in a file."""

import argparse
import sys
from typing import Any

from textmill.cli.prediction.prediction_rows import ColumnRows, LineRows, answers, reading_hint
from textmill.cli.prediction.row_progress import RowProgress
from textmill.runs.prediction_file import PredictionFile
from textmill.runtime.logging import printable


def write_file(predictor: Any, rows: ColumnRows | LineRows, args: argparse.Namespace) -> int:
    """Answers all rows and writes them; the exit code."""
    hint, size = "", predictor.vector_size() if args.vectors else None
    file = PredictionFile(args.output, rows.batches, vector_size=size)
    with file, RowProgress(rows.size) as progress:
        for block in answers(predictor, rows):
            file.append([(asked.kept, answer) for asked, answer in block])
            progress.show(file.rows, block[-1][0].done)
            hint = hint or reading_hint(rows, [a["error"] for _, a in block if "error" in a])
        progress.say(f"writing {args.output.name}")
        file.finish(rows.names)
    for name, called in file.renamed.items():
        said = f"The rows have a column '{name}' of their own: the answers' is '{called}'."
        print(printable(said), file=sys.stderr)
    for problem in file.problems:
        print(printable(problem), file=sys.stderr)
    return _said(file, hint)


def _said(file: PredictionFile, hint: str) -> int:
    """Says what a file has; the exit code."""
    print(f"{file.output}: {file.rows:,} row{'s' * (file.rows != 1)}")
    if file.failed:
        where = f"the column '{file.renamed.get('error', 'error')}' says why"
        where = "its vector is NaN" if file.output.suffix.lower() == ".npy" else where
        said = f"{file.failed:,} of {file.rows:,} rows could not be answered: {where}. {hint}"
        print(said.rstrip(), file=sys.stderr)
    return 1 if file.failed else 0
