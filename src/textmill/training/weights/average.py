"""Averages of the weights: a moving one, or an equal one of the end of a run."""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn

from textmill.checkpoint.parts import Stateful
from textmill.training.progress import Every, Progress


class Weights:
    """The weights of a module with their average, where one is asked for.

    With ``ema`` it is a moving one. After step t, ``average = d average + (1 - d) weights``,
    ``d = min(ema, (t - 1) / (t + 9))``: until d reaches ``ema`` the average spans about the last
    tenth of the run so far (a warm-up as TensorFlow's ``num_updates``), and after the first step it
    is the weights themselves.

    With ``swa_start`` it is the mean of the weights at each ``swa_every`` from then on (stochastic
    weight averaging, Izmailov et al. 2018). Until the first there is no average.

    The average is evaluated, saved as the part ``model``, and with that selected, tested and
    served; the weights that the training goes on with are the part ``weights``. Frozen parameters
    and buffers are the module's own in both.
    """

    def __init__(
        self,
        module: nn.Module,
        *,
        ema: float | None = None,
        swa_start: Every | None = None,
        swa_every: Every | None = None,
    ) -> None:
        self.module, self.ema = module, ema
        self.swa_start, self.swa_every = swa_start, swa_every
        self.taken = 0
        """Of how many weights ``swa_start``'s average is the mean."""
        self._average: dict[Tensor, Tensor] = {}

    def begin(self) -> None:
        """Begins the average with the weights as they are, where none has been loaded."""
        if self._is_averaged and not self._average:
            trained = [p for p in self.module.parameters() if p.requires_grad]
            self._average = {p: p.detach().clone() for p in trained}

    def update(self, before: Progress, now: Progress) -> None:
        """Takes the weights after a step, with the progress on both sides, into the average."""
        share = self._share(before, now)
        if share is not None:
            with torch.no_grad():
                torch._foreach_lerp_([*self._average.values()], [*self._average], share)

    def _share(self, before: Progress, now: Progress) -> float | None:
        """The share of the weights after a step in the average; None if they are left out."""
        if self.ema is not None:
            return 1 - min(self.ema, (now.steps - 1) / (now.steps + 9))
        if self.swa_start is None or self.swa_every is None or not self.swa_start.times(now):
            return None
        if not self.swa_every.due(before, now):
            return None
        self.taken += 1
        return 1 / self.taken

    @property
    def average(self) -> Mapping[Tensor, Tensor]:
        """What is served in place of each parameter; empty as long as that is the weights."""
        return {} if self.ema is None and not self.taken else self._average

    @contextmanager
    def averaged(self) -> Iterator[None]:
        """Puts the average into the module, and the weights back afterwards, bitwise."""
        own = [parameter.detach().clone() for parameter in self.average]
        self._fill(self.average.values())
        try:
            yield
        finally:
            self._fill(own)

    def finish(self) -> None:
        """Leaves the average in the module for good, where there is one."""
        self._fill(self.average.values())
        self._average = {}

    @property
    def _is_averaged(self) -> bool:
        return self.ema is not None or self.swa_start is not None

    @property
    def parts(self) -> dict[str, Stateful]:
        if not self._is_averaged:
            return {"model": self.module}
        parts: dict[str, Stateful] = {"model": self, "weights": self.module}
        return parts if self.swa_start is None else {**parts, "average": _Taken(self)}

    def state_dict(self) -> dict[str, Any]:
        state = self.module.state_dict(keep_vars=True)
        tensors = {key: value for key, value in state.items() if isinstance(value, Tensor)}
        return {**state, **{k: self.average.get(v, v).detach() for k, v in tensors.items()}}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        self._average = {
            value: state[key].detach().to(value, copy=True)
            for key, value in self.module.state_dict(keep_vars=True).items()
            if isinstance(value, nn.Parameter) and value.requires_grad
        }

    def _fill(self, values: Iterable[Tensor]) -> None:
        if self.average:
            with torch.no_grad():
                torch._foreach_copy_([*self.average], [*values])


class _Taken:
    """How many weights an equal average is of, as a part of a checkpoint."""

    def __init__(self, weights: Weights) -> None:
        self.weights = weights

    def state_dict(self) -> dict[str, int]:
        return {"taken": self.weights.taken}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        self.weights.taken = int(state["taken"])
