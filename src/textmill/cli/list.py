"""Commands about what recipes can name: list and show."""

import argparse
import difflib

from textmill.cli.arguments import add_include, all_registries
from textmill.config.docstrings import first_lines
from textmill.config.help import describe
from textmill.errors import UserError


def add(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "concept", nargs="?", help="optimizers, models, experiments, ...; all when left out"
    )
    add_include(parser)


def run(args: argparse.Namespace) -> int:
    """Prints the names of one concept, each with what it is, or every concept with its names."""
    known = all_registries()
    if args.concept is None:
        width = max(map(len, known))
        for plural, registry in known.items():
            print(f"{plural.ljust(width)}  {', '.join(registry.names()) or '-'}")
        return 0
    by_concept = {registry.concept: registry for registry in known.values()}
    found = known.get(args.concept) or by_concept.get(args.concept)
    if found is None:
        near = difflib.get_close_matches(args.concept, known, n=1)
        guess = f"Did you mean '{near[0]}'? " if near else ""
        raise UserError(f"no concept is called '{args.concept}'. {guess}Known: {', '.join(known)}.")
    lines = first_lines(found)
    width = max(map(len, lines), default=0)
    for name, line in lines.items():
        print(f"{name.ljust(width)}  {line}".rstrip())
    return 0


def add_show(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "name", help="a registered name, as 'textmill list' prints it: adamw, optimizer/adamw"
    )
    add_include(parser)


def run_show(args: argparse.Namespace) -> int:
    print(describe(args.name), end="")
    return 0
