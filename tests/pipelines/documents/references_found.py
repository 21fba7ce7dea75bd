"""How many references of papers made at random are found and split exactly, by layout.

Run it: python -m tests.pipelines.documents.references_found [--seeds 20] [--layouts held_back]
"""

import argparse
import sys
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from tests.pipelines.documents.layouts import HELD_BACK, NEVER_MENDED, WRITTEN_AGAINST
from tests.pipelines.documents.paper_pdf import Layout, Paper, paper
from textmill.pipelines.documents import find_references, read_pdf

LAYOUTS = {"written_against": WRITTEN_AGAINST, "held_back": HELD_BACK, "never_mended": NEVER_MENDED}


@dataclass
class Score:
    """References wanted, found exactly, split right but for hyphens and spaces, and given."""

    wanted: int = 0
    exact: int = 0
    split: int = 0
    given: int = 0

    @property
    def share(self) -> float:
        return 100 * self.exact / max(self.wanted, 1)

    @property
    def split_share(self) -> float:
        return 100 * self.split / max(self.wanted, 1)


def letters(text: str) -> str:
    return "".join(filter(str.isalnum, text))


def add(score: Score, wanted: list[str], given: list[str]) -> list[str]:
    """Counts one paper; what was wanted and not given exactly."""
    score.wanted += len(wanted)
    score.given += len(given)
    score.exact += (Counter(wanted) & Counter(given)).total()
    score.split += (Counter(map(letters, wanted)) & Counter(map(letters, given))).total()
    return list((Counter(wanted) - Counter(given)).elements())


def found(made: Paper) -> list[str]:
    return [passage.text for passage in find_references(read_pdf(made.content))]


def measure(layout: Layout, seeds: Iterable[int], show: int = 0) -> Score:
    score = Score()
    for seed in seeds:
        made = paper(layout, seed)
        given = found(made)
        missed = add(score, made.references, given)
        extra = list((Counter(given) - Counter(made.references)).elements())
        for kind, texts in (("wanted", missed), ("given ", extra)):
            for text in texts[:show]:
                print(f"  {seed} {kind}: {text}")
    return score


def table(layouts: Mapping[str, Layout], seeds: int, show: int = 0) -> None:
    print(f"{'layout':36} {'wanted':>7} {'given':>7} {'exact %':>8} {'split %':>8}")
    for name, layout in layouts.items():
        score = measure(layout, range(seeds), show)
        shares = f"{score.share:8.1f} {score.split_share:8.1f}"
        print(f"{name:36} {score.wanted:7} {score.given:7} {shares}")
        sys.stdout.flush()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--show", type=int, default=0)
    parser.add_argument("--only", default="")
    parser.add_argument("--layouts", choices=LAYOUTS, default="written_against")
    options = parser.parse_args()
    layouts = LAYOUTS[options.layouts]
    chosen = {n: layout for n, layout in layouts.items() if options.only in n}
    table(chosen, options.seeds, options.show)
