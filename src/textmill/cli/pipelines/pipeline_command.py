"""What the commands of pipelines share: files in, one result after the other out."""

import argparse
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from textmill.cli.arguments import add_device_and_code, check_output, typed_lines
from textmill.cli.pipelines.result_formats import FORMATS, SUFFIXES, Format, ResultFormat
from textmill.cli.prediction.row_progress import RowProgress
from textmill.errors import DataError, UserError
from textmill.runtime.logging import log_to_stderr, printable


def add_command(parser: argparse.ArgumentParser, about: str) -> None:
    """Describes a pipeline's command, with what all have.

    Args:
        parser: The command's.
        about: What it does.
    """
    parser.description = (
        f"{about} Several files are answered in their order, each line then with its file's name; "
        "one that cannot be read is told, and the others are answered. The exit code is 1 where "
        "something could not be."
    )
    parser.add_argument(
        "files", nargs="*", default=["-"], metavar="FILE", help="PDFs and text files; - is stdin"
    )
    parser.add_argument(
        "--model",
        metavar="FOLDER",
        help="a run or an export, in place of that in $TEXTMILL_HOME/models (~/.textmill/models)",
    )
    parser.add_argument(
        "--format",
        choices=("text", "json", "csv"),
        help="text, a line each (the default); json, JSON lines with all that is known; csv, a "
        "table; an --output of .jsonl, .json or .csv has its own unasked",
    )
    parser.add_argument(
        "--output", type=Path, metavar="FILE", help="write to a file, there when it is whole"
    )
    parser.add_argument(
        "--overwrite", action="store_true", help="replace the --output that there is"
    )
    parser.add_argument(
        "--password",
        metavar="WORD",
        help="of the PDFs that are encrypted; others are read without",
    )
    add_device_and_code(parser)


def run_command(args: argparse.Namespace, name: str, **settings: Any) -> int:
    """Answers all files by a pipeline; the exit code.

    Args:
        args: As :func:`add_command` describes them.
        name: The pipeline's.
        settings: Its own.
    """
    from textmill.pipelines.registries import pipelines

    log_to_stderr()
    _check(args)
    made = pipelines.get(name)
    pipeline = made(args.model, device=args.device, allow_code=args.allow_code, **settings)
    if args.files == ["-"] and sys.stdin.isatty() and args.output is None:
        return _interactive(pipeline, args)
    with _written(args.output) as file:
        return _answer(pipeline, args, file)


def _check(args: argparse.Namespace) -> None:
    """Refuses what cannot be, before a model is loaded."""
    for file in args.files:
        if "=" in file and not Path(file).exists():
            raise UserError(f"{file}: a pipeline has no settings; wanted files.")
    output: Path | None = args.output
    if output is None:
        if args.overwrite:
            raise UserError("--overwrite: is about the file of --output; name one.")
        return
    check_output("--output", output, args.files, overwrite=args.overwrite)


@contextmanager
def _written(output: Path | None) -> Iterator[Any]:
    """Where results go: standard output, or a file that is there when it is whole."""
    if output is None:
        yield sys.stdout
        return
    from textmill.runtime.files import replacing

    with replacing(output) as file:
        yield _Encoded(file)


class _Encoded:
    """Text to a file of bytes."""

    def __init__(self, file: Any) -> None:
        self._file = file

    def write(self, text: str) -> None:
        self._file.write(text.encode("utf-8", "backslashreplace"))


def _answer(pipeline: Any, args: argparse.Namespace, file: Any) -> int:
    """Writes the results for all files; the exit code."""
    count = failed = 0
    several = len(args.files) > 1
    out = FORMATS[_format(args)](file, pipeline, several=several)
    with RowProgress(lambda: None) as progress:
        for name in args.files:
            before = count
            try:
                for result in _results(pipeline, name, args.password):
                    count, failed = count + 1, failed + bool(result.error)
                    _write(out, name, result)
                    progress.show(count, 0)
            except (UserError, DataError) as error:
                if not several and args.output is None:
                    raise
                count, failed = count + 1, failed + 1
                _say(f"{name}: ", str(error))
                out.write_error(name, str(error))
            if count == before:
                _say(f"{name}: ", "nothing was found in it.")
    if args.output is not None:
        print(f"{args.output}: {count:,} result{'s' * (count != 1)}")
    if failed:
        print(f"{failed:,} of {count:,} could not be answered.", file=sys.stderr)
    return 1 if failed else 0


def _results(pipeline: Any, name: str, password: str | None) -> Iterator[Any]:
    if name != "-":
        yield from pipeline.stream(Path(name), password=password)
        return
    yield from pipeline.read(sys.stdin.buffer, "standard input", password=password)


def _format(args: argparse.Namespace) -> Format:
    asked: Format | None = args.format
    suffix = "" if args.output is None else args.output.suffix.lower()
    return asked or SUFFIXES.get(suffix, "text")


def _write(out: ResultFormat, name: str, result: Any) -> None:
    if result.error:
        _say(f"{name}:{result.line}: " if result.line else f"{name}: ", result.error)
    out.write(name, result)


def _say(where: str, problem: str) -> None:
    said = problem if problem.startswith(where.split(":")[0]) else f"{where}{problem}"
    print(printable(said), file=sys.stderr)


def _interactive(pipeline: Any, args: argparse.Namespace) -> int:
    """Answers each line as it is typed."""
    out = FORMATS[_format(args)](sys.stdout, pipeline, several=False)
    for raw in typed_lines("a text"):
        for result in pipeline.predict_bytes("standard input", raw):
            _write(out, "standard input", result)
    return 0
