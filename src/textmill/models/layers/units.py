"""Units of feed-forward blocks: how much each weighs, and a module without those that are zero."""

import copy
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import torch
from torch import Tensor, nn


@dataclass(frozen=True, eq=False)
class Units:
    """The features inside a feed-forward block, each made by a row and read by a column."""

    makers: Sequence[nn.Linear]
    """The layers that have a row of weights for each."""
    reader: nn.Linear
    """The layer that has a column of weights for each."""

    @property
    def norms(self) -> Tensor:
        """The norm of each unit's weights, without biases. *Shape:* :math:`(F)`."""
        rows = [maker.weight for maker in self.makers]
        found: Tensor = torch.cat([*rows, self.reader.weight.t()], dim=1).detach().norm(dim=1)
        return found

    @property
    def used(self) -> Tensor:
        """Which units something reads. *Shape:* :math:`(F)`."""
        return (self.reader.weight != 0).any(dim=0)

    @property
    def parameters(self) -> Iterator[tuple[Tensor, int]]:
        """What the units are made of, each with its dimension of units."""
        for maker in self.makers:
            yield maker.weight, 0
            if maker.bias is not None:
                yield maker.bias, 0
        yield self.reader.weight, 1

    def keep(self, places: Tensor) -> None:
        """Leaves the units at these places alone."""
        with torch.no_grad():
            for parameter, dim in self.parameters:
                parameter.data = parameter.index_select(dim, places)
        for maker in self.makers:
            maker.out_features = len(places)
        self.reader.in_features = len(places)


@runtime_checkable
class HasUnits(Protocol):
    """A feed-forward block."""

    def units(self) -> Units:
        """Its units."""


def units_of(module: nn.Module) -> Mapping[str, Units]:
    """The units of a module's feed-forward blocks, by the block's name."""
    parts = module.named_modules()
    return {name: part.units() for name, part in parts if isinstance(part, HasUnits)}


def without_unused(module: nn.Module) -> nn.Module:
    """The module; if nothing reads some of its units, a copy without these that computes the same.

    Each block keeps one unit at least.
    """
    if all(bool(units.used.all()) for units in units_of(module).values()):
        return module
    made = copy.deepcopy(module)
    for units in units_of(made).values():
        used = units.used
        used[0] |= not used.any()
        units.keep(used.nonzero().flatten())
    return made
