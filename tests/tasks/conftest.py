"""A tiny tokenizer, rows, modules and tasks that the tests of this room share."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn

from textmill.models import Transformer
from textmill.tasks import Seq2Seq, Translation
from textmill.text import MultilingualTokenizer, train_sentencepiece

ROWS = [
    {"source": "The cat sleeps.", "target": "Le chat dort."},
    {"source": "A dog runs in the garden.", "target": "Un chien court dans le jardin."},
    {"source": "The cat sleeps.", "target": "Le chat est en train de dormir."},
    {"source": "Go.", "target": "Va !"},
    {"source": "Why are you late?", "target": "Pourquoi êtes-vous en retard ?"},
    {"source": "Go.", "target": "Allez !"},
    {"source": "I do not know where she lives now.", "target": "Je ne sais pas où elle habite."},
    {"source": "Go.", "target": "Vas-y maintenant, mon ami !"},
    {"source": "She lives in the garden.", "target": "Elle habite dans le jardin."},
]
"""Nine rows of six sources; that of three rows is not first in the file."""


class Plain(nn.Module):
    """A user's module that is no Transformer: the target's token and the source's mean."""

    def __init__(self, size: int, dim: int = 8) -> None:
        super().__init__()
        self.tokens = nn.Embedding(size, dim)
        self.out = nn.Linear(dim, size)

    def forward(self, source, source_lengths, target_in):
        real = torch.arange(source.shape[1]) < source_lengths[:, None]
        memory = (self.tokens(source) * real[..., None]).sum(1) / source_lengths[:, None]
        return self.out(self.tokens(target_in) + memory[:, None])


@pytest.fixture(scope="session")
def tokenizer(tmp_path_factory) -> MultilingualTokenizer:
    path = tmp_path_factory.mktemp("spm") / "small.model"
    texts = [text for row in ROWS for text in row.values()]
    train_sentencepiece(texts * 4, path, vocab_size=64)
    return MultilingualTokenizer.from_file(path, source_langs={"eng"}, target_langs={"fra"})


@pytest.fixture
def make_module(tokenizer) -> Callable[..., nn.Module]:
    def make(*, plain: bool = False, seed: int = 0, **settings: Any) -> nn.Module:
        torch.manual_seed(seed)
        if plain:
            return Plain(tokenizer.vocab_info.size)
        sizes = {"dim": 16, "num_heads": 2, "ffn_dim": 32, "dropout": 0.0, "max_length": 64}
        layers = {"num_encoder_layers": 1, "num_decoder_layers": 1}
        return Transformer.Config(**(sizes | layers | settings)).build(tokenizer=tokenizer)

    return make


@pytest.fixture
def make_task(tokenizer, make_module) -> Callable[..., Seq2Seq]:
    def make(
        kind: type[Seq2Seq] = Translation, module: nn.Module | None = None, **settings: Any
    ) -> Seq2Seq:
        module = make_module() if module is None else module
        return kind.Config(**settings).build(module=module, tokenizer=tokenizer)

    return make
