"""The work of the training benchmarks, as people write it by hand in PyTorch.

An encoder-decoder of the size that all peers train (pre-norm, one embedding for source, target and
output, sinusoidal positions), its loss, its batches and the floating-point operations it needs.
"""

import json
import math
import os
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
from torch import nn
from torch.nn import functional as F

PAD, UNK, BOS, EOS, VOCABULARY = 0, 1, 2, 3, 5000
LARGE = os.environ.get("TEXTMILL_BENCH_SIZE") == "large"
"""Whether the work is one that fills a GPU: Vaswani et al.'s base model, and rows by hundreds."""
DIM, LAYERS, HEADS, FFN = (512, 6, 8, 2048) if LARGE else (128, 4, 4, 512)
DROPOUT, RATE = 0.1, 1e-3
BATCH = 512 if LARGE else 32

Pair = tuple[list[int], list[int]]
Sizes = tuple[int, int, int, int, int]
"""Source and target ids, padded source and target cells, and rows of a batch."""


# -- data


def pairs_of(path: Path) -> list[tuple[str, str]]:
    with path.open(encoding="utf-8") as file:
        rows = (line.rstrip("\n").split("\t") for line in file)
        return [(row[0], row[1]) for row in rows if len(row) > 1 and row[0] and row[1]]


def pieces_of(path: Path, cache: Path) -> Path:
    """The SentencePiece model that all peers encode with, trained once."""
    import sentencepiece

    model = cache / f"pieces-{path.stat().st_size}.model"
    if not model.exists():
        pairs = pairs_of(path)
        chosen = random.Random(0).sample(pairs, min(len(pairs), 30_000))
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=(side for pair in chosen for side in pair),
            model_prefix=str(model)[: -len(".model")],
            vocab_size=VOCABULARY,
            hard_vocab_limit=False,
            pad_id=PAD,
            unk_id=UNK,
            bos_id=BOS,
            eos_id=EOS,
            minloglevel=2,
        )
    return model


def encoded(path: Path, cache: Path) -> list[Pair]:
    """Ids of all pairs, both sides closed by the end mark; kept as JSON for the next process."""
    kept = cache / f"ids-{path.stat().st_size}.json"
    if not kept.exists():
        import sentencepiece

        pieces = sentencepiece.SentencePieceProcessor(model_file=str(pieces_of(path, cache)))
        pairs = pairs_of(path)
        sides = [pieces.encode([pair[side] for pair in pairs], add_eos=True) for side in (0, 1)]
        kept.write_text(json.dumps(list(zip(*sides, strict=True))), encoding="ascii")
    return [(source, target) for source, target in json.loads(kept.read_text(encoding="ascii"))]


def random_batches(pairs: list[Pair], size: int = BATCH) -> Iterator[list[Pair]]:
    """Batches of rows in random order, for ever."""
    order, rng = list(range(len(pairs))), random.Random(0)
    size = min(size, len(order))
    while True:
        rng.shuffle(order)
        for start in range(0, len(order) - size + 1, size):
            yield [pairs[i] for i in order[start : start + size]]


def budget_batches(pairs: list[Pair], cells: int) -> Iterator[list[Pair]]:
    """Batches of like lengths of at most so many padded cells, source and target, for ever."""
    rng = random.Random(0)
    while True:
        rows = sorted(pairs, key=lambda pair: (len(pair[1]), len(pair[0]), rng.random()))
        batches: list[list[Pair]] = []
        batch: list[Pair] = []
        longest = 0
        for row in rows:
            longest = max(longest, len(row[0]))
            if batch and (len(batch) + 1) * (longest + len(row[1])) > cells:
                batches.append(batch)
                batch, longest = [], len(row[0])
            batch.append(row)
        batches.append(batch)
        rng.shuffle(batches)
        yield from batches


def collated(rows: list[Pair]) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Padded sources, inputs of the decoder and labels."""
    pad = nn.utils.rnn.pad_sequence
    source = pad([torch.tensor(s) for s, _ in rows], batch_first=True, padding_value=PAD)
    target = pad([torch.tensor([BOS, *t]) for _, t in rows], batch_first=True, padding_value=PAD)
    return source, target[:, :-1], target[:, 1:]


def sizes(rows: list[Pair]) -> Sizes:
    sources, targets = [len(s) for s, _ in rows], [len(t) for _, t in rows]
    cells = max(sources) * len(rows), max(targets) * len(rows)
    return sum(sources), sum(targets), *cells, len(rows)


def flops(source: int, target: int) -> float:
    """Operations of the matrix products of a training step (attention's own scores left out).

    3 times the forward pass; 2 operations for each weight that meets a token.
    """
    encoder = LAYERS * (
        4 * DIM * DIM + 2 * DIM * FFN + 2 * DIM * DIM
    )  # the last: cross keys, values
    decoder = LAYERS * (6 * DIM * DIM + 2 * DIM * FFN) + DIM * VOCABULARY
    return 3 * 2 * (source * encoder + target * decoder)


def attention_flops(source: int, target: int, rows: int) -> float:
    """Operations of attention's own products in a step, by the mean lengths of its rows.

    12 for each feature, query and key that it sees: 2 products of 2 operations, 3 times. Rows of
    unlike lengths have more, so this is a little low.
    """
    if not rows:
        return 0.0
    pairs = source * source + target * target / 2 + source * target  # a target sees what is before
    return 12 * LAYERS * DIM * pairs / rows


# -- model


class Attention(nn.Module):
    def __init__(self, dim: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.q, self.k, self.v, self.o = (nn.Linear(dim, dim) for _ in range(4))

    def forward(self, x: Any, memory: Any, mask: Any = None, *, causal: bool = False) -> Any:
        def split(y: Any) -> Any:
            return y.unflatten(-1, (self.heads, -1)).transpose(1, 2)

        q, k, v = split(self.q(x)), split(self.k(memory)), split(self.v(memory))
        y = F.scaled_dot_product_attention(q, k, v, mask, is_causal=causal)
        return self.o(y.transpose(1, 2).flatten(2))


class Layer(nn.Module):
    def __init__(self, dim: int, heads: int, ffn: int, *, cross: bool) -> None:
        super().__init__()
        self.attention = Attention(dim, heads)
        self.cross = Attention(dim, heads) if cross else None
        self.norms = nn.ModuleList(nn.LayerNorm(dim) for _ in range(3 if cross else 2))
        self.inner, self.outer = nn.Linear(dim, ffn), nn.Linear(ffn, dim)
        self.drop = nn.Dropout(DROPOUT)

    def forward(self, x: Any, mask: Any, memory: Any = None) -> Any:
        h = self.norms[0](x)
        decodes = self.cross is not None
        own = None if decodes else mask
        x = x + self.drop(self.attention(h, h, own, causal=decodes))
        if self.cross is not None:
            x = x + self.drop(self.cross(self.norms[2](x), memory, mask))
        return x + self.drop(self.outer(F.relu(self.inner(self.norms[1](x)))))


class Bare(nn.Module):
    """The model of the work; smaller ones for the overhead of a loop."""

    def __init__(
        self,
        vocabulary: int = VOCABULARY,
        *,
        dim: int = DIM,
        layers: int = LAYERS,
        heads: int = HEADS,
        ffn: int = FFN,
    ) -> None:
        super().__init__()
        self.embed = nn.Embedding(vocabulary, dim, padding_idx=PAD)
        nn.init.normal_(self.embed.weight, std=dim**-0.5)
        position, feature = torch.arange(512)[:, None], torch.arange(0, dim, 2)[None]
        angle = position / 10000 ** (feature / dim)
        self.register_buffer("table", torch.cat([angle.sin(), angle.cos()], 1), persistent=False)
        self.encoder = nn.ModuleList(Layer(dim, heads, ffn, cross=False) for _ in range(layers))
        self.decoder = nn.ModuleList(Layer(dim, heads, ffn, cross=True) for _ in range(layers))
        self.encoder_norm, self.decoder_norm = nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.drop, self.scale = nn.Dropout(DROPOUT), math.sqrt(dim)

    def front(self, ids: Any) -> Any:
        return self.drop(self.embed(ids) * self.scale + self.table[: ids.shape[1]])

    def encode(self, source: Any) -> tuple[Any, Any]:
        mask = (source != PAD)[:, None, None]
        x = self.front(source)
        for layer in self.encoder:
            x = layer(x, mask)
        return self.encoder_norm(x), mask

    def decode(self, ids: Any, memory: Any, mask: Any) -> Any:
        x = self.front(ids)
        for layer in self.decoder:
            x = layer(x, mask, memory)
        return F.linear(self.decoder_norm(x), self.embed.weight)

    def forward(self, source: Any, ids: Any) -> Any:
        return self.decode(ids, *self.encode(source))


def loss_of(model: nn.Module, source: Any, ids: Any, labels: Any) -> Any:
    scores = model(source, ids).flatten(0, 1)
    return F.cross_entropy(scores, labels.flatten(), ignore_index=PAD)
