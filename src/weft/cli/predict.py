"""``weft predict RUN [FILE]``: answer rows, from a file, a pipe, or typed one by one."""

import argparse
import json
import sys
from collections.abc import Iterator
from typing import Any

from weft.cli.arguments import add_run

__all__ = ["add", "run"]


def add(subparsers: Any) -> None:
    """Adds the command."""
    parser = subparsers.add_parser(
        "predict",
        help="answer rows with a trained run (also: inference)",
        description="Answers the rows of a file or of stdin, one a line, in their order; on a terminal it answers "
        "each line as it is typed. A row that cannot be answered gives an error row.",
    )
    add_run(parser)
    parser.add_argument("file", nargs="?", default="-", help="a text file of rows; - is stdin")
    parser.add_argument(
        "--json", action="store_true", help="read and write JSON lines, with scores and all columns"
    )


def run(args: argparse.Namespace) -> int:
    """Answers; exit code 1 if a row could not be answered."""
    from weft.recipes.reload import load

    predictor = load(
        args.run, checkpoint=args.checkpoint, device=args.device, allow_code=args.allow_code
    )
    if args.file == "-" and sys.stdin.isatty():
        return _interactive(predictor, json_lines=args.json)
    failed = 0
    for result in predictor.stream(_rows(args.file, json_lines=args.json)):
        failed += "error" in result
        _write(result, json_lines=args.json)
    if failed:
        print(f"{failed} of the rows could not be answered.", file=sys.stderr)
    return 1 if failed else 0


def _write(result: dict[str, Any], *, json_lines: bool) -> None:
    if json_lines:
        print(json.dumps(result, ensure_ascii=False))
    elif "error" in result:
        print()  # the row keeps its line: output line n answers input line n
        print(f"error: {result['error']}", file=sys.stderr)
    else:
        print(result["prediction"])


def _rows(file: str, *, json_lines: bool) -> Iterator[Any]:
    """Rows of a file or of stdin; bytes that are no UTF-8 become an error row, not the end."""
    from weft.errors import UserError

    try:
        stream = sys.stdin.buffer if file == "-" else open(file, "rb")  # noqa: SIM115  # closed below
    except OSError as error:
        raise UserError(f"{file} cannot be read: {error.strerror}.") from None
    with stream:
        for raw in stream:
            line = raw.decode("utf-8", errors="surrogateescape").rstrip("\r\n")
            yield _parsed(line) if json_lines else line


def _parsed(line: str) -> Any:
    try:
        row = json.loads(line)
    except (ValueError, RecursionError):
        return {"line": line}  # lacks the model's columns, so it becomes an error row
    return row if isinstance(row, str | dict) else {"line": line}


def _interactive(predictor: Any, *, json_lines: bool) -> int:
    print("Type a line; an empty line or Ctrl-D ends.", file=sys.stderr)
    while True:
        try:
            line = input("> ")
        except EOFError:
            print()
            return 0
        if not line.strip():
            return 0
        for result in predictor.stream([_parsed(line) if json_lines else line]):
            _write(result, json_lines=json_lines)
