"""Measures the kinds of a training step that :mod:`textmill.runtime.machine` chooses from."""

import statistics
import time
from types import SimpleNamespace

import torch
from torch import Tensor

from textmill.errors import UserError
from textmill.models import fast
from textmill.models.fast import Fast
from textmill.models.layers.linear import keeping_copies
from textmill.models.losses import projected_cross_entropy
from textmill.models.transformer import Transformer
from textmill.runtime.devices import processor
from textmill.runtime.machine import Measured, has_bf16, has_onednn
from textmill.runtime.memory import keep_memory

TOKENS = 1024
"""Of a batch, on each side."""
LENGTHS = (9, 25, 90)
"""Of the texts of a batch, in tokens."""
VOCABULARY = 5000
FEATURES = 256
SLOW = 2.0
"""So many times as slow as the fastest in its first repetition, a step is not measured again."""


def measure(repetitions: int = 5) -> Measured:
    """The least of as many repetitions of each kind of step, which take turns.

    A step is the forward and the backward pass of a translator of 2 + 2 layers, with its loss.
    """
    if not has_bf16():
        raise UserError(
            "There is nothing to choose from: oneDNN, torch's library for CPUs, "
            + ("has no bfloat16 on this processor." if has_onednn() else "is not in this torch.")
        )
    keep_memory()
    settings = {
        "fp32_torch": (Fast(linear="torch"), False),
        "fp32_onednn": (Fast(linear="onednn"), False),
        "bf16_but_attention": (Fast(attention="fp32"), True),
        "bf16": (Fast(attention="bf16"), True),
    }
    seconds: dict[str, list[float]] = {name: [] for name in settings}
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(1)
        model = _translator()
        batches = [torch.randint(1, VOCABULARY, (2, TOKENS // n, n)) for n in LENGTHS]
        for _ in range(repetitions + 1):
            for name, (fast_paths, narrow) in settings.items():
                first = [times[0] for times in seconds.values() if times]
                if seconds[name] and seconds[name][0] > SLOW * min(first):
                    continue
                with fast.using(fast_paths):
                    start = time.perf_counter()
                    for source, target in batches:
                        _step(model, source, target, narrow=narrow)
                    seconds[name].append((time.perf_counter() - start) / len(batches))
    # The first repetition prepares what the others use.
    later = {name: times[1:] or times for name, times in seconds.items()}
    spread = max(statistics.median(times) / min(times) for times in later.values())
    least = {name: 1000 * min(times) for name, times in later.items()}
    return Measured(processor(), torch.__version__, torch.get_num_threads(), spread, **least)


def _translator() -> Transformer:
    config = Transformer.Config(
        dim=FEATURES, ffn_dim=4 * FEATURES, num_encoder_layers=2, num_decoder_layers=2
    )
    vocabulary = SimpleNamespace(size=VOCABULARY, pad_idx=0)
    model: Transformer = config.build(tokenizer=SimpleNamespace(vocab_info=vocabulary))
    return model


def _step(model: Transformer, source: Tensor, target: Tensor, *, narrow: bool) -> None:
    with keeping_copies({}):
        with torch.autocast("cpu", torch.bfloat16, enabled=narrow):
            hidden = model.hidden(source, None, target).flatten(0, 1)
            loss = projected_cross_entropy(
                hidden, model.output_weight, model.output_bias, target.flatten()
            )
        loss.total.backward()
    model.zero_grad()
