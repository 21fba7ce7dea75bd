"""``textmill predict RUN FILE --output FILE``: rows and answers in a file; stopped, it goes on."""

import argparse
import hashlib
import sys
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any

from textmill.cli.prediction.prediction_rows import (
    Asked,
    ColumnRows,
    LineRows,
    answers,
    encoding_hint,
)
from textmill.cli.prediction.row_progress import RowProgress
from textmill.errors import UserError
from textmill.exported.manifest import MANIFEST, is_export
from textmill.runs.partial_predictions import PartialPredictions, finished_rows
from textmill.runs.prediction_file import PredictionFile, check_output
from textmill.runtime.files import sha256
from textmill.runtime.logging import printable
from textmill.runtime.pretrained import KEPT, find_pretrained


def checked_output(args: argparse.Namespace) -> int | None:
    """Refuses an output that cannot be written; the exit code where it has just been written."""
    output: Path = args.output
    finished = None if args.restart else finished_rows(output)
    if finished is None:
        check_output(output, args.file, overwrite=args.overwrite, vectors=args.vectors)
        return None
    return _said(output, *finished)


def write_file(predictor: Any, rows: ColumnRows | LineRows, args: argparse.Namespace) -> int:
    """Answers the rows that are not answered yet, and writes all; the exit code."""
    reading = [*sorted(args.words), *["--lines"] * args.lines, *["--json"] * args.json]
    reading += ["for vectors"] * args.vectors
    size = predictor.vector_size() if args.vectors else None
    unfinished = PartialPredictions(
        args.output,
        model=_model(args, predictor),
        reading=" ".join(reading),
        restart=args.restart,
    )
    with unfinished as part:
        try:
            with RowProgress(rows.size) as progress:
                hint = _answer(predictor, rows, part, progress)
                progress.say(f"writing {args.output.name}")
                file = PredictionFile(part.blocks, rows.batches, rows.names, vector_size=size)
                part.finish(file.write)
        except BaseException as error:
            if part.rows and not isinstance(error, UserError):
                said = (
                    f"{part.path} has {part.rows:,} answers; the same command goes on after them."
                )
                print(f"\n{printable(said)}", file=sys.stderr)
            raise
    for name, called in file.renamed.items():
        said = f"The rows have a column '{name}' of their own: the answers' is '{called}'."
        print(printable(said), file=sys.stderr)
    for problem in file.problems:
        print(printable(problem), file=sys.stderr)
    column = file.renamed.get("error", "error")
    return _said(args.output, part.rows, part.failed, column=column, hint=hint)


def _answer(
    predictor: Any, rows: ColumnRows | LineRows, part: PartialPredictions, progress: RowProgress
) -> str:
    """Answers all rows but those that are answered, which must be the first.

    Returns:
        What may be wrong with rows that could not be read.
    """
    digest, first, hint = hashlib.sha256(), part.rows, ""
    left = _digested(rows, digest)
    progress.say(f"reading the {first:,} rows that are answered" if first else "")
    for _ in islice(left, first):
        pass
    if first and digest.hexdigest() != part.digest:
        raise UserError(
            f"{part.path} has answers to {first:,} rows that are not the first of {rows.name}. "
            "Go on with the file that they were read of, or begin anew: --restart."
        )
    for block in answers(predictor, left):
        pairs = [(asked.kept, answer) for asked, answer in block]
        part.append(pairs, digest=digest.hexdigest())
        progress.show(part.rows, block[-1][0].done)
        hint = hint or encoding_hint(rows, [a["error"] for _, a in block if "error" in a])
    return hint


def _digested(rows: Iterable[Asked], digest: "hashlib._Hash") -> Iterator[Asked]:
    """The rows; the digest takes what decides the answer to each, and what stands beside it."""
    for asked in rows:
        content = repr((asked.row, asked.problem, asked.kept))
        digest.update(content.encode("utf-8", "backslashreplace"))
        yield asked


def _model(args: argparse.Namespace, predictor: Any) -> tuple[str, str]:
    """The digest of all that answers, and its name."""
    run = Path(args.run)
    if args.model is not None:
        folder = find_pretrained(args.model, revision=args.revision)
        files = [file for name in KEPT if (file := folder.path / name).is_file()]
        digests = [sha256(file) for file in [*files, *folder.weights()]]
        return f"{''.join(digests)} {args.pooling} {args.normalize}", args.model
    if is_export(run):
        return sha256(run / MANIFEST), str(run)
    from textmill.checkpoint.layout import CHECKPOINTS
    from textmill.checkpoint.layout import MANIFEST as CHECKPOINT

    checkpoint = run / CHECKPOINTS / predictor.checkpoint
    both = [sha256(run / "config.yaml"), sha256(checkpoint / CHECKPOINT)]
    return "".join(both), str(checkpoint)


def _said(output: Path, rows: int, failed: int, *, column: str = "error", hint: str = "") -> int:
    """Says what a file has; the exit code."""
    print(f"{output}: {rows:,} row{'s' * (rows != 1)}")
    if failed:
        where = f"the column '{column}' says why"
        where = "its vector is NaN" if output.suffix.lower() == ".npy" else where
        said = f"{failed:,} of {rows:,} rows could not be answered: {where}. {hint}"
        print(said.rstrip(), file=sys.stderr)
    return 1 if failed else 0
