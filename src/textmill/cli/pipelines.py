"""Commands of pipelines: files in, one result after the other out."""

import argparse
import codecs
import csv
import json
import sys
from pathlib import Path
from typing import Any

from typing_extensions import override

from textmill.cli.arguments import add_device_and_code, check_output, typed_lines
from textmill.cli.progress_line import ProgressLine
from textmill.errors import DataError, UserError
from textmill.runtime.logging import log_to_stderr, printable

SUFFIXES = {".csv": "csv", ".json": "json", ".jsonl": "json", ".ndjson": "json"}
"""The format that the name of a file asks for."""


class ResultFormat:
    """Base of the ways to write results; with ``several`` files each result has its file's name."""

    def __init__(self, file: Any, pipeline: Any, several: bool) -> None:
        self.file, self.pipeline, self.several = file, pipeline, several

    def write(self, name: str, result: Any) -> None:
        """Writes a result of the file with a name."""

    def write_error(self, name: str, error: str) -> None:
        """Writes that a file could not be read, if the format has a place for it."""


class ResultLines(ResultFormat):
    """Lines for a person; an empty one for a text that could not be answered."""

    @override
    def write(self, name: str, result: Any) -> None:
        for line in [""] if result.error else result.lines():
            self.file.write(f"{f'{name}: ' if self.several else ''}{printable(line)}\n")


class ResultJson(ResultFormat):
    """A JSON object on each line, with all that is known."""

    @override
    def write(self, name: str, result: Any) -> None:
        self.file.write(json.dumps({"file": name, **result.row()}, ensure_ascii=False) + "\n")

    @override
    def write_error(self, name: str, error: str) -> None:
        self.file.write(json.dumps({"file": name, "error": error}, ensure_ascii=False) + "\n")


class ResultTable(ResultFormat):
    """A table of comma-separated values, with what a spreadsheet can use."""

    @override
    def __init__(self, file: Any, pipeline: Any, several: bool) -> None:
        super().__init__(file, pipeline, several)
        names = ("file", "line", "page", *pipeline.columns, "text", "error")
        self._table = csv.DictWriter(file, names, lineterminator="\n")
        self._table.writeheader()

    @override
    def write(self, name: str, result: Any) -> None:
        place = {"file": name, "line": result.line, "page": result.page}
        if result.error:
            self._table.writerow({**place, "text": result.text, "error": result.error})
            return
        # The text of a line stands beside its rows; a whole document would be too long for that.
        text = {"text": result.text} if self.pipeline.by_line else {}
        self._table.writerows({**place, **text, **cells} for cells in result.cells())

    @override
    def write_error(self, name: str, error: str) -> None:
        self._table.writerow({"file": name, "error": error})


FORMATS: dict[str, type[ResultFormat]] = {
    "text": ResultLines,
    "json": ResultJson,
    "csv": ResultTable,
}
"""How each format is written."""


def add_parse_references(parser: argparse.ArgumentParser) -> None:
    add_command(
        parser,
        "reference-parser",
        "Finds author, title, date and the other fields of references: those that a PDF lists; of "
        "a text file, or of what is piped in, each line is one. Each is written with its fields "
        "marked, as ParsCit does: <author>A. Author.</author> <title>...</title>; or as JSON, with "
        "tokens, tags, fields and their places.",
    )


def add_summarize(parser: argparse.ArgumentParser) -> None:
    add_command(
        parser,
        "summarizer",
        "Summarizes texts, each on a line: by their own sentences or in words of the model's, as "
        "it was trained. A text file is one text, and so is what is piped in; of a PDF the "
        "abstract is summarized, or the body if there is none. As JSON with the place of each "
        "sentence.",
    )
    parser.add_argument(
        "--part",
        choices=("abstract", "body", "all"),
        default="abstract",
        help="what of a PDF is summarized",
    )
    parser.add_argument(
        "--sentences",
        type=int,
        metavar="N",
        help="of a summary by sentences of the text, how many, in place of what was trained",
    )


def add_find_datasets(parser: argparse.ArgumentParser) -> None:
    add_command(
        parser,
        "dataset-mentions",
        "Finds the names of data sets in texts, a line for each mention, of a PDF with its page. A "
        "text file is one text, and so is what is piped in; of a PDF abstract and body are read. "
        "As JSON with the place of each mention in its text.",
    )


def add_identify_language(parser: argparse.ArgumentParser) -> None:
    add_command(
        parser,
        "language-identifier",
        "Names the language of texts by its code, as ISO 639-1 has it: of each line of a text "
        "file, or of what is piped in; of a PDF its abstract and body. As JSON with its "
        "probability.",
    )


def add_command(parser: argparse.ArgumentParser, pipeline: str, about: str) -> None:
    """Describes the command of a pipeline, and adds the options that all have."""
    parser.description = (
        f"{about} Several files are answered in their order, each line then with its file's name; "
        "one that cannot be read is reported, and the others are answered. The exit code is 1 if "
        "something could not be answered."
    )
    parser.add_argument(
        "files", nargs="*", default=["-"], metavar="FILE", help="PDFs and text files; - is stdin"
    )
    parser.add_argument(
        "--model",
        metavar="FOLDER",
        help="a run or an export, in place of that in $TEXTMILL_HOME/models (~/.textmill/models), "
        "or else the one that textmill ships",
    )
    parser.add_argument(
        "--format",
        choices=[*FORMATS],
        help="text, a line each (the default); json, JSON lines with all that is known; csv, a "
        "table; by default the format of the suffix of --output, .jsonl, .json or .csv",
    )
    parser.add_argument(
        "--output", type=Path, metavar="FILE", help="write to a file, there when it is whole"
    )
    parser.add_argument(
        "--overwrite", action="store_true", help="replace the --output that there is"
    )
    parser.add_argument(
        "--password", metavar="WORD", help="of the PDFs that are encrypted; others are read without"
    )
    add_device_and_code(parser)
    parser.set_defaults(pipeline=pipeline)


def run(args: argparse.Namespace) -> int:
    """Answers all files by the command's pipeline; the exit code."""
    from textmill.pipelines.registries import pipelines
    from textmill.runtime.files import replacing

    log_to_stderr()
    for file in args.files:  # what cannot be is refused before a model is loaded
        if "=" in file and not Path(file).exists():
            raise UserError(f"{file}: a pipeline has no settings; wanted files.")
    if args.output is not None:
        check_output("--output", args.output, args.files, overwrite=args.overwrite)
    elif args.overwrite:
        raise UserError("--overwrite: is about the file of --output; name one.")
    own = {name: getattr(args, name) for name in ("part", "sentences") if hasattr(args, name)}
    kind = pipelines.get(args.pipeline)
    pipeline = kind(args.model, device=args.device, allow_code=args.allow_code, **own)
    suffix = "" if args.output is None else args.output.suffix.lower()
    form = FORMATS[args.format or SUFFIXES.get(suffix, "text")]
    if args.output is not None:
        with replacing(args.output) as file:
            encoded = codecs.getwriter("utf-8")(file, "backslashreplace")  # type: ignore[arg-type]  # it has no seek
            return _answer(pipeline, args, form(encoded, pipeline, len(args.files) > 1))
    out = form(sys.stdout, pipeline, len(args.files) > 1)
    if args.files != ["-"] or not sys.stdin.isatty():
        return _answer(pipeline, args, out)
    for raw in typed_lines("a text"):
        for result in pipeline.predict_bytes("standard input", raw):
            _write(out, "standard input", result)
    return 0


def _answer(pipeline: Any, args: argparse.Namespace, out: ResultFormat) -> int:
    from textmill.pipelines.documents.document import DocumentError
    from textmill.pipelines.documents.pdf import LOCKED

    count = failed = 0
    with ProgressLine() as progress:
        for name in args.files:
            before = count
            try:
                results = (
                    pipeline.read(sys.stdin.buffer, "standard input", password=args.password)
                    if name == "-"
                    else pipeline.stream(Path(name), password=args.password)
                )
                for result in results:
                    count, failed = count + 1, failed + bool(result.error)
                    _write(out, name, result)
                    progress.show(count, 0)
            except (UserError, DataError) as error:
                if isinstance(error, DocumentError) and error.reason == LOCKED:
                    error.args = (f"{error}: give it with --password WORD",)
                if not out.several and args.output is None:
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


def _write(out: ResultFormat, name: str, result: Any) -> None:
    if result.error:
        _say(f"{name}:{result.line}: " if result.line else f"{name}: ", result.error)
    out.write(name, result)


def _say(where: str, problem: str) -> None:
    text = problem if problem.startswith(where.split(":")[0]) else f"{where}{problem}"
    print(printable(text), file=sys.stderr)
