"""The weights that are trained, and beside them their moving average, which is what is served."""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn

from textmill.checkpoint.parts import Stateful


class Weights:
    """The weights of a module with their exponential moving average, where one is asked for.

    After step t, ``average = d average + (1 - d) weights``, ``d = min(ema, (t - 1) / (t + 9))``:
    until d reaches ``ema`` the average spans about the last tenth of the run so far (a warm-up as
    TensorFlow's ``num_updates``), and after the first step it is the weights themselves.

    The average is evaluated, saved as the part ``model``, and with that selected, tested and
    served; the weights that the training goes on with are the part ``weights``. Frozen parameters
    and buffers are the module's own in both. Without a decay there is no average.

    Example:
        >>> module = nn.Linear(1, 1, bias=False)
        >>> weights = Weights(module, ema=0.5)
        >>> weights.begin()
        >>> for step, value in enumerate((1.0, 12.0), start=1):
        ...     _ = nn.init.constant_(module.weight, value)
        ...     weights.update(step)
        >>> with weights.averaged():  # d is 1 / 11 after step 2
        ...     round(module.weight.item(), 5)
        11.0
        >>> module.weight.item(), sorted(weights.parts)
        (12.0, ['model', 'weights'])
    """

    def __init__(self, module: nn.Module, *, ema: float | None) -> None:
        self.module, self.ema = module, ema
        self._average: dict[Tensor, Tensor] = {}

    def begin(self) -> None:
        """Begins the average with the weights as they are, where none has been loaded."""
        if self.ema is not None and not self._average:
            trained = [p for p in self.module.parameters() if p.requires_grad]
            self._average = {p: p.detach().clone() for p in trained}

    def update(self, step: int) -> None:
        """Takes the weights after a step, counted from 1, into the average."""
        if self.ema is None:
            return
        decay = min(self.ema, (step - 1) / (step + 9))
        with torch.no_grad():
            torch._foreach_lerp_([*self._average.values()], [*self._average], 1 - decay)

    @contextmanager
    def averaged(self) -> Iterator[None]:
        """Puts the average into the module, and the weights back afterwards, bitwise."""
        own = [parameter.detach().clone() for parameter in self._average]
        self._fill(self._average.values())
        try:
            yield
        finally:
            self._fill(own)

    def finish(self) -> None:
        """Leaves the average in the module for good, where there is one."""
        self._fill(self._average.values())
        self._average = {}

    @property
    def parts(self) -> dict[str, Stateful]:
        """What is saved, by name: ``model``, which is served, and ``weights``, to go on with."""
        if self.ema is None:
            return {"model": self.module}
        return {"model": self, "weights": self.module}

    def state_dict(self) -> dict[str, Any]:
        """The module's state with the average in it."""
        state = self.module.state_dict(keep_vars=True)
        tensors = {key: value for key, value in state.items() if isinstance(value, Tensor)}
        return {**state, **{k: self._average.get(v, v).detach() for k, v in tensors.items()}}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Takes a saved average; what is not averaged is the module's to load."""
        self._average = {
            value: state[key].detach().to(value, copy=True)
            for key, value in self.module.state_dict(keep_vars=True).items()
            if isinstance(value, nn.Parameter) and value.requires_grad
        }

    def _fill(self, values: Iterable[Tensor]) -> None:
        if self._average:
            with torch.no_grad():
                torch._foreach_copy_([*self._average], [*values])
