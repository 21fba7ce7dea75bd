"""Measures a training step by each way that :mod:`textmill.models.machine` chooses from."""

import statistics
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from types import SimpleNamespace

import torch

from textmill.models import fast
from textmill.models.fast import Fast
from textmill.models.layers.linear import keeping_copies
from textmill.models.losses import projected_cross_entropy
from textmill.models.machine import Measured, processor
from textmill.models.transformer import Transformer

TOKENS = 1024
"""Of a batch, on each side."""
LENGTHS = (7, 10, 15, 22, 33)
"""Of the texts of a batch, in tokens: no two have the same number of rows."""
VOCABULARY = 5000
FEATURES = 256


def measure(repetitions: int = 5) -> Measured:
    """Medians of as many repetitions of each way, which take turns.

    A step is the forward and the backward pass of a translator of 2 + 2 layers, with its loss.
    """
    narrow = torch.bfloat16
    ways: dict[str, tuple[Fast, Callable[[], AbstractContextManager[None]]]] = {
        "torch_products": (Fast(linear="torch"), nullcontext),
        "onednn_products": (Fast(linear="onednn"), nullcontext),
        "fp32_attention": (Fast(attention="fp32"), lambda: torch.autocast("cpu", narrow)),
        "bf16_attention": (Fast(attention="bf16"), lambda: torch.autocast("cpu", narrow)),
    }
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(1)
        vocabulary = SimpleNamespace(size=VOCABULARY, pad_idx=0)
        config = Transformer.Config(
            dim=FEATURES, ffn_dim=4 * FEATURES, num_encoder_layers=2, num_decoder_layers=2
        )
        model: Transformer = config.build(tokenizer=SimpleNamespace(vocab_info=vocabulary))
        batches = [
            tuple(torch.randint(1, VOCABULARY, (TOKENS // n, n)) for _ in range(2)) for n in LENGTHS
        ]
        seconds: dict[str, list[float]] = {name: [] for name in ways}
        for _ in range(repetitions + 1):
            for name, (paths, types) in ways.items():
                with fast.using(paths):
                    start = time.perf_counter()
                    for source, target in batches:
                        _step(model, source, target, types)
                    seconds[name].append((time.perf_counter() - start) / len(batches))
    # The first repetition prepares what the others use.
    found = {name: 1000 * statistics.median(times[1:]) for name, times in seconds.items()}
    return Measured(processor(), torch.__version__, torch.get_num_threads(), **found)


def _step(
    model: Transformer,
    source: torch.Tensor,
    target: torch.Tensor,
    types: Callable[[], AbstractContextManager[None]],
) -> None:
    with keeping_copies({}):
        with types():
            hidden = model.hidden(source, None, target).flatten(0, 1)
            loss = projected_cross_entropy(
                hidden, model.output_weight, model.output_bias, target.flatten()
            )
        loss.total.backward()
    model.zero_grad()
