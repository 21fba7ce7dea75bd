"""The places of a batch that are no padding, told without a wait for the device."""

import torch
from torch import Tensor


def real_places(real: Tensor, count: int) -> Tensor:
    """What :func:`at_places` takes for a mask of which the host knows how many are true.

    On a CPU that is the mask. Elsewhere an index by a mask would wait until the device has found
    their number, in the forward pass and once more in the backward pass.

    Args:
        real: True at what is taken. *Shape:* :math:`(B,T)`.
        count: How many are true, :math:`N`.

    Returns:
        The mask; or the numbers of its places in the order of reading. *Shape:* :math:`(N)`.

    Example:
        >>> real_places(torch.tensor([[True, False], [True, True]]), 3).tolist()
        [[True, False], [True, True]]
    """
    if real.device.type == "cpu":
        return real
    return real.flatten().to(torch.uint8).argsort(descending=True, stable=True)[:count]


def at_places(x: Tensor, places: Tensor) -> Tensor:
    """What stands at the places. *Shape:* :math:`(B,T,*)` to :math:`(N,*)`.

    Example:
        >>> at_places(torch.tensor([[5, 0], [6, 7]]), torch.tensor([0, 2, 3])).tolist()
        [5, 6, 7]
    """
    return x[places] if places.dtype == torch.bool else x.flatten(0, 1).index_select(0, places)
