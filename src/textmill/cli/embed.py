"""``textmill embed RUN [FILE]``: vectors of texts, by a run, an export or a pretrained encoder."""

import argparse
from pathlib import Path
from typing import Any

from textmill.checkpoint.layout import CHECKPOINTS
from textmill.cli import predict
from textmill.cli.arguments import add_device_and_code, add_precision, load_predictor
from textmill.errors import UserError
from textmill.exported.manifest import MANIFEST
from textmill.runtime.pretrained import POOLINGS


def add(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "Writes the vectors of texts in their order, as JSON lines or to a file: of a run whose "
        "model has an encoder, of an export of one that was trained to embed, or with --model of a "
        "pretrained encoder as it is. Rows are read as textmill predict reads them. A text that "
        "cannot be read has a row with its error, in .npy one of NaN; the exit code is then 1."
    )
    parser.add_argument(
        "run", nargs="?", help="the folder of a run or of an export; left out with --model"
    )
    parser.add_argument(
        "--model",
        metavar="NAME",
        help="a pretrained encoder instead: a folder as sentence-transformers or transformers "
        "write it, or a name on the Hugging Face hub",
    )
    parser.add_argument(
        "--revision", metavar="NAME", help="with --model, a branch, a tag or a commit of the hub"
    )
    parser.add_argument(
        "--pooling",
        choices=sorted(POOLINGS.values()),
        help="with --model, how tokens' vectors become one, in place of what its folder says",
    )
    parser.add_argument(
        "--normalize",
        action=argparse.BooleanOptionalAction,
        help="with --model, whether vectors are divided by their length, in place of the same",
    )
    parser.add_argument(
        "--checkpoint",
        metavar="NAME",
        help="of a run, best (the default), last, or a name such as step-00001000",
    )
    add_precision(parser)
    add_device_and_code(parser)
    predict.add_rows(parser)
    parser.add_argument(
        "--output",
        type=Path,
        metavar="FILE",
        help="write to a file, which is there when it is whole: .npy has the vectors alone, "
        ".parquet, .jsonl and .csv all columns of the rows, too",
    )
    parser.set_defaults(vectors=True, json=True, excel=False)


def run(args: argparse.Namespace) -> int:
    """Embeds; exit code 1 if a text could not be read."""
    _check_words(args)
    args.checkpoint = args.checkpoint or "best"
    if args.model is not None:  # the words that were taken for a run's are a file's
        given = [args.run, args.file if args.file != "-" else None, *args.words]
        file, *args.words = [word for word in given if word is not None] or ["-"]
        args.run, args.file = args.model, file
        if wrong := [word for word in args.words if "=" not in word]:
            raise UserError(f"One word too many: '{wrong[0]}'. With --model no run is named.")
    elif args.run is None:
        raise UserError("Name the folder of a run or of an export, or a model with --model NAME.")
    elif _is_pretrained(Path(args.run)):
        raise UserError(
            f"{args.run} is a pretrained model, no run: textmill embed --model {args.run}"
        )
    return predict.run(args, _embedder)


def _is_pretrained(folder: Path) -> bool:
    """Whether a folder has a pretrained model, and neither a run nor an export."""
    others = (CHECKPOINTS, MANIFEST, "run.json")
    return (folder / "config.json").is_file() and not any((folder / n).exists() for n in others)


def _check_words(args: argparse.Namespace) -> None:
    if args.model is not None:
        wrong = ["checkpoint"]
        advice = "only a run has such; leave it out, or name a run in place of --model"
    else:
        wrong = ["revision", "pooling", "normalize"]
        advice = "only a model that --model names takes it"
    for name in wrong:
        if getattr(args, name) is not None:
            raise UserError(f"--{name}: {advice}.")


def _embedder(args: argparse.Namespace) -> Any:
    if args.model is None:
        return load_predictor(args, itself=True).embedder()
    from textmill.inference.load_encoder import load_encoder

    names = ("revision", "pooling", "normalize", "device")
    encoder = load_encoder(args.model, **{name: getattr(args, name) for name in names})
    return encoder.in_precision(args.precision)
