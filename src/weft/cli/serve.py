"""``weft serve RUN|EXPORT``: answer over HTTP, and on a page in a browser."""

import argparse
import importlib.util
import ipaddress
import logging
from dataclasses import fields
from pathlib import Path

from weft.cli.arguments import add_run, load_predictor
from weft.errors import MissingExtraError
from weft.runtime.logging import log_to_stderr
from weft.serving.limits import Limits

__all__ = ["add", "run"]

PACKAGES = ("fastapi", "uvicorn", "httptools", "prometheus_client")


def add(parser: argparse.ArgumentParser) -> None:
    """Describes the command."""
    parser.description = (
        "Answers JSON at /predict and shows a page at /, until Ctrl-C or SIGTERM; "
        "questions that were taken are answered first. Only this machine can ask, unless --host "
        "says otherwise."
    )
    add_run(parser)
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
    for limit in fields(Limits):
        limits.add_argument(
            f"--{limit.name.replace('_', '-')}",
            type=type(limit.default),
            default=limit.default,
            metavar="N" if isinstance(limit.default, int) else "SECONDS",
            help=f"{limit.metadata['help']} ({limit.default:,})",
        )


def run(args: argparse.Namespace) -> int:
    """Serves; exit code 0 when it was asked to stop."""
    for package in PACKAGES:
        if importlib.util.find_spec(package) is None:
            raise MissingExtraError(package, extra="serve", what="weft serve")
    from weft.serving.app import Service
    from weft.serving.examples import examples_of
    from weft.serving.server import bound, serve
    from weft.serving.token import read_token

    log_to_stderr()
    limits = Limits(**{limit.name: getattr(args, limit.name) for limit in fields(Limits)})
    token = None if args.token_file is None else read_token(args.token_file)
    with bound(args.host, args.port) as listener:  # before the model is loaded: that takes longer
        own = ipaddress.ip_address(listener.getsockname()[0]).is_loopback
        if not own and token is None:
            logging.getLogger("weft").warning(
                "Whoever reaches %s can ask: there is no token. --token-file FILE sets one.",
                args.host,
            )
        predictor = load_predictor(args)
        service = Service(
            predictor=predictor,
            name=_name(Path(args.run)),
            limits=limits,
            token=token,
            hosts=frozenset({"127.0.0.1", "localhost", "[::1]", args.host}) if own else None,
            examples=examples_of(Path(args.run), predictor),
        )
        serve(service, listener, lambda url: print(f"{args.run} at {url}/", flush=True))
    return 0


def _name(run: Path) -> str:
    """What the model is called on its page: the folder as it was typed, without where it is."""
    return run.resolve().name if run.is_absolute() or not run.name else str(run)
