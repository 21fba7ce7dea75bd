"""The command line: imports only the chosen command; errors become exit codes and one clear text.

A command is a line below, and in its module ``add_NAME(parser)`` and ``run_NAME(args) -> int``, or
``add`` and ``run`` for all commands of the module.
"""

import argparse
import contextlib
import difflib
import importlib
import io
import os
import sys
from collections.abc import Sequence
from types import ModuleType
from typing import Any

from typing_extensions import override

COMMANDS: dict[str, tuple[str, str]] = {
    "help": ("textmill.cli.recipes", "show a recipe's ingredients and settings"),
    "new": (
        "textmill.cli.recipes",
        "write a recipe for a file of rows, or one in Python to begin with",
    ),
    "check": (
        "textmill.cli.recipes",
        "check a recipe, its data and one real batch before training",
    ),
    "test": ("textmill.cli.recipes", "build one ingredient of a recipe and show it"),
    "prepare": ("textmill.cli.recipes", "read and tokenize a recipe's data once, before training"),
    "train": ("textmill.cli.train", "train a recipe, or go on training it"),
    "fit": ("textmill.cli.recipes", "from a file of rows to the best of some models, in one step"),
    "grid": ("textmill.cli.grid", "train a recipe with each combination of values, in one table"),
    "evaluate": ("textmill.cli.trained", "measure a trained run"),
    "calibrate": (
        "textmill.cli.trained",
        "turn a run's scores into probabilities, and choose thresholds",
    ),
    "watch": ("textmill.cli.grid", "measure each new checkpoint of runs, as it appears"),
    "predict": ("textmill.cli.predict", "answer rows with a trained run (also: inference)"),
    "parse-references": (
        "textmill.cli.pipelines",
        "find the fields of the references of papers, by a model at hand",
    ),
    "summarize": (
        "textmill.cli.pipelines",
        "summarize papers and texts, by a model at hand",
    ),
    "find-datasets": (
        "textmill.cli.pipelines",
        "find the data sets that papers mention, by a model at hand",
    ),
    "identify-language": (
        "textmill.cli.pipelines",
        "name the languages of texts, by a model at hand",
    ),
    "ensemble": ("textmill.cli.trained", "join finished runs into one that answers by their mean"),
    "embed": ("textmill.cli.embed", "write the vectors of texts, by a run or a pretrained encoder"),
    "export": (
        "textmill.cli.trained",
        "write a trained run as a folder that answers without torch",
    ),
    "serve": ("textmill.cli.serve", "answer over HTTP, and on a page to try the model"),
    "demo": (
        "textmill.cli.recipes",
        "train and try a translator on a generated corpus, in minutes",
    ),
    "model-card": ("textmill.cli.sharing", "write what a run is and how good as a README.md"),
    "push": ("textmill.cli.sharing", "bring a model to a Hugging Face hub, a folder, s3://..."),
    "pull": ("textmill.cli.sharing", "bring a model that was pushed into a folder here"),
    "runs": ("textmill.cli.runs", "list, verify, compare and prune runs"),
    "bench": ("textmill.cli.bench", "measure which way to compute is the fastest on this machine"),
    "list": (
        "textmill.cli.list",
        "list what recipes can name: experiments, optimizers, models, ...",
    ),
    "show": (
        "textmill.cli.list",
        "show one component: what it is, its settings, types and defaults",
    ),
}
"""The module of each command and its line of help; only the chosen command is imported."""

ALIASES = {"inference": "predict"}
NEAR = 0.8
"""Similarity from which an option is suggested; ``--epochs`` and ``--nproc`` have 0.67."""

EPILOG = """\
A recipe is a script (tatoeba.py), an experiment (translation/tatoeba) or a YAML file that names
one. Settings follow it as name.setting=value; 'textmill help RECIPE' shows them.
"""


def main(argv: Sequence[str] | None = None) -> int:
    """Runs one command and returns its exit code: 0, 1 a failed run, 2 the user's mistake."""
    if argv is None:
        _speak_utf8()
        # OpenMP's threads sleep while they wait for each other: read when torch is first imported.
        # Where another program is at work, spinning makes a training 3 to 50 times as slow.
        os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    words = list(sys.argv[1:] if argv is None else argv)
    debug = "--debug" in words
    words = [word for word in words if word != "--debug"]
    try:
        code, name = 0, _command(words)
        module = importlib.import_module(COMMANDS[name][0]) if name in COMMANDS else None
        args = _parser(name, module).parse_args(words)
        if module is not None:
            args.debug = debug  # it may stand anywhere: the parser has it only for the help
            from textmill.errors import typed_command

            with typed_command(), contextlib.ExitStack() as stack:
                if names := getattr(args, "include", []):
                    from textmill.config.sources.include import including

                    stack.enter_context(including(names))
                code = int(_function(module, "run", str(name))(args))
        if sys.stdout is not None:  # it is closed: textmill list >&-
            sys.stdout.flush()  # fails here if the reader has left, not while Python shuts down
        return code
    except SystemExit as error:  # argparse has printed why
        return error.code if isinstance(error.code, int) else 1
    except KeyboardInterrupt:
        print(file=sys.stderr)  # the prompt of the shell starts on a line of its own
        return 130
    except BrokenPipeError:  # the reader of a pipe has left: textmill list | head
        _forget_stdout()
        return 1
    except Exception as error:
        if debug:
            raise
        from textmill.errors import missing_training_extra

        asked = " ".join(["textmill", words[0], *(w for w in words[1:2] if not w.startswith("-"))])
        return report(missing_training_extra(error, asked) or error)


def report(error: Exception) -> int:
    """Prints an error without a traceback; returns the exit code.

    Of textmill's own errors it prints the message, of any other one paragraph.
    """
    from textmill.errors import OtherRankError, TextmillError, raised_at
    from textmill.runtime.logging import printable

    if isinstance(error, OtherRankError):
        return error.exit_code  # the rank that had the error first prints it
    notes = [f"  {note}" for note in getattr(error, "__notes__", [])]
    if isinstance(error, TextmillError):
        lines = [f"error: {error}", *notes]
    elif isinstance(error, OSError) and isinstance(error.filename, str | bytes):
        # About a file or folder of the person's own.
        lines = [f"error: {os.fsdecode(error.filename):.300}: {error.strerror}.", *notes]
    else:
        lines = [f"error: {type(error).__name__}: {error}".rstrip(": "), *notes]
        if place := raised_at(error):
            lines.append(f"  raised at {place}")
        blame = (
            "an error in the recipe" if notes else "a bug in textmill, or an error in the recipe"
        )
        lines.append(f"  This is {blame}; --debug shows the traceback.")
    print(printable("\n".join(lines)), file=sys.stderr)
    return error.exit_code if isinstance(error, TextmillError) else 1


def _speak_utf8() -> None:
    """Reads and writes UTF-8 whatever LANG says; what UTF-8 cannot hold is escaped."""
    for stream, errors in (
        (sys.stdin, "surrogateescape"),
        (sys.stdout, "backslashreplace"),
        (sys.stderr, "backslashreplace"),
    ):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(encoding="utf-8", errors=errors)


def _forget_stdout() -> None:
    """Drops what is not flushed yet, of which Python would complain at its exit."""
    with contextlib.suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _function(module: ModuleType, verb: str, command: str) -> Any:
    """The function of a module for one of its commands, or for all of them."""
    return getattr(module, f"{verb}_{command.replace('-', '_')}", None) or getattr(module, verb)


def _command(words: list[str]) -> str | None:
    """The command, aliases replaced; 'textmill' and 'textmill help' show the help."""
    if not words or words == ["help"]:
        words[:] = ["--help"]
    elif len(words) == 2 and words[0] == "help" and ALIASES.get(words[1], words[1]) in COMMANDS:
        words[:] = [words[1], "--help"]  # textmill help train
    for index, word in enumerate(words):
        if not word.startswith("-"):
            words[index] = ALIASES.get(word, word)
            return words[index]
    return None


def _parser(name: str | None, module: ModuleType | None) -> argparse.ArgumentParser:
    parser = _Parser(
        prog="textmill",
        description="Train, evaluate and use text models from one typed recipe.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("--version", action=_Version, help="show the version and exit")
    parser.add_argument("--debug", action="store_true", help="show the traceback of an error")
    if name is not None and module is None:
        near = difflib.get_close_matches(name, [*COMMANDS, *ALIASES], n=1)
        guess = f"did you mean '{near[0]}'? " if near else ""
        from textmill.config.foreign_names import COMMANDS as THERE

        if name in THERE:
            guess = f"in textmill it is {THERE[name]}; "
        parser.error(f"no command is called '{name}'; {guess}commands: {', '.join(COMMANDS)}")
    subparsers = parser.add_subparsers(
        title="commands", metavar="COMMAND", parser_class=_CommandParser
    )
    for command, (_, line) in COMMANDS.items():
        of_command = subparsers.add_parser(command, help=line)
        if command == name and module is not None:
            _function(module, "add", command)(of_command)
    return parser


class _Parser(argparse.ArgumentParser):
    """Raises if the help cannot be written; argparse itself ignores that."""

    @override
    def _print_message(self, message: str, file: Any = None) -> None:
        if message and file is not None:
            file.write(message)
            file.flush()


class _CommandParser(_Parser):
    """Takes options and settings in any order: ``textmill test tatoeba.py -f module dim=64``."""

    _mixing = False

    @override
    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        if self._mixing or self._subparsers is not None:
            return super().parse_known_args(args, namespace)
        self._mixing = True  # the next call comes from inside this method
        try:
            found, unknown = self.parse_known_intermixed_args(args, namespace)
        finally:
            self._mixing = False
        if unknown:
            self.error(self._about(unknown[0], list(args)))
        return found, unknown

    def _about(self, word: str, args: list[str]) -> str:
        """What is wrong with a word that the command does not take."""
        if not word.startswith("-"):
            return f"one word too many: '{word}'"
        from textmill.config.foreign_names import option_here

        option, _, value = word.partition("=")
        after = args[args.index(word) + 1 :][:1]
        value = value or next((v for v in after if not v.startswith("-") and "=" not in v), "")
        options = [name for action in self._actions for name in action.option_strings]
        takes_settings = any(action.dest == "words" for action in self._actions)
        if takes_settings and (here := option_here(option, value)):
            return f"no option '{word}'. {here.strip()}"
        near = difflib.get_close_matches(option.replace("_", "-"), options, n=1, cutoff=NEAR)
        if near:
            return f"no option '{word}'; did you mean '{near[0]}'?"
        text = f"no option '{word}'; it has {', '.join(options)}"
        if takes_settings:
            text += ". A setting is a word without dashes, after the others: name.setting=value"
        return text


class _Version(argparse.Action):
    """Prints the installed version, which is looked up only then."""

    def __init__(self, option_strings: Sequence[str], dest: str, help: str | None = None) -> None:
        super().__init__(option_strings, dest, nargs=0, help=help)

    @override
    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> None:
        from importlib.metadata import version

        print(f"textmill {version('textmill')}", flush=True)  # a full disk raises here
        parser.exit(0)
