"""Muon for the matrices of the layers, AdamW for all else, as one optimizer."""

from collections.abc import Callable
from typing import Any, ClassVar, overload

import torch
from torch import nn
from typing_extensions import override

from textmill.errors import UserError
from textmill.training import registries
from textmill.training.layer_rates import hidden_matrices
from textmill.training.optimizers.optimizer import AlgorithmConfig, Optimizer, without_compiler


class MuonAndAdamW(torch.optim.Optimizer):
    """Two optimizers over the groups and the state of one; ``by`` says whose a group is."""

    def __init__(
        self, groups: list[dict[str, Any]], *, muon: dict[str, Any], adamw: dict[str, Any]
    ) -> None:
        own = {by: [group for group in groups if group["by"] == by] for by in ("muon", "adamw")}
        # Each fills the settings of its groups in; the groups stay the same objects throughout.
        self._parts: dict[str, torch.optim.Optimizer] = {}
        if own["muon"]:
            self._parts["muon"] = without_compiler(torch.optim.Muon)(own["muon"], **muon)
        if own["adamw"]:
            self._parts["adamw"] = without_compiler(torch.optim.AdamW)(own["adamw"], **adamw)
        super().__init__(groups, {})

    @overload
    def step(self, closure: None = None) -> None: ...

    @overload
    def step(self, closure: Callable[[], float]) -> float: ...

    @torch.no_grad()
    @override
    def step(self, closure: Callable[[], float] | None = None) -> float | None:
        """Takes one step with each, after the closure if one computes the gradients anew."""
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        for by, part in self._parts.items():
            part.param_groups = [group for group in self.param_groups if group["by"] == by]
            part.state = self.state
            part.step()
        return loss


@registries.optimizers.register("muon")
class Muon(Optimizer):
    """Muon (Jordan et al. 2024) for the layers' matrices, AdamW for embeddings, output and vectors.

    The averaged gradient of a matrix is made orthogonal, so that all its directions move alike, by
    five Newton-Schulz steps in bfloat16 (fast where the processor multiplies in that format). The
    step is scaled by ``0.2 sqrt(max(rows, columns))`` as Liu et al. 2025, so that rate and decay of
    an AdamW that works are good for it. Matrices are those inside the module's layers
    (``nn.ModuleList``), where it has none all but embeddings. Each is taken as it is kept:
    attention keeps its queries, keys and values stacked in one matrix (``qkv``, ``kv``), which is
    made orthogonal as one, not each of them by itself.

    Example:
        >>> module = nn.Sequential(nn.Embedding(5, 2), nn.Linear(2, 2))
        >>> optimizer = Muon.Config().build(module=module)
        >>> [(group["by"], len(group["params"])) for group in optimizer.param_groups]
        [('muon', 1), ('adamw', 2)]
    """

    class Config(AlgorithmConfig):
        """Settings of Muon and of the AdamW beside it."""

        momentum: float = 0.95
        """Decay of the gradient's average of Muon's matrices."""
        nesterov: bool = True
        """Whether the gradient at hand counts once more."""
        betas: tuple[float, float] = (0.9, 0.98)
        """AdamW's, for all but the layers' matrices."""
        eps: float = 1e-9
        """AdamW's, for all but the layers' matrices."""
        weight_decay: float = 0.0
        """Decoupled decay of matrices a step, as a share of the rate."""

        limits: ClassVar = {
            "shares": ["momentum", "betas"],
            "positive": ["eps"],
            "not_negative": ["weight_decay"],
        }

        @override
        def make(self, groups: list[dict[str, Any]], module: nn.Module) -> torch.optim.Optimizer:
            """One optimizer over both; refuses a module without a matrix for Muon."""
            hidden = hidden_matrices(module)
            split: list[dict[str, Any]] = []
            for group in groups:
                for by in ("muon", "adamw"):
                    own = [p for p in group["params"] if (p in hidden) == (by == "muon")]
                    split += [{**group, "params": own, "by": by}] if own else []
            if not any(group["by"] == "muon" for group in split):
                raise UserError(
                    f"optimizer.type=muon finds no matrix to train in the layers of "
                    f"{type(module).__name__}; optimizer.type=adamw trains all else."
                )
            both = self.arguments()
            adamw = {name: both.pop(name) for name in ("betas", "eps")}
            shared = {name: both[name] for name in ("lr", "weight_decay")}
            return without_compiler(MuonAndAdamW)(
                split,
                muon={**both, "adjust_lr_fn": "match_rms_adamw"},
                adamw={**shared, **adamw, "fused": True},
            )
