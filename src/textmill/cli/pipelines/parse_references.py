"""``textmill parse-references FILE ...``: the fields of the references of texts and papers."""

import argparse

from textmill.cli.pipelines.pipeline_command import add_command, run_command


def add(parser: argparse.ArgumentParser) -> None:
    """Describes the command."""
    add_command(
        parser,
        "Finds author, title, date and the other fields of references: those that a PDF lists; of "
        "a text file, or of what is piped in, each line is one. Each is written with its fields "
        "marked, as ParsCit does: <author>A. Author.</author> <title>...</title>; or as JSON, with "
        "tokens, tags, fields and where each stands.",
    )


def run(args: argparse.Namespace) -> int:
    """Parses; exit code 1 if something could not be."""
    return run_command(args, "reference-parser")
