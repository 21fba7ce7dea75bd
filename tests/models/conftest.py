"""Small models and inputs for the tests of this room."""

from types import SimpleNamespace

import pytest
import torch

from textmill.models.transformer import Transformer


@pytest.fixture(autouse=True)
def _seeded_and_on_one_thread():
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    torch.manual_seed(0)
    yield
    torch.set_num_threads(threads)


@pytest.fixture
def build():
    """Builds a small model in evaluation mode: ``build(size=50, pad_idx=0, **settings)``."""

    def build(*, size=50, pad_idx=0, **settings):
        tokenizer = SimpleNamespace(vocab_info=SimpleNamespace(size=size, pad_idx=pad_idx))
        small = {"dim": 16, "num_heads": 2, "ffn_dim": 32, "max_length": 64}
        layers = {"num_encoder_layers": 2, "num_decoder_layers": 2}
        config = Transformer.Config(**{**small, **layers, **settings})
        return config.build(tokenizer=tokenizer).eval()

    return build
