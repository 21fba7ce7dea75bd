"""``weft demo``: a translator from nothing in a few minutes."""

import argparse
from pathlib import Path

from weft.cli.arguments import add_words
from weft.runtime.logging import log_to_stderr

__all__ = ["add", "run"]


def add(parser: argparse.ArgumentParser) -> None:
    """Describes the command."""
    parser.description = (
        "Trains English to French on the built-in corpus, compares it with two "
        "baselines on held-out sentences, and translates five new ones. Nothing is downloaded."
    )
    add_words(parser)
    parser.add_argument("--run-dir", metavar="DIR", help="the run folder (default: runs/…/KEY)")
    parser.add_argument("--again", action="store_true", help="train anew although the run exists")


def run(args: argparse.Namespace) -> int:
    """Runs the demonstration."""
    log_to_stderr()
    from weft.runs.demo import demo

    demo(args.words, run_dir=Path(args.run_dir) if args.run_dir else None, again=args.again)
    return 0
