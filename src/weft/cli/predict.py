"""``weft predict RUN [FILE]``: answer rows, from a file, a pipe, or typed one by one."""

import argparse
import contextlib
import json
import os
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import IO, Any

from weft.cli.arguments import add_run
from weft.cli.asked import Asked, answers, column_rows, line_rows
from weft.errors import UserError
from weft.runtime.terminal import printable
from weft.text.list_cell import unlisted

__all__ = ["add", "run"]


def add(subparsers: Any) -> None:
    """Adds the command."""
    parser = subparsers.add_parser(
        "predict",
        help="answer rows with a trained run (also: inference)",
        description="Answers rows in their order: those of a file of columns (.tsv, .csv, .jsonl, "
        ".conll, .parquet, .arrow, .json of SQuAD, or named as the run's own are), read as the "
        "run's data is, with its targets or without; else the lines of a text file or of stdin; on "
        "a terminal each line as it is typed. A row that cannot be read or answered leaves an "
        "empty line in its place and a message that names its line; the exit code is then 1.",
    )
    add_run(parser)
    parser.add_argument("file", nargs="?", default="-", help="a file of rows; - is stdin")
    parser.add_argument(
        "words",
        nargs="*",
        default=[],  # with it argparse does not ask for the list
        type=_setting,
        metavar="setting=value",
        help="how a file of columns is read, as header=true or columns={text: 2}",
    )
    parser.add_argument(
        "--json",
        action="store_true",
        help="write JSON lines, with scores and the columns read, of .jsonl all; text files and "
        "stdin are then read as JSON lines, too",
    )


def _setting(word: str) -> str:
    if "=" not in word:
        raise argparse.ArgumentTypeError(f"found '{word}'")
    return word


def run(args: argparse.Namespace) -> int:
    """Answers; exit code 1 if a row could not be answered."""
    if "=" in args.file and not Path(args.file).exists():
        args.file, args.words = "-", [args.file, *args.words]
    if _in_columns(args):
        _check_file(args.file)  # a wrong name is said before a model is loaded
        predictor, rows = _columns_of(args)
        return _write_all(predictor, rows, json_lines=args.json)
    typed = args.file == "-" and sys.stdin.isatty()
    source = None if typed else _opened(args.file)
    with source or contextlib.nullcontext():
        predictor = _loaded(args)
        if not args.json and len(predictor.columns) > 1:
            raise UserError(_one_column(predictor.columns))
        if source is None:
            return _interactive(predictor, json_lines=args.json)
        rows = line_rows(source, json_lines=args.json)
        return _write_all(predictor, rows, json_lines=args.json)


def _in_columns(args: argparse.Namespace) -> bool:
    """Whether a file is read by its columns: its suffix says so, the run's data, or settings do."""
    from weft.data.formats.by_suffix import SUFFIXES
    from weft.exported.manifest import is_export

    if args.words and args.file == "-":
        raise UserError(
            f"{args.words[0]}: says how a file of columns is read; name the file before it."
        )
    known = SUFFIXES.get(Path(args.file).suffix.lower())
    export = is_export(Path(args.run))
    if args.words or known is not None:
        return bool(args.words) or not (args.json and known == "jsonl" and export)
    if args.file == "-" or export:
        return False
    from weft.recipes.asked_rows import table_format

    form = table_format(Path(args.run), Path(args.file))
    return form is not None and not (args.json and form in ("tsv", "csv", "conll"))


def _check_file(file: str) -> None:
    """Refuses what is no file; one of columns is read more than once."""
    path = Path(file)
    if not path.exists():
        why = "there is no such file"
    elif not path.is_file():
        why = "it is a folder" if path.is_dir() else "columns are read from a file, not from a pipe"
    elif not os.access(path, os.R_OK):
        why = "its permissions do not let you"
    else:
        return
    raise UserError(f"{file} cannot be read: {why}.")


def _columns_of(args: argparse.Namespace) -> tuple[Any, Iterator[Asked]]:
    """The predictor of a run, and the rows of a file by the run's settings of its data."""
    from weft.exported.manifest import is_export

    if is_export(Path(args.run)):
        raise UserError(
            f"{args.file} is read by the columns of a run's data, but {args.run} is an export, "
            "which has none. Name the run; or give lines of text, or JSON lines with --json."
        )
    from weft.recipes.asked_rows import asked_layout

    predictor = _loaded(args)
    layout = asked_layout(predictor, args.run, args.file, args.words)
    return predictor, column_rows(Path(args.file), layout, all_keys=args.json)


def _one_column(columns: tuple[str, ...]) -> str:
    row = json.dumps(dict.fromkeys(columns, "..."), ensure_ascii=False)
    return (
        f"This model reads the columns {', '.join(columns)}; a line of text fills only one. Give "
        f"JSON lines with --json, each such as {row}; or a file of columns, as rows.tsv."
    )


def _loaded(args: argparse.Namespace) -> Any:
    """The predictor of a run, or of an export, for which torch is not needed."""
    from weft.exported.manifest import is_export

    if not is_export(Path(args.run)):
        from weft.recipes.reload import load

        return load(
            args.run, checkpoint=args.checkpoint, device=args.device, allow_code=args.allow_code
        )
    if args.checkpoint != "best":
        raise UserError(
            f"{args.run} is an export, which holds one checkpoint. Leave --checkpoint "
            f"{args.checkpoint} out, or name the run."
        )
    from weft.exported import load as load_export

    return load_export(args.run, device=args.device)


def _opened(file: str) -> IO[bytes]:
    if file == "-":
        return sys.stdin.buffer
    try:
        return open(file, "rb")
    except OSError as error:
        raise UserError(f"{file} cannot be read: {error.strerror}.") from None


def _write_all(predictor: Any, rows: Iterable[Asked], *, json_lines: bool) -> int:
    """Prints all answers, and how many there are not; the exit code."""
    count = failed = 0
    for result in answers(predictor, rows):
        count += 1
        failed += _write(result, json_lines=json_lines)
    if failed:
        print(f"{failed:,} of {count:,} rows could not be answered.", file=sys.stderr)
    return 1 if failed else 0


def _write(result: dict[str, Any], *, json_lines: bool) -> bool:
    """Prints an answer; True if it is an error."""
    wrong = "error" in result
    if json_lines:
        print(json.dumps({k: unlisted(v) for k, v in result.items()}, ensure_ascii=False))
    elif wrong:
        print()  # the row keeps its place: the n-th line answers the n-th row
        print(printable(result["error"]), file=sys.stderr)
    else:
        print(_one_line(result["prediction"]))
    return wrong


def _one_line(answer: Any) -> str:
    return printable(" ".join(answer.splitlines()) if isinstance(answer, str) else str(answer))


def _interactive(predictor: Any, *, json_lines: bool) -> int:
    what = "a JSON object or string" if json_lines else "a line"
    print(f"Type {what}; an empty line, Ctrl-D or Ctrl-C ends.", file=sys.stderr)
    while True:
        try:
            line = input("> ")
        except (EOFError, KeyboardInterrupt):
            print()
            return 0
        if not line.strip():
            return 0
        rows = line_rows([line.encode("utf-8", errors="surrogateescape")], json_lines=json_lines)
        for result in answers(predictor, rows):
            _write(result, json_lines=json_lines)
