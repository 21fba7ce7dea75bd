"""Magnitude pruning: the units of feed-forward blocks that weigh least become zero, in stages."""

import fnmatch
from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn

from textmill.checkpoint.parts import Stateful
from textmill.config.component import Config
from textmill.config.validators import require
from textmill.errors import UserError
from textmill.models.layers.units import units_of

LAST = 0.5
"""Share of a run's steps by which units are pruned, unless a step is set."""


class Pruning(Config):
    r"""Settings of magnitude pruning, as ``trainer.pruning.sparsity=0.5``.

    Units of a feed-forward block are the features inside of it. At step t those whose weights have
    the least norm become zero, and stay zero, so many that their share is

    .. math::
        s \left(1 - \left(1 - \frac{t - t_0}{t_1 - t_0}\right)^3\right)

    with the ``sparsity`` s, from the step :math:`t_0` (``start``) to the step :math:`t_1` (``end``)
    (Zhu and Gupta 2017). An export leaves them out.
    """

    sparsity: float = 0.0
    """Share of the units of each feed-forward block that become zero; 0 prunes nothing."""
    start: int = 0
    """Step after which pruning begins."""
    end: int | None = None
    """Step after which the share is reached; null is half of the run's steps. No step before it is
    selected as the best."""
    every: int = 20
    """Steps from one pruning to the next."""
    blocks: tuple[str, ...] = ("*",)
    """Names of the blocks, in which ``*`` is any text, as ``["encoder.*"]``."""

    def __post_init__(self) -> None:
        place = "trainer.pruning"
        require(self, place, sizes=["every"], not_negative=["start"], shares=["sparsity"])
        if self.end is not None and self.end <= self.start:
            raise UserError(
                f"{place}.end must be above {place}.start, but is {self.end}, and start is "
                f"{self.start}."
            )

    def last(self, total: int | None) -> int:
        """The step after which the share is reached, in a run of so many steps."""
        if self.end is not None:
            return self.end
        if total is None:
            raise UserError(
                "trainer.pruning.end is half of the run's steps, whose number is not known. Set "
                "it, or trainer.max_steps."
            )
        return max(self.start + 1, int(LAST * total))

    def share(self, step: int, total: int | None) -> float:
        """The share of the units that are zero after a step."""
        passed = (step - self.start) / (self.last(total) - self.start)
        return self.sparsity * (1 - (1 - min(1.0, max(0.0, passed))) ** 3)


class Pruner:
    """Makes units zero after the steps at which they fall due, and all that are pruned after each.

    Which these are is saved as the part ``pruning``.
    """

    def __init__(self, config: Pruning, module: nn.Module) -> None:
        self.config = config
        found = units_of(module).items() if config.sparsity else ()
        matched = [n for n, _ in found if any(fnmatch.fnmatchcase(n, g) for g in config.blocks)]
        self.blocks = {name: units for name, units in found if name in matched}
        self.pruned: dict[str, Tensor] = {}
        """The numbers of the units of each block that are zero."""

    def check(self, total: int | None) -> None:
        """Refuses a run in which nothing could be pruned, or not all."""
        if not self.config.sparsity:
            return
        if not self.blocks:
            raise UserError(
                "trainer.pruning finds no feed-forward block of textmill's layers in the module "
                f"whose name matches {', '.join(self.config.blocks)}. Leave trainer.pruning out."
            )
        trained = (p.requires_grad for units in self.blocks.values() for p, _ in units.parameters)
        if not all(trained):
            raise UserError(
                "trainer.pruning would change weights that optimizer.freeze, or adapters, hold "
                "still. Name other blocks in trainer.pruning.blocks, or train these."
            )
        last = self.config.last(total)
        if total is not None and last > total:
            raise UserError(
                f"trainer.pruning.end is {last}, but the run has {total} steps. Lower it."
            )

    def end(self, total: int | None) -> int:
        """The first step whose weights are pruned as far as they are to be."""
        return self.config.last(total) if self.blocks else 0

    @torch.no_grad()
    def update(self, step: int, total: int | None, average: Mapping[Tensor, Tensor]) -> None:
        """Prunes after a step, if it is due; what is pruned is zero, in the average as well."""
        if not self.blocks:
            return
        start, every, last = self.config.start, self.config.every, self.config.last(total)
        if start <= step <= last and ((step - start) % every == 0 or step == last):
            share = self.config.share(step, total)
            for name, units in self.blocks.items():
                norms = units.norms
                self.pruned[name] = norms.topk(round(share * len(norms)), largest=False).indices
        for name, places in self.pruned.items():
            for parameter, dim in self.blocks[name].parameters:
                for tensor in (parameter, average.get(parameter)):
                    if tensor is not None:
                        tensor.index_fill_(dim, places, 0.0)

    @property
    def parts(self) -> dict[str, Stateful]:
        return {"pruning": self} if self.config.sparsity else {}

    def state_dict(self) -> dict[str, Any]:
        return {"pruned": {name: places.tolist() for name, places in self.pruned.items()}}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        for name, places in state["pruned"].items():
            device = self.blocks[name].reader.weight.device
            self.pruned[name] = torch.tensor(places, dtype=torch.int64, device=device)
