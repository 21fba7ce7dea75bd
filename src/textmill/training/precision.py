"""Types of the numbers in a training step, and the factor on the loss of a run in fp16."""

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from typing import Any, Literal

import torch
from torch import Tensor

from textmill.checkpoint.parts import Stateful
from textmill.models.layers.linear import keeping_copies
from textmill.models.layers.precision import Numbers, autocast
from textmill.runtime import machine
from textmill.tasks.task import Loss

Precision = Literal["auto", "fp32", "bf16", "fp16"]

AMPERE = (8, 0)
"""Capability from which CUDA devices multiply in bfloat16; on older ones torch emulates it."""


def settled(
    precision: Precision, device: str | torch.device, *, recorded: Numbers | None = None
) -> Numbers:
    """What a run computes with: what is set; of ``auto`` what it began with, else the best one.

    Another setting than a run began with is another run: it is in the key.
    """
    if precision != "auto":
        return precision
    place = torch.device(device)
    if recorded is None and place.type == "cpu":
        return machine.present().precision
    has_it = place.type == "cuda" and torch.cuda.get_device_capability(place) >= AMPERE
    return recorded or ("bf16" if has_it else "fp32")


class Arithmetic:
    """How the numbers of a step are computed; what is kept is float32.

    On a CPU, a pass in bf16 makes one copy of each matrix of weights; without ``keeps_copies``,
    each product makes its own.
    """

    def __init__(
        self, numbers: Numbers, device: str | torch.device, *, keeps_copies: bool = True
    ) -> None:
        self.numbers, self.scale = numbers, LossScale(numbers)
        self.autocast = autocast(numbers, device)
        self._copies: dict[Tensor, Tensor] | None = {} if keeps_copies else None

    def begin(self) -> None:
        """Called before each pass over the batches of a step: the weights are those of the pass."""
        self.end()

    def end(self) -> None:
        """Called after a pass."""
        if self._copies:
            self._copies.clear()

    def differentiate(
        self, compute: Callable[[], Loss], sending: AbstractContextManager[None]
    ) -> Loss:
        """The loss that ``compute`` gives, whose gradient is added to that of the parameters.

        ``sending`` is open during the backward pass.
        """
        with keeping_copies(self._copies):
            with self.autocast:
                loss = compute()
            with sending:
                self.scale.of(loss.total).backward()
        return loss


START = 2.0**7
"""torch's GradScaler begins with 2 ** 16 for means. Losses here are sums, whose gradients are
larger by the number of targets, some hundreds to thousands: about 2 ** 9."""
LEAST, MOST = 2.0**-16, 2.0**24
"""At the least a gradient of a billion targets does not overflow: then it is not finite for another
reason."""
GROWS_AFTER = 2_000
"""Steps in a row without an overflow after which it doubles, as torch's GradScaler."""


class LossScale:
    """A power of 2 that a loss is multiplied by, and its gradients are divided by again.

    Numbers of fp16 lie between 6e-8 and 65,504 (Micikevicius et al. 2018, section 3.2). A step
    whose gradients overflow is left out and halves the factor; it doubles after ``GROWS_AFTER``
    good ones. So does torch's ``GradScaler``; this one says when an overflow cannot be the reason,
    and is saved with the run. In other precisions the factor is 1 and stays.
    """

    def __init__(self, precision: Numbers) -> None:
        self.used = precision == "fp16"
        self.now = START if self.used else 1.0
        self.good, self.unreported = 0, 0

    def of(self, total: Tensor) -> Tensor:
        return total * self.now if self.used else total

    def overflowed(self) -> bool:
        """Takes note of gradients that are not finite, of a loss that is.

        Returns whether a lower factor is to be tried; False where it has its least value.
        """
        if not self.used or self.now <= LEAST:
            return False
        self.now, self.good, self.unreported = self.now / 2, 0, self.unreported + 1
        return True

    def fine(self) -> None:
        if not self.used:
            return
        self.good += 1
        if self.good >= GROWS_AFTER:
            self.now, self.good = min(MOST, self.now * 2), 0

    def pop(self) -> dict[str, float]:
        """The factor, and the steps that overflowed since the last report, if any."""
        count, self.unreported = self.unreported, 0
        values = {"loss_scale": self.now} if self.used else {}
        return {**values, "overflowed_steps": float(count)} if count else values

    @property
    def parts(self) -> dict[str, Stateful]:
        return {"loss_scale": self} if self.used else {}

    def state_dict(self) -> dict[str, Any]:
        return {"now": self.now, "good": self.good, "unreported": self.unreported}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        self.now = float(state["now"])
        self.good, self.unreported = int(state["good"]), int(state["unreported"])
