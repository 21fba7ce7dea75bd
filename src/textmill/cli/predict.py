"""``textmill predict RUN [FILE]``: answer rows, from a file, a pipe, or typed one by one."""

import argparse
import json
import os
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from io import BytesIO
from itertools import chain
from pathlib import Path
from typing import IO, Any

from textmill.cli.arguments import add_precision, add_run, check_output, load_predictor, typed_lines
from textmill.cli.prediction_rows import ColumnRows, LineRows, Peeked, answers, reading_hint
from textmill.cli.progress_line import ProgressLine
from textmill.errors import DataError, UserError
from textmill.runtime.logging import printable
from textmill.text.cells import DividedText, unlisted

ENCODING = "encoding="
TEXT = "text"
"""The format of lines that are texts."""
FORMATS = (TEXT, "tsv", "csv", "jsonl", "conll", "parquet", "arrow", "squad", "excel")
HEAD = 1024
"""Bytes that say whether a file is a PDF."""
DATA = "valid_data"
OPTIONS = ("n_best", "beam_size", "threshold", "explain")
"""The arguments that are answer options."""
PREFIXES = tuple(f"{name}." for name in (DATA, "test_data", "train_data"))
COMMANDS_OF = {
    "reference-parser": "parse-references",
    "dataset-mentions": "find-datasets",
    "summarizer": "summarize",
}
"""The command of each pipeline."""


def add(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "Answers rows in their order: those of a file, of what is piped in, or each line as it is "
        "typed. A file is read by --format, else by its suffix (.tsv, .csv, .jsonl, .conll, .xlsx, "
        ".parquet, .arrow, .json of SQuAD, or the suffix of the run's own data), as the run's data "
        "is, with its targets or without. A pipe, or a file of another suffix, has a text in each "
        "line; if the model reads several columns, those of the run's data. A row that cannot be "
        "read or answered leaves an empty line in its place and a message that names its line; the "
        "exit code is then 1. For a run with an ONNX export of its best checkpoint (export/onnx) "
        "that export answers, which starts sooner, without torch, unless --checkpoint, --device or "
        "--precision asks the run itself."
    )
    add_run(parser, "the folder of a run, as textmill train prints it, or of an export")
    add_precision(parser)
    add_rows(parser)
    parser.add_argument(
        "--json",
        action="store_true",
        help="write each answer as a line of JSON, with scores and the columns read, of JSON lines "
        "all",
    )
    parser.add_argument(
        "--scores",
        action="store_true",
        help="as --json, with the log probability of every label and all its digits as 'scores': "
        "soft labels for another run",
    )
    parser.add_argument(
        "--output",
        type=Path,
        metavar="FILE",
        help="write all columns of the rows, the answers beside them, to a file (.csv, .jsonl, "
        ".parquet, .xlsx), which is there when it is whole",
    )
    parser.add_argument(
        "--excel",
        action="store_true",
        help="write a --output .csv that Excel opens rightly: with a byte order mark, and with "
        "semicolons and decimal commas if numbers have such in the language of this machine",
    )
    for name, about in (
        (
            "--n-best",
            "answers to a row, the best first: of generated text, for each mask, or labels in the "
            "scores of --json and --output",
        ),
        ("--beam-size", "sequences that a search follows at once; by default n-best at least"),
    ):
        parser.add_argument(name, type=int, metavar="N", help=f"{about} (the run's own)")
    parser.add_argument(
        "--threshold",
        type=float,
        metavar="P",
        help="probability above which a label is an answer (the run's own)",
    )
    parser.add_argument(
        "--explain",
        action="store_true",
        help="as --json, with the words of each row and what each does to the answer as 'reasons'",
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
        help="how rows are read, as header=true, encoding=cp1252 or columns={text: 2}",
    )
    parser.add_argument(
        "--format",
        choices=FORMATS,
        help="how rows are written: text, each line is the text of a row; or a format of data",
    )
    parser.add_argument(
        "--overwrite", action="store_true", help="replace the --output that there is"
    )


def _setting(word: str) -> str:
    if "=" not in word:
        raise argparse.ArgumentTypeError(f"found '{word}'")
    return word


def run(args: argparse.Namespace, load: Callable[[argparse.Namespace], Any] | None = None) -> int:
    """Answers rows by what ``load`` returns; exit code 1 if a row could not be answered."""
    load = load or _with_options
    if "=" in args.file and not Path(args.file).exists():
        args.file, args.words = "-", [args.file, *args.words]
    typed = args.file == "-" and sys.stdin.isatty()
    _check_words(args, typed=typed)
    if args.file != "-":
        _check_file(args)  # before a model is loaded
    if typed:
        return _interactive(load(args), args)
    if args.output is not None:
        from textmill.runs.prediction_file import check_suffix

        check_suffix(args.output, vectors=args.vectors)
        check_output("--output", args.output, [args.file], overwrite=args.overwrite)
    with sys.stdin.buffer if args.file == "-" else Path(args.file).open("rb") as source:
        predictor = load(args)
        try:
            return _answer(predictor, args, source)
        except DataError as error:
            from textmill.data.look.guess import seen_words

            is_of_columns = args.file != "-" and "columns=" in str(error)
            seen = seen_words(Path(args.file), predictor.columns) if is_of_columns else ""
            if not seen:
                raise
            raise DataError(f"{error}\nAs the file looks: {seen}") from error


def _answer(predictor: Any, args: argparse.Namespace, source: IO[bytes]) -> int:
    """Prints or writes the answers to the rows of a file or a pipe; returns the exit code."""
    rows = _rows(predictor, args, source)
    if args.output is not None:
        return _write_file(predictor, rows, args)
    count = failed = 0
    hint = ""
    for asked, found in chain.from_iterable(answers(predictor, rows)):
        count += 1
        failed += "error" in found
        hint = hint or reading_hint(rows, [found["error"]] if "error" in found else [])
        _write(asked.row, found, json_lines=args.json or args.vectors)
    if failed:
        text = f"{failed:,} of {count:,} rows could not be answered. {hint}"
        print(text.rstrip(), file=sys.stderr)
    return 1 if failed else 0


def _with_options(args: argparse.Namespace) -> Any:
    from textmill.exported.row_predictor import AnswerOptions

    options = AnswerOptions(**{name: getattr(args, name) for name in OPTIONS})
    predictor = load_predictor(args).with_options(options)
    args.json = args.json or args.explain
    if args.scores and args.explain:
        raise UserError("--scores and --explain: each changes what an answer has. Take one.")
    if args.scores:
        from textmill.text.processors.texts import Classified

        if not issubclass(predictor.answer_class or object, Classified):
            raise UserError("--scores: this model gives no text a label. Leave it out.")
        args.json = True
        predictor.answer_row = lambda answer: {**answer.row(), "scores": answer.log_scores}
    return predictor


def _check_words(args: argparse.Namespace, *, typed: bool) -> None:
    """Refuses words that contradict each other, or that do not fit rows that are typed."""
    if args.format == TEXT and (words := _columns_words(args)):
        raise UserError(f"--format text: a line is the text of a row. Leave it out, or {words[0]}.")
    if typed and args.words:
        raise UserError(f"{args.words[0]}: says how columns are read; name a file before it.")
    if typed and args.format not in (None, TEXT, "jsonl"):
        raise UserError(
            f"--format {args.format}: what is typed is text, or JSON lines (jsonl). Name a file."
        )
    if typed and args.output is not None:
        raise UserError("--output: takes the answers to a file or a pipe; name a file of rows.")
    if args.excel and (args.output is None or args.output.suffix.lower() != ".csv"):
        raise UserError("--excel: is about CSV; name its file, as --output answers.csv.")
    if args.overwrite and args.output is None:
        raise UserError("--overwrite: is about the file of --output; name one, or leave it out.")


def _columns_words(args: argparse.Namespace) -> list[str]:
    """The settings about columns: all but the encoding, which lines of text have, too."""
    return [word for word in args.words if not bare_setting(word).startswith(ENCODING)]


def _rows(predictor: Any, args: argparse.Namespace, source: IO[bytes]) -> ColumnRows | LineRows:
    """The rows of a file or a pipe, in the format of ``--format``, of its suffix, or by rule.

    The rule: each line is a text if the model reads nothing else and no setting is about columns;
    else the rows are read as the run's data is.
    """
    from textmill.data.formats.json_lines import ColumnarFormat
    from textmill.data.input_files import input_format, input_layout

    path, form = Path(args.file), args.format
    pipe = Peeked(source) if args.file == "-" or not path.is_file() else None
    name = "standard input" if args.file == "-" else args.file
    if pipe is not None and args.model is None:
        refuse_pdf(pipe.lines[:HEAD], args.file, args.run)
    whole = form == TEXT or args.model is not None
    data = {} if whole else predictor.data
    config, typed = input_settings(data, predictor.columns, [] if form == TEXT else args.words)
    if pipe is None:
        form = form or input_format(path, config)
    if form is None and not _columns_words(args) and (len(predictor.columns) == 1 or not data):
        form = TEXT
    if form == TEXT:
        _check_one_column(predictor)
        words = map(bare_setting, args.words)
        encoding = next((w.partition("=")[2] for w in words if w.startswith(ENCODING)), None)
        return LineRows(
            pipe or source, name, column=predictor.columns[0], encoding=encoding or "utf-8"
        )
    with tempfile.TemporaryDirectory(prefix="textmill-pipe-") as folder:
        if pipe is not None:
            path = Path(folder, "head")
            path.write_bytes(pipe.lines)
        how = {"form": form, "said": typed, "name": name}
        layout = input_layout(path, config, predictor.columns, **how)
    if pipe is not None and isinstance(layout, ColumnarFormat):
        raise UserError(f"{name}: {layout.kind} is read from a file, not from a pipe. Name a file.")
    keep = args.output is not None
    return ColumnRows(pipe or source, name, layout, whole=args.json, keep=keep)


def _check_file(args: argparse.Namespace) -> None:
    path, near = Path(args.file), ""
    if not path.exists():
        from textmill.config.registry import suggest_path

        why, near = "there is no such file", suggest_path(path)
    elif path.is_dir():
        why = "it is a folder"
    elif not os.access(path, os.R_OK):
        why = "its permissions do not let you"
    else:
        if path.is_file() and args.model is None:
            with path.open("rb") as file:
                refuse_pdf(file.read(HEAD), args.file, args.run)
        return
    raise UserError(f"{args.file} cannot be read: {why}. {near}".rstrip())


def _check_one_column(predictor: Any) -> None:
    columns = predictor.columns
    if len(columns) == 1:
        return
    row = json.dumps(dict.fromkeys(columns, "..."), ensure_ascii=False)
    raise UserError(
        f"This model reads the columns {', '.join(columns)}; a line of text fills only one. Say "
        f"how rows are written, as --format tsv; or --format jsonl for lines such as {row}."
    )


def _write(row: Mapping[str, Any], answer: Mapping[str, Any], *, json_lines: bool) -> None:
    if json_lines:
        shown = {**row, **answer}
        cells = {k: v if isinstance(v, DividedText) else unlisted(v) for k, v in shown.items()}
        print(json.dumps(cells, ensure_ascii=False))
    elif "error" in answer:
        print()  # the row keeps its place: the n-th line answers the n-th row
        print(printable(answer["error"]), file=sys.stderr)
    else:
        # An empty line stands for an error, and a dash for a text that has none of the labels.
        text = answer["prediction"]
        line = printable(" ".join(text.splitlines()) if isinstance(text, str) else str(text))
        print(line or ("-" if "scores" in answer else ""))


def _interactive(predictor: Any, args: argparse.Namespace) -> int:
    args.format = args.format or TEXT
    if args.format == TEXT:
        _check_one_column(predictor)
    for typed in typed_lines("a line" if args.format == TEXT else "a JSON object"):
        rows = _rows(predictor, args, BytesIO(typed))
        for asked, found in chain.from_iterable(answers(predictor, rows)):
            _write(asked.row, found, json_lines=args.json or args.vectors)
    return 0


def _write_file(predictor: Any, rows: ColumnRows | LineRows, args: argparse.Namespace) -> int:
    from textmill.runs.prediction_file import PredictionFile

    hint, size = "", predictor.vector_size() if args.vectors else None
    file = PredictionFile(args.output, rows.batches, vector_size=size, excel=args.excel)
    with file, ProgressLine(rows.size) as progress:
        for block in answers(predictor, rows):
            file.append([(asked.kept, answer) for asked, answer in block])
            progress.show(file.rows, block[-1][0].done)
            hint = hint or reading_hint(rows, [a["error"] for _, a in block if "error" in a])
        progress.say(f"writing {args.output.name}")
        file.finish(rows.names)
    for name, called in file.renamed.items():
        text = f"The rows have a column '{name}' of their own: the answers' is '{called}'."
        print(printable(text), file=sys.stderr)
    for problem in file.problems:
        print(printable(problem), file=sys.stderr)
    print(f"{file.output}: {file.rows:,} row{'s' * (file.rows != 1)}")
    if file.failed:
        where = f"the column '{file.renamed.get('error', 'error')}' says why"
        where = "its vector is NaN" if file.output.suffix.lower() == ".npy" else where
        text = f"{file.failed:,} of {file.rows:,} rows could not be answered: {where}. {hint}"
        print(text.rstrip(), file=sys.stderr)
    return 1 if file.failed else 0


def input_settings(
    data: Mapping[str, Any], columns: Sequence[str], words: Sequence[str]
) -> tuple[Any, set[str]]:
    """How the run's data is read, changed by words, all checked as a recipe's settings are.

    Returns:
        The settings, and the names of those that the words set.
    """
    from textmill.config.planning.plan import make_plan
    from textmill.config.recipe import Recipe
    from textmill.config.sources.script import table_of_recipe
    from textmill.data.input_files import SETTINGS
    from textmill.data.text_rows import TextRows

    mine = [bare_setting(word) for word in words]
    typed = {word.partition("=")[0].partition(".")[0] for word in mine}
    # As an evaluation reads them: pairs if the model reads a source, else the inputs alone.
    plain = {"columns": [*columns], "extra_columns": "error"}
    known = data or ({"columns": ["source", "target"]} if [*columns] == ["source"] else plain)
    given = [
        f"{name}={json.dumps(known[name], ensure_ascii=False)}"
        for name in ("path", "format", *SETTINGS)
        if name in known
    ]
    plan = make_plan(
        table_of_recipe(Recipe(**{DATA: TextRows.Config(path=Path("rows.tsv"))}), name="rows"),
        defaults=table_of_recipe(Recipe(), name="nothing"),
        words=[f"{DATA}.{word}" for word in (*given, *mine)],
        targets=[DATA],
    )
    if "format" in typed:
        raise UserError("format: is an option here, as --format csv.")
    if unread := [name for name in typed if name not in SETTINGS]:
        raise UserError(
            f"{min(unread)}: says nothing of how a file is read; textmill predict takes "
            f"{', '.join(SETTINGS)}."
        )
    return plan.nodes[DATA].config, typed


def bare_setting(word: str) -> str:
    """A setting without the name of its data."""
    prefix = next((prefix for prefix in PREFIXES if word.startswith(prefix)), "")
    return word.removeprefix(prefix)


def refuse_pdf(head: bytes, name: str, model: str) -> None:
    """Refuses a PDF, and names the commands of the pipelines for the model's task."""
    from textmill.pipelines.given_text import is_pdf

    if not is_pdf(head):
        return
    from textmill.data.line_blocks import refuse_binary
    from textmill.pipelines.find_model import task_of
    from textmill.pipelines.registries import pipelines

    task, kind = task_of(Path(model))
    fitting = list[str]()
    for pipeline, command in COMMANDS_OF.items():
        tasks = pipelines.get(pipeline).wanted.tasks
        if task in tasks or (task is None and kind in tasks.values()):
            fitting.append(f"textmill {command} {name} --model {model}")
    source = "standard input" if name == "-" else name
    if fitting:
        ways = ", or ".join(fitting)
        raise UserError(f"{source}: wanted rows of text, found a PDF. A pipeline reads it: {ways}")
    refuse_binary(head, source)
