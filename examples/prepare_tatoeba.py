"""Split a downloaded file of sentence pairs into train.tsv and dev.tsv, sharing no sentence.

    python examples/prepare_tatoeba.py fra.txt data/tatoeba

``fra.txt`` comes from https://www.manythings.org/anki/fra-eng.zip: an English sentence, a tab, its
French translation, and after another tab whose they are (CC BY 2.0 FR). One English sentence often
has several translations and one French sentence several sources. Pairs that are connected in this
way stay together, so that no sentence of dev.tsv, in either language, is in train.tsv. The split
depends on nothing but the sentences: the same file gives the same parts on every machine.
"""

import argparse
import hashlib
import sys
from collections.abc import Iterable
from pathlib import Path

Pair = tuple[str, str]


def read_pairs(path: Path) -> list[Pair]:
    """The distinct pairs of the first two columns, in the file's order.

    Args:
        path: Tab-separated UTF-8 text; lines without two columns of text are left out.
    """
    pairs: dict[Pair, None] = {}
    skipped = 0
    with path.open(encoding="utf-8-sig", newline="\n") as file:
        for line in file:
            columns = [column.strip() for column in line.rstrip("\r\n").split("\t")]
            if len(columns) >= 2 and columns[0] and columns[1]:
                pairs[columns[0], columns[1]] = None
            else:
                skipped += 1
    if skipped:
        print(f"{skipped:,} lines without two columns were left out", file=sys.stderr)
    return list(pairs)


def sentence(text: str) -> str:
    """What makes two sentences the same: neither case nor spaces count."""
    return " ".join(text.casefold().split())


def groups(pairs: Iterable[Pair]) -> dict[str, list[Pair]]:
    """Pairs that share a sentence, directly or through others, under one sentence of theirs."""
    parent: dict[str, str] = {}

    def root(name: str) -> str:
        while parent.setdefault(name, name) != name:
            parent[name] = name = parent[parent[name]]
        return name

    named = [
        (f"s {sentence(source)}", f"t {sentence(target)}", (source, target))
        for source, target in pairs
    ]
    for source, target, _ in named:
        first, second = sorted((root(source), root(target)))
        parent[second] = first  # the smaller name leads, whatever the order of the file
    found: dict[str, list[Pair]] = {}
    for source, _, pair in named:
        found.setdefault(root(source), []).append(pair)
    return found


def split(pairs: Iterable[Pair], *, share: float) -> tuple[list[Pair], list[Pair]]:
    """Train and dev pairs.

    Args:
        pairs: All pairs.
        share: The part of the groups that goes to dev, between 0 and 1.
    """
    parts: tuple[list[Pair], list[Pair]] = ([], [])
    for name, members in groups(pairs).items():
        digest = hashlib.sha256(name.encode("utf-8")).digest()
        place = int.from_bytes(digest[:8], "big") / 2**64  # even over groups, the same everywhere
        parts[place < share].extend(members)
    return parts


def main() -> int:
    """Reads, splits and writes."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("pairs", type=Path, help="fra.txt, as unpacked from fra-eng.zip")
    parser.add_argument("folder", type=Path, help="where train.tsv and dev.tsv are written")
    parser.add_argument("--dev", type=float, default=0.03, help="share of dev (default: 0.03)")
    given = parser.parse_args()
    if not 0 < given.dev < 1:
        parser.error(f"--dev is {given.dev:g}; wanted a share between 0 and 1")
    try:
        train, dev = split(read_pairs(given.pairs), share=given.dev)
        given.folder.mkdir(parents=True, exist_ok=True)
        for name, part in (("train.tsv", train), ("dev.tsv", dev)):
            text = "".join(f"{source}\t{target}\n" for source, target in part)
            (given.folder / name).write_text(text, encoding="utf-8", newline="\n")
            print(f"{given.folder / name}: {len(part):,} pairs")
    except (OSError, UnicodeDecodeError) as error:
        parser.error(str(error))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
