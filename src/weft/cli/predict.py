"""``weft predict RUN [FILE]``: answer rows, from a file, a pipe, or typed one by one."""

import argparse
import contextlib
import json
import sys
from collections.abc import Iterable, Iterator
from typing import IO, Any

from weft.cli.arguments import add_run
from weft.errors import UserError

__all__ = ["add", "run"]


def add(subparsers: Any) -> None:
    """Adds the command."""
    parser = subparsers.add_parser(
        "predict",
        help="answer rows with a trained run (also: inference)",
        description="Answers the rows of a file or of stdin, one a line, in their order; on a "
        "terminal it answers each line as it is typed. A row that cannot be answered gives an "
        "error row.",
    )
    add_run(parser)
    parser.add_argument("file", nargs="?", default="-", help="a text file of rows; - is stdin")
    parser.add_argument(
        "--json", action="store_true", help="read and write JSON lines, with scores and all columns"
    )


def run(args: argparse.Namespace) -> int:
    """Answers; exit code 1 if a row could not be answered."""
    typed = args.file == "-" and sys.stdin.isatty()
    source = (
        None if typed else _opened(args.file)
    )  # a wrong name is said before the model is loaded
    with source or contextlib.nullcontext():
        predictor = _loaded(args)
        if not args.json and len(predictor.columns) > 1:
            names = ", ".join(predictor.columns)
            row = json.dumps(dict.fromkeys(predictor.columns, "..."), ensure_ascii=False)
            raise UserError(
                f"This model reads the columns {names}; a line of text fills only one. Give JSON "
                f"lines with --json, each such as {row}."
            )
        if source is None:
            return _interactive(predictor, json_lines=args.json)
        reader = _Reader(source, json_lines=args.json)
        failed = sum(_write(result, json_lines=args.json) for result in reader.answers(predictor))
    if failed:
        print(f"{failed:,} of {reader.count:,} rows could not be answered.", file=sys.stderr)
    return 1 if failed else 0


def _loaded(args: argparse.Namespace) -> Any:
    """The predictor of a run, or of an export, for which torch is not needed."""
    from pathlib import Path

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


class _Reader:
    """Lines as rows; one that cannot be read is an error row, in its place, and not the end."""

    def __init__(self, lines: Iterable[bytes], *, json_lines: bool) -> None:
        self.lines, self.json_lines = lines, json_lines
        self.count = 0
        self.wrong: dict[int, dict[str, Any]] = {}

    def answers(self, predictor: Any) -> Iterator[dict[str, Any]]:
        """The predictor's answers with the number of their line, from 1."""
        for number, result in enumerate(predictor.stream(self.rows()), start=1):
            yield {"line": number, **self.wrong.pop(number, result)}

    def rows(self) -> Iterator[Any]:
        """Rows for the predictor; it refuses the empty ones that stand for unreadable lines."""
        for number, raw in enumerate(self.lines, start=1):
            self.count = number
            try:
                yield _parsed(raw.decode("utf-8"), json_lines=self.json_lines)
            except ValueError as error:
                what = (
                    f"not UTF-8 (byte {error.start} of the line)"
                    if isinstance(error, UnicodeDecodeError)
                    else str(error)
                )
                text = raw.decode("utf-8", errors="replace").rstrip("\r\n")
                self.wrong[number] = {"text": text, "error": what}
                yield {}


def _parsed(line: str, *, json_lines: bool) -> Any:
    line = line.rstrip("\r\n")
    if not json_lines:
        return line
    try:
        row = json.loads(line)
    except json.JSONDecodeError as error:
        raise ValueError(f"not JSON: {error.msg} (column {error.colno})") from None
    except RecursionError:
        raise ValueError("not JSON that can be read: nested too deep") from None
    if not isinstance(row, str | dict):
        raise ValueError(f"wanted a JSON object or a JSON string, found {type(row).__name__}")
    return row


def _write(result: dict[str, Any], *, json_lines: bool) -> bool:
    """Prints an answer; True if it is an error."""
    number = result.pop("line")
    wrong = "error" in result
    if json_lines:
        print(json.dumps(result, ensure_ascii=False))
    elif wrong:
        print()  # the row keeps its line: output line n answers input line n
        print(f"line {number}: {result['error']}", file=sys.stderr)
    else:
        print(_one_line(result["prediction"]))
    return wrong


def _one_line(answer: Any) -> str:
    return " ".join(answer.splitlines()) if isinstance(answer, str) else str(answer)


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
        reader = _Reader([line.encode("utf-8", errors="surrogateescape")], json_lines=json_lines)
        for result in reader.answers(predictor):
            _write(result, json_lines=json_lines)
