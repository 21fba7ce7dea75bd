"""``textmill serve RUN|EXPORT [--pipeline NAME]``: answer over HTTP, and on a page in a browser."""

import argparse
import importlib.util
import ipaddress
import logging
from collections.abc import Mapping, Sequence
from dataclasses import fields
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from textmill.cli.arguments import add_precision, add_run, load_predictor
from textmill.cli.predict import input_settings
from textmill.config.docstrings import field_docs
from textmill.errors import DataError, MissingExtraError, UserError
from textmill.runtime.logging import log_to_stderr
from textmill.serving.limits import Limits

if TYPE_CHECKING:
    from textmill.cli.prediction_rows import ColumnRows
    from textmill.exported.row_predictor import RowPredictor

PACKAGES = ("fastapi", "uvicorn", "httptools", "prometheus_client")


def add(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "Answers JSON at /predict and shows a page at /, until Ctrl-C or SIGTERM; "
        "accepted requests are answered first. Only this machine can ask, unless --host "
        "says otherwise. For a run its own export answers, as with textmill predict."
    )
    about = "the folder of a run, as textmill train prints it, or of an export"
    add_run(parser, about, nargs="?")
    add_precision(parser)
    parser.add_argument(
        "--pipeline",
        metavar="NAME",
        help="serve a pipeline, which reads text files and PDFs, too: reference-parser, ...; by "
        "the model of RUN, or by its own in $TEXTMILL_HOME/models (~/.textmill/models), or else "
        "the one that textmill ships",
    )
    parser.add_argument(
        "--host",
        default="127.0.0.1",
        help="the address to serve at; 0.0.0.0 is every one that this machine has",
    )
    parser.add_argument("--port", type=int, default=8000, help="0 is any that is free")
    parser.add_argument(
        "--token-file",
        type=Path,
        metavar="FILE",
        help="a file with a token that each question must have; only you may read it",
    )
    limits = parser.add_argument_group("limits")
    docs = field_docs(Limits)
    for limit in fields(Limits):
        limits.add_argument(
            f"--{limit.name.replace('_', '-')}",
            type=type(limit.default),
            default=limit.default,
            metavar="N" if isinstance(limit.default, int) else "SECONDS",
            help=f"{docs.get(limit.name, '').replace('%', '%%')} (default: {limit.default:,})",
        )


def run(args: argparse.Namespace) -> int:
    """Serves; exit code 0 when it was asked to stop."""
    for package in PACKAGES:
        if importlib.util.find_spec(package) is None:
            raise MissingExtraError(package, extra="serve", what="textmill serve")
    from textmill.serving.app import Service
    from textmill.serving.card import model_card
    from textmill.serving.examples import examples_of, run_of
    from textmill.serving.server import bound, read_token, serve

    log_to_stderr()
    if args.run is None and args.pipeline is None:
        raise UserError("Name a run or an export to serve, or --pipeline NAME.")
    limits = Limits(**{limit.name: getattr(args, limit.name) for limit in fields(Limits)})
    token = None if args.token_file is None else read_token(args.token_file)
    with bound(args.host, args.port) as listener:  # before the model is loaded: that takes longer
        own = ipaddress.ip_address(listener.getsockname()[0]).is_loopback
        if not own and token is None:
            logging.getLogger("textmill").warning(
                "Whoever reaches %s can ask: there is no token. --token-file FILE sets one.",
                args.host,
            )
        if args.pipeline is None:
            predictor = load_predictor(args)
            run, asked = Path(args.run), args.run
            examples = examples_of(run, predictor)
            reads = partial(read_table, predictor.columns, predictor.data)
            text = getattr(predictor, "text", None) or predictor.task.text
            card = model_card(run_of(run.resolve()), text)
            # The folder as it was typed, without its parents.
            name = run.resolve().name if run.is_absolute() or not run.name else str(run)
        else:
            predictor, examples = _pipeline(args, limits)
            reads, card = None, dict[str, Any]()
            name = asked = args.pipeline
        service = Service(
            predictor=predictor,
            name=name,
            limits=limits,
            token=token,
            hosts=frozenset({"127.0.0.1", "localhost", "[::1]", args.host.lower()})
            if own
            else None,
            examples=examples,
            read_table=reads,
            card=card,
        )
        serve(service, listener, lambda url: print(f"{asked} at {url}/", flush=True))
    return 0


def read_table(
    columns: Sequence[str], layout: Mapping[str, Any], path: Path, stream: BinaryIO, form: str
) -> "ColumnRows":
    """A posted table, read as ``textmill predict`` reads a file of that format.

    Of a table without a header the columns are told by the training data's places; one that has as
    many columns as neither that nor the model, or a header of other names, is refused.
    """
    from textmill.cli.prediction_rows import ColumnRows
    from textmill.data.data_files import first_file
    from textmill.data.first_row import USUAL, first_cells
    from textmill.data.formats.by_suffix import TABLES, format_name
    from textmill.data.formats.header import plain_name
    from textmill.data.input_files import input_layout

    config, _ = input_settings(layout, columns, [])
    found = input_layout(path, config, columns, form=form, name="table")  # type: ignore[arg-type]
    cells = first_cells(path, found) or ()
    trained = format_name(first_file(config.path), config.format)
    widths = {len(columns), len(config.columns) if trained in TABLES else 0}
    named = USUAL.issuperset(map(plain_name, cells))
    if cells and not found.has_header and (named or len(cells) not in widths):
        shown = ", ".join(map(repr, cells))
        raise DataError(f"Wanted a header with {', '.join(columns)}; found {shown:.300}.")
    return ColumnRows(stream, "table", found, keep=True)


def _pipeline(
    args: argparse.Namespace, limits: Limits
) -> "tuple[RowPredictor, list[dict[str, Any]]]":
    """A pipeline in place of a model, with texts to try it: those of its model, in one column."""
    from textmill.pipelines.find_model import find_model
    from textmill.pipelines.registries import pipelines
    from textmill.serving.documents import PipelineRows
    from textmill.serving.examples import examples_of

    if (args.checkpoint, args.precision) != ("best", "fp32"):
        name = "checkpoint" if args.checkpoint != "best" else "precision"
        raise UserError(
            f"--{name} is for a run without a pipeline; a pipeline takes the best checkpoint, in "
            "fp32."
        )
    made = pipelines.get(args.pipeline)
    folder = find_model(made.wanted, args.run)
    pipeline = made(folder, device=args.device, allow_code=args.allow_code)
    cells = [cell for row in examples_of(folder, pipeline.predictor) for cell in row.values()]
    texts = [cell if isinstance(cell, str) else " ".join(map(str, cell)) for cell in cells]
    return PipelineRows(pipeline, limits.timeout), [{"text": text} for text in texts]
