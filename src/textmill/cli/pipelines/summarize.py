"""``textmill summarize FILE ...``: summaries of texts and papers."""

import argparse

from textmill.cli.pipelines.pipeline_command import add_command, run_command


def add(parser: argparse.ArgumentParser) -> None:
    """Describes the command."""
    add_command(
        parser,
        "Summarizes texts, each on a line: by their own sentences or in words of the model's, as "
        "it was trained. A text file is one text, and so is what is piped in; of a PDF the "
        "abstract is summarized, or where there is none the body. As JSON with the place of each "
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


def run(args: argparse.Namespace) -> int:
    """Summarizes; exit code 1 if something could not be."""
    return run_command(args, "summarizer", part=args.part, sentences=args.sentences)
