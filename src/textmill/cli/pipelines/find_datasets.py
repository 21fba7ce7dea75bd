"""``textmill find-datasets FILE ...``: the data sets that texts and papers mention."""

import argparse

from textmill.cli.pipelines.pipeline_command import add_command, run_command


def add(parser: argparse.ArgumentParser) -> None:
    """Describes the command."""
    add_command(
        parser,
        "Finds the names of data sets in texts, a line for each mention, of a PDF with its page. A "
        "text file is one text, and so is what is piped in; of a PDF abstract and body are read. "
        "As JSON with the place of each mention in its text.",
    )


def run(args: argparse.Namespace) -> int:
    """Finds mentions; exit code 1 if something could not be read."""
    return run_command(args, "dataset-mentions")
