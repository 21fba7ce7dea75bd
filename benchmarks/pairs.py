"""The pairs that benchmarks work on."""

import argparse
import os
import sys
from pathlib import Path


def generated(folder: Path) -> tuple[Path, Path]:
    """Pairs of textmill's own corpus, where no others are."""
    from textmill.recipes.corpus.data import CorpusPairs

    paths = []
    for name, part in (("train.tsv", "train"), ("dev.tsv", "valid")):
        rows = CorpusPairs.Config(part=part).build().rows()
        text = "".join(f"{row['source']}\t{row['target']}\n" for row in rows)
        (folder / name).write_text(text, encoding="utf-8")
        paths.append(folder / name)
    return paths[0], paths[1]


def find(args: argparse.Namespace, cache: Path) -> None:
    """``args.pairs`` and ``args.dev``: as named, else TEXTMILL_TEST_DATA's, else generated."""
    folder = args.data
    if folder is None:
        shared = os.environ.get("TEXTMILL_TEST_DATA")
        places = [Path("data/tatoeba"), *([Path(shared, "tatoeba-en-fr")] if shared else [])]
        folder = next((place for place in places if (place / "train.tsv").is_file()), None)
    if folder is None:
        print("No data/tatoeba here (README.md says how to get it): generated pairs.")
        args.pairs, args.dev = generated(cache)
        return
    args.pairs, args.dev = folder / "train.tsv", folder / "dev.tsv"
    if not args.pairs.is_file():
        sys.exit(f"--data {folder}: there is no train.tsv in it.")
    print(f"Pairs of {args.pairs}")
