"""Arguments that several commands share, and the predictor that some of them name."""

import argparse
import os
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from textmill.errors import UserError
from textmill.runs.registries import all_registries as all_registries  # all that words can name


def check_output(
    option: str, output: Path, sources: Iterable[str] = (), *, overwrite: bool = True
) -> None:
    """Refuses a file that cannot be written, before anything is computed for it."""
    folder = output.parent
    if not folder.is_dir():
        problem = f"there is no folder {folder}. Make it first."
    elif output.is_dir():
        problem = "it is a folder. Name a file in it."
    elif not os.access(folder, os.W_OK):
        problem = f"no file can be made in the folder {folder}. Name another."
    elif output.exists() and any(Path(s).exists() and output.samefile(s) for s in sources):
        problem = "it is a file that is read. Give it another name."
    elif output.exists() and not overwrite:
        problem = "it is there already. Give another name, or let it be replaced: --overwrite."
    else:
        return
    raise UserError(f"{option} {output}: {problem}")


def typed_lines(what: str) -> Iterator[bytes]:
    """Asks for ``what``, and yields the lines that a person types, as bytes, until an empty one."""
    print(f"Type {what}; an empty line, Ctrl-D or Ctrl-C ends.", file=sys.stderr)
    while True:
        try:
            line = input("> ")
        except (EOFError, KeyboardInterrupt):
            print()
            return
        if not line.strip():
            return
        yield line.encode("utf-8", errors="surrogateescape")


def add_recipe(
    parser: argparse.ArgumentParser,
    about: str = "a script, an experiment, a YAML file or a run folder",
) -> None:
    """Adds a recipe, its settings and how to read them."""
    parser.add_argument("recipe", help=about)
    add_words(parser)
    parser.add_argument(
        "--config",
        action="append",
        default=[],
        metavar="FILE",
        help="a YAML file of settings; several may follow, the later ones win",
    )
    add_device_and_code(parser)


def recipe_options(args: argparse.Namespace) -> dict[str, Any]:
    """How a recipe is read, from arguments of :func:`add_recipe`."""
    return {"configs": args.config, "allow_code": args.allow_code, "device": args.device}


def option_words(args: argparse.Namespace) -> list[str]:
    """Options of :func:`add_recipe` or :func:`add_device_and_code` as they are typed."""
    words = [] if args.device == "auto" else ["--device", args.device]
    words += [part for config in getattr(args, "config", ()) for part in ("--config", config)]
    words += [part for module in args.include for part in ("--include", module)]
    return words + ["--allow-code"] * args.allow_code + ["--debug"] * args.debug


def add_words(parser: argparse.ArgumentParser, about: str = "settings") -> None:
    # With its default a list is optional, and argparse does not ask for it.
    parser.add_argument("words", nargs="*", default=[], metavar="name.setting=value", help=about)


def add_run(
    parser: argparse.ArgumentParser,
    about: str = "the folder of a run, as textmill train prints it",
    *,
    nargs: str | None = None,
) -> None:
    """Adds a run folder and the checkpoint to use; ``nargs`` is argparse's."""
    parser.add_argument("run", nargs=nargs, help=about)
    parser.add_argument(
        "--checkpoint",
        default="best",
        metavar="NAME",
        help="best (the default), last, or a name such as step-00001000",
    )
    add_device_and_code(parser)


def run_options(args: argparse.Namespace) -> dict[str, Any]:
    """How a run is loaded, from arguments of :func:`add_run` and :func:`add_precision`."""
    names = ("checkpoint", "device", "allow_code", "precision")
    return {name: getattr(args, name) for name in names if hasattr(args, name)}


def add_precision(parser: argparse.ArgumentParser) -> None:
    """Adds the type of the numbers in matrix products."""
    parser.add_argument(
        "--precision",
        choices=["fp32", "bf16"],
        default="fp32",
        help="what a run multiplies in: fp32 (the default), or bf16, faster for many rows where "
        "the processor has it; textmill evaluate says what it costs",
    )


def load_predictor(args: argparse.Namespace, *, itself: bool = False) -> Any:
    """Loads what answers for the run or the export that arguments of :func:`add_run` name."""
    from textmill.runs.answering import load_answering

    return load_answering(Path(args.run), **run_options(args), itself=itself)


def add_include(parser: argparse.ArgumentParser) -> None:
    """Adds modules that register more names."""
    parser.add_argument(
        "--include",
        action="append",
        default=[],
        metavar="MODULE",
        help="import a module of yours first, for what it registers; several may follow",
    )


def add_device(parser: argparse.ArgumentParser) -> None:
    about = "auto (the default), cpu, cuda, cuda:1, mps"
    parser.add_argument("--device", default="auto", help=about)


def add_device_and_code(parser: argparse.ArgumentParser) -> None:
    """Adds the device, modules to import, and whether a folder's code may be executed."""
    add_device(parser)
    add_code(parser)


def add_code(parser: argparse.ArgumentParser) -> None:
    """Adds modules to import, and whether a folder's code may be executed."""
    add_include(parser)
    parser.add_argument(
        "--allow-code",
        action="store_true",
        help="execute code that a run folder brings; only for folders you trust",
    )
