"""``textmill predict RUN [FILE]``: answer rows, from a file, a pipe, or typed one by one."""

import argparse
import json
import os
import sys
from collections.abc import Callable, Mapping
from io import BytesIO
from itertools import chain
from pathlib import Path
from typing import IO, Any

from textmill.cli.arguments import add_run, check_output, load_predictor, typed_lines
from textmill.cli.pipelines.pdf_refusal import refuse_pdf
from textmill.cli.prediction.prediction_rows import (
    ColumnRows,
    LineRows,
    Peeked,
    answers,
    begins_as_json,
    encoding_hint,
)
from textmill.errors import UserError
from textmill.runtime.logging import printable
from textmill.text.cells import unlisted

ENCODING = "encoding="
HEAD = 1024
"""Bytes that say whether a file is a PDF."""


def add(parser: argparse.ArgumentParser) -> None:
    """Describes the command."""
    parser.description = (
        "Answers rows in their order: those of a file of columns (.tsv, .csv, .jsonl, "
        ".conll, .parquet, .arrow, .json of SQuAD, or named as the run's own are), read as the "
        "run's data is, with its targets or without; of stdin and of other files too, where a "
        "header or labels show that they have the columns, else their lines; on a terminal each "
        "line as it is typed. A row that cannot be read or answered leaves an empty line in its "
        "place and a message that names its line; the exit code is then 1."
    )
    add_run(parser, "the folder of a run, as textmill train prints it, or of an export")
    add_rows(parser)
    parser.add_argument(
        "--json",
        action="store_true",
        help="write each answer as a line of JSON, with scores and the columns read, of JSON lines "
        "all; rows are read as without it, and as JSON lines where the first line is one",
    )
    parser.add_argument(
        "--output",
        type=Path,
        metavar="FILE",
        help="write all columns of the rows, the answers beside them, to a file (.csv, .jsonl, "
        ".parquet), which is there when it is whole",
    )
    parser.set_defaults(model=None, vectors=False)


def add_rows(parser: argparse.ArgumentParser) -> None:
    """Adds the options for rows, for how they are read, and for an output file that exists."""
    parser.add_argument("file", nargs="?", default="-", help="a file of rows; - is stdin")
    parser.add_argument(
        "words",
        nargs="*",
        default=[],  # with it argparse does not ask for the list
        type=_setting,
        metavar="setting=value",
        help="how rows are read, as header=true, format=csv, encoding=cp1252 or columns={text: 2}",
    )
    parser.add_argument(
        "--lines",
        action="store_true",
        help="each line is the text of a row, whatever it looks like",
    )
    parser.add_argument(
        "--overwrite", action="store_true", help="replace the --output that there is"
    )


def _setting(word: str) -> str:
    if "=" not in word:
        raise argparse.ArgumentTypeError(f"found '{word}'")
    return word


def run(args: argparse.Namespace) -> int:
    """Answers; exit code 1 if a row could not be answered."""
    return answer(args, load_predictor)


def answer(args: argparse.Namespace, load: Callable[[argparse.Namespace], Any]) -> int:
    """Answers rows by what is loaded; the exit code."""
    if "=" in args.file and not Path(args.file).exists():
        args.file, args.words = "-", [args.file, *args.words]
    typed = args.file == "-" and sys.stdin.isatty()
    _check_words(args, typed=typed)
    if args.file != "-" and args.model is None:
        _refuse_pdf(args)
    by_columns = args.file != "-" and _in_columns(args)
    if by_columns:
        _check_file(args.file)  # a wrong name is said before a model is loaded
    if typed:
        predictor = load(args)
        _check_one_column(predictor, json_lines=args.json)
        return _interactive(predictor, args)
    if args.output is not None:
        from textmill.runs.prediction_file import check_suffix

        check_suffix(args.output, vectors=args.vectors)
        check_output("--output", args.output, [args.file], overwrite=args.overwrite)
    with _opened(args.file) as source:
        predictor = load(args)
        rows = (_column_rows if by_columns else _rows)(predictor, args, source)
        if args.output is None:
            return _write_all(predictor, rows, json_lines=args.json or args.vectors)
        from textmill.cli.prediction.predict_to_file import write_file

        return write_file(predictor, rows, args)


def _check_words(args: argparse.Namespace, *, typed: bool) -> None:
    """Refuses words that do not go together, or with rows that are typed."""
    if args.lines and _columns_words(args):
        raise UserError(
            f"--lines reads a line as the text of a row; leave it out, or {args.words[0]}."
        )
    if typed and args.words:
        raise UserError(f"{args.words[0]}: says how columns are read; name a file before it.")
    if typed and args.output is not None:
        raise UserError("--output: takes the answers to a file or a pipe; name a file of rows.")
    if args.overwrite and args.output is None:
        raise UserError("--overwrite: is about the file of --output; name one, or leave it out.")


def _columns_words(args: argparse.Namespace) -> list[str]:
    """The settings that say that rows have columns; lines of text have an encoding, too."""
    return [word for word in args.words if not word.startswith(ENCODING)]


def _rows(predictor: Any, args: argparse.Namespace, source: IO[bytes]) -> ColumnRows | LineRows:
    """The rows of a stream: those of columns where it has them, else its lines."""
    name = "standard input" if args.file == "-" else args.file
    head = Peeked(source)
    if args.model is None:
        refuse_pdf(head.lines[:HEAD], args.file, args.run)
    data = _recorded_layout(predictor, args)
    words = _columns_words(args)
    if data == {} and words:
        raise _no_columns(args)
    json_lines = args.json and not args.lines and begins_as_json(head.lines)
    if not (data == {} or args.lines or (json_lines and not words)):
        if data is not None:
            from textmill.cli.prediction.export_columns import pipe_layout

            layout = pipe_layout(predictor.columns, data, head.lines, args.words, name=name)
        else:
            from textmill.runs.prediction_input import input_pipe_of

            layout = input_pipe_of(predictor, args.run, head.lines, args.words, name=name)
        if layout is not None:
            return ColumnRows(head, name, layout, keep=args.output is not None)
    _check_one_column(predictor, json_lines=json_lines)
    encoding = next((w.partition("=")[2] for w in args.words if w.startswith(ENCODING)), "utf-8")
    column = predictor.columns[0]
    return LineRows(head, name, json_lines=json_lines, column=column, encoding=encoding)


def _is_no_run(args: argparse.Namespace) -> bool:
    """Whether what answers is an export, or a pretrained encoder."""
    from textmill.exported.manifest import is_export

    return args.model is not None or is_export(Path(args.run))


def _recorded_layout(predictor: Any, args: argparse.Namespace) -> Mapping[str, Any] | None:
    """The column layout recorded in an export ({} if there is none); None for a run."""
    if args.model is not None:
        return {"columns": list(predictor.columns)}
    return predictor.data or {} if _is_no_run(args) else None


def _in_columns(args: argparse.Namespace) -> bool:
    """Whether a file is read by its columns: its suffix says so, the run's data, or settings do."""
    from textmill.data.formats.by_suffix import SUFFIXES

    if args.lines:
        return False
    known = SUFFIXES.get(Path(args.file).suffix.lower())
    export = _is_no_run(args)
    words = _columns_words(args)
    if words or known is not None:
        return bool(words) or not (args.json and known == "jsonl" and export)
    if export:
        return False
    from textmill.runs.prediction_input import table_format

    form = table_format(Path(args.run), Path(args.file))
    by_positions = form in ("tsv", "csv", "conll")
    return form is not None and not (args.json and by_positions and _is_json(Path(args.file)))


def _is_json(path: Path) -> bool:
    """Whether a file begins with a line of JSON."""
    if not path.is_file() or not os.access(path, os.R_OK):
        return False
    with path.open("rb") as file:
        return begins_as_json(Peeked(file).lines)


def _refuse_pdf(args: argparse.Namespace) -> None:
    """Refuses a PDF before a model is loaded; other unreadable files are refused on reading."""
    path = Path(args.file)
    if path.is_file() and os.access(path, os.R_OK):
        with path.open("rb") as file:
            refuse_pdf(file.read(HEAD), args.file, args.run)


def _check_file(file: str) -> None:
    """Refuses what is no file; one of columns is read more than once."""
    path, near = Path(file), ""
    if not path.exists():
        from textmill.config.registry import suggest_path

        why, near = "there is no such file", suggest_path(path)
    elif not path.is_file():
        why = "it is a folder" if path.is_dir() else "columns are read from a file, not from a pipe"
    elif not os.access(path, os.R_OK):
        why = "its permissions do not let you"
    else:
        return
    raise UserError(f"{file} cannot be read: {why}. {near}".rstrip())


def _no_columns(args: argparse.Namespace) -> UserError:
    """What is wrong with columns of a file where an export is asked."""
    what = "Standard input" if args.file == "-" else args.file
    return UserError(
        f"{what} is read by the columns of a run's data, but {args.run} is an export of a run "
        "without such. Name the run; or give lines of text, or JSON lines with --json."
    )


def _column_rows(predictor: Any, args: argparse.Namespace, source: IO[bytes]) -> ColumnRows:
    """The rows of a file, read by the run's settings of its data."""
    data = _recorded_layout(predictor, args)
    if data == {}:
        raise _no_columns(args)
    if data is not None:
        from textmill.cli.prediction.export_columns import file_layout

        layout = file_layout(predictor.columns, data, args.file, args.words)
    else:
        from textmill.runs.prediction_input import input_layout_of

        layout = input_layout_of(predictor, args.run, args.file, args.words)
    keep = args.output is not None
    return ColumnRows(source, args.file, layout, whole=args.json, keep=keep)


def _check_one_column(predictor: Any, *, json_lines: bool) -> None:
    """Refuses lines of text where the model reads several columns."""
    columns = predictor.columns
    if json_lines or len(columns) == 1:
        return
    row = json.dumps(dict.fromkeys(columns, "..."), ensure_ascii=False)
    raise UserError(
        f"This model reads the columns {', '.join(columns)}; a line of text fills only one. Give "
        f"JSON lines with --json, each such as {row}; or a file of columns, as rows.tsv."
    )


def _opened(file: str) -> IO[bytes]:
    if file == "-":
        return sys.stdin.buffer
    try:
        return open(file, "rb")
    except OSError as error:
        raise UserError(f"{file} cannot be read: {error.strerror}.") from None


def _write_all(predictor: Any, rows: ColumnRows | LineRows, *, json_lines: bool) -> int:
    """Prints all answers, and how many there are not; the exit code."""
    count = failed = 0
    hint = ""
    for asked, found in chain.from_iterable(answers(predictor, rows)):
        count += 1
        failed += "error" in found
        hint = hint or encoding_hint(rows, [found["error"]] if "error" in found else [])
        _write(asked.row, found, json_lines=json_lines)
    if failed:
        said = f"{failed:,} of {count:,} rows could not be answered. {hint}"
        print(said.rstrip(), file=sys.stderr)
    return 1 if failed else 0


def _write(row: Mapping[str, Any], answer: Mapping[str, Any], *, json_lines: bool) -> None:
    """Prints an answer."""
    if json_lines:
        shown = {**row, **answer}
        print(json.dumps({k: unlisted(v) for k, v in shown.items()}, ensure_ascii=False))
    elif "error" in answer:
        print()  # the row keeps its place: the n-th line answers the n-th row
        print(printable(answer["error"]), file=sys.stderr)
    else:
        # An empty line is an error's: of a text that has none of the labels there is a dash.
        print(_one_line(answer["prediction"]) or ("-" if "scores" in answer else ""))


def _one_line(answer: Any) -> str:
    return printable(" ".join(answer.splitlines()) if isinstance(answer, str) else str(answer))


def _interactive(predictor: Any, args: argparse.Namespace) -> int:
    several = len(predictor.columns) > 1
    for typed in typed_lines("a JSON object" if several else "a line"):
        json_lines = args.json and (several or begins_as_json(typed))
        raw = BytesIO(typed)
        rows = LineRows(raw, "standard input", json_lines=json_lines, column=predictor.columns[0])
        for asked, found in chain.from_iterable(answers(predictor, rows)):
            _write(asked.row, found, json_lines=args.json or args.vectors)
    return 0
