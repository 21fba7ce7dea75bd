"""Greedy search: the likeliest token, again and again."""

import torch
from torch import Tensor

from weft.models.decoding.best import argmax
from weft.models.decoding.hypothesis import Generator, Hypothesis
from weft.models.decoding.request import Request
from weft.models.decoding.single import grow

__all__ = ["greedy"]


@torch.inference_mode()
def greedy(model: Generator, request: Request) -> list[list[Hypothesis]]:
    """Takes the likeliest next token until it is the end mark.

    Args:
        model: The model, in evaluation mode.
        request: What is asked; the settings of beams and draws do not matter.

    Returns:
        One hypothesis a row, in a list, in the order of the sources.
    """
    found = grow(model, request, request.begin(model), _likeliest)
    return [[hypothesis] for hypothesis in found]


def _likeliest(scores: Tensor, rows: Tensor, length: int) -> Tensor:
    return argmax(scores)
