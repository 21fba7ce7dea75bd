"""Sampling: tokens drawn by their probability."""

import dataclasses

import torch
from torch import Tensor

from weft.models.decoding.draws import source_keys, uniforms
from weft.models.decoding.filters import Filter
from weft.models.decoding.hypothesis import Generator, Hypothesis
from weft.models.decoding.request import Request
from weft.models.decoding.single import grow

__all__ = ["sample"]


@torch.inference_mode()
def sample(model: Generator, request: Request) -> list[list[Hypothesis]]:
    """Draws ``n_best`` targets for each source, see :class:`Filter` and :func:`uniforms`.

    The draws of a source depend on the seed and its ids alone, not on the batch it is in.

    Args:
        model: The model, in evaluation mode.
        request: What is asked; the settings of beams do not matter.

    Returns:
        For each row ``n_best`` hypotheses, the best score first; the same one may come twice.
    """
    decoding, draws = request.decoding, request.decoding.n_best
    chosen_from = Filter(decoding.temperature, decoding.top_k, decoding.top_p)
    begun = request.begin(model)
    keys = source_keys(request.source, request.source_lengths, seed=decoding.seed)
    # Draws are rows of their own, that each ends and is dropped when it will.
    rows = torch.arange(len(keys), device=keys.device).repeat_interleave(draws)
    number = torch.arange(draws, device=keys.device).repeat(len(keys))
    begun.state.select(rows)
    begun = dataclasses.replace(
        begun,
        logits=begun.logits[rows],
        limits=begun.limits[rows],
        scores=begun.scores.repeated(rows),
    )

    def choose(scores: Tensor, kept: Tensor, length: int) -> Tensor:
        numbers = uniforms(keys[rows[kept]], number[kept] * 2**32 + length)
        return chosen_from.draw(scores, numbers)

    found = grow(model, request, begun, choose)
    groups = (found[i : i + draws] for i in range(0, len(found), draws))
    return [sorted(group, key=lambda h: h.score, reverse=True) for group in groups]
