"""Layers of long short-term memory, one over the other, from the state of the tokens before."""

from collections.abc import Iterable

import torch
from torch import Tensor, nn

from textmill.models.layers.dropout import Dropout


def lstm_layers(
    dim: int, hidden_dim: int, num_layers: int, *, bidirectional: bool = False
) -> nn.ModuleList:
    """Layers that read vectors of ``dim`` features from left to right, or from both ends.

    A module each: torch's own dropout between layers draws masks that no recipe can speed up.
    """
    sizes = [dim] + [hidden_dim * (1 + bidirectional)] * (num_layers - 1)
    same: dict[str, bool] = {"batch_first": True, "bidirectional": bidirectional}
    return nn.ModuleList([nn.LSTM(size, hidden_dim, **same) for size in sizes])


def run_layers(
    layers: Iterable[nn.Module], x: Tensor, carried: Tensor | None, dropout: Dropout
) -> tuple[Tensor, Tensor]:
    """Runs :math:`L` layers, each with dropout behind it, over tokens, :math:`(B,T,D)`.

    What is carried is the state after the tokens before, :math:`(2,L,B,H)`; None: there are none.

    Returns:
        The last layer's output, :math:`(B,T,H)`, and the state after the last token.

    Example:
        >>> layers, x = lstm_layers(3, 4, 2), torch.randn(1, 5, 3)
        >>> whole, _ = run_layers(layers, x, None, Dropout(0.0))
        >>> _, carried = run_layers(layers, x[:, :2], None, Dropout(0.0))
        >>> rest, _ = run_layers(layers, x[:, 2:], carried, Dropout(0.0))
        >>> carried.shape, torch.allclose(rest, whole[:, 2:], atol=1e-6)
        (torch.Size([2, 2, 1, 4]), True)
    """
    after = []
    for number, layer in enumerate(layers):
        before = None
        if carried is not None:
            before = (carried[0, number : number + 1], carried[1, number : number + 1])
        x, last = layer(x, before)
        x = dropout(x)
        after.append(torch.cat(last))
    return x, torch.stack(after, dim=1)
