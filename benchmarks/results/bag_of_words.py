"""fastText's classifier (Joulin et al. 2017): the mean of the vectors of words and of pairs."""

from collections.abc import Sequence
from itertools import chain, pairwise

import torch
from torch import nn

DIM, EPOCHS, RATE, ROWS = 100, 25, 0.5, 8
"""Those of its tutorial for small sets: ``-dim 100 -epoch 25 -lr 0.5 -wordNgrams 2``; a step of
its own is one row, here the sum of eight."""


class Bag:
    """Which ids texts have; 0 stands for a text of which nothing is known."""

    def __init__(self, texts: Sequence[str]) -> None:
        self.known: dict[str, int] = {}
        for text in texts:
            for token in tokens(text):
                self.known.setdefault(token, 1 + len(self.known))

    def ids(self, texts: Sequence[str]) -> list[list[int]]:
        return [[self.known[t] for t in tokens(text) if t in self.known] or [0] for text in texts]


def tokens(text: str) -> Sequence[str]:
    words = text.lower().split()
    return [*words, *map(" ".join, pairwise(words))]


def answers(
    train: Sequence[str], labels: Sequence[str], dev: Sequence[str], *, seed: int
) -> list[str]:
    """Trains, and gives the labels of other texts."""
    torch.manual_seed(seed)
    bag, names = Bag(train), sorted(set(labels))
    rows, targets = bag.ids(train), torch.tensor([names.index(label) for label in labels])
    vectors = nn.EmbeddingBag(1 + len(bag.known), DIM, mode="mean", sparse=True)
    nn.init.uniform_(vectors.weight, -1 / DIM, 1 / DIM)
    scores = nn.Linear(DIM, len(names), bias=False)
    nn.init.zeros_(scores.weight)
    optimizer = torch.optim.SGD([*vectors.parameters(), *scores.parameters()], lr=RATE)
    steps = EPOCHS * -(-len(rows) // ROWS)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: 1 - step / steps)
    for _ in range(EPOCHS):
        for some in torch.randperm(len(rows)).split(ROWS):
            loss = nn.functional.cross_entropy(
                scores(vectors(*flat([rows[i] for i in some.tolist()]))),
                targets[some],
                reduction="sum",
            )
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            schedule.step()
    with torch.inference_mode():
        best = scores(vectors(*flat(bag.ids(dev)))).argmax(dim=1)
    return [names[i] for i in best.tolist()]


def flat(rows: Sequence[Sequence[int]]) -> tuple[torch.Tensor, torch.Tensor]:
    """All ids, and where each row begins."""
    starts = torch.tensor([0, *map(len, rows[:-1])]).cumsum(0)
    return torch.tensor([*chain.from_iterable(rows)]), starts
