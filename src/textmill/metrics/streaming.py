"""Metrics fed with sums and counts: a mean, a perplexity, an accuracy, bits per byte.

Sums are exact. What is given may be a tensor on any device, which is not waited for: scalars are
kept where they are and read together when a value is asked for (or when 1,024 of them have
gathered). They are added as fractions, since every finite float is one: neither the order of the
batches nor their split over ranks can change a bit, which no floating-point accumulator can promise
(and float64 does not exist on some accelerators).
"""

import math
import re
from collections.abc import Mapping, Sequence
from fractions import Fraction

import torch
from torch import Tensor
from typing_extensions import override

from textmill.metrics.metric import Count, Direction, Metric, MetricError, share_error

_FRACTION = re.compile(r"-?\d+(/\d+)?")
_MOST_PENDING = 1024  # 0-d tensors that wait; 512 bytes each on CUDA, so at most 0.5 MB


class ExactSum:
    """A sum of floats without rounding; scalars on a device are read late and together."""

    def __init__(self) -> None:
        self._exact = Fraction(0)
        self._special = 0.0  # 0.0, or the infinity or NaN that finite terms cannot change
        self._pending: list[Tensor] = []

    def add(self, value: Tensor | float) -> None:
        """Adds a number or a tensor of one element; it may be changed in place afterwards."""
        if not isinstance(value, Tensor):
            self.add_all([float(value)])
            return
        if value.numel() != 1:
            raise MetricError(
                f"A sum or a count must be a number or a tensor of one element, "
                f"but has the shape {list(value.shape)}. Sum it first."
            )
        self._pending.append(value.detach().clone().reshape(()))
        if len(self._pending) >= _MOST_PENDING:
            self._settle()

    def add_all(self, values: Sequence[Count | float]) -> None:
        """Adds many numbers: in a fifth of the time of one after the other."""
        self._special += sum(float(value) for value in values if not math.isfinite(value))
        ratios = [value.as_integer_ratio() for value in values if math.isfinite(value)]
        # A float's denominator is a power of 2: the largest is one that all share.
        shared = max((denominator for _, denominator in ratios), default=1)
        total = sum(number * (shared // denominator) for number, denominator in ratios)
        self._exact += Fraction(total, shared)

    def exact(self) -> Fraction | float:
        """The sum: a fraction, or the infinity or NaN that some term was."""
        self._settle()
        return self._special or self._exact  # NaN counts as true

    def state(self) -> str:
        """The sum as text that is read back exactly."""
        return str(self.exact())

    def add_state(self, state: str) -> None:
        if state in ("inf", "-inf", "nan"):
            self._special += float(state)
        elif not _FRACTION.fullmatch(state):  # of 1e999999999 all digits would be written out
            raise ValueError(f"{state!r:.40} is not the text of a sum")
        else:
            self._exact += Fraction(state)

    def _settle(self) -> None:
        pending, self._pending = self._pending, []
        while pending:
            # One transfer for all scalars of a device and dtype: each alone would wait for the
            # device once.
            first = pending[0]
            same = [p for p in pending if p.device == first.device and p.dtype == first.dtype]
            pending = [p for p in pending if p.device != first.device or p.dtype != first.dtype]
            self.add_all([float(value) for value in torch.stack(same).tolist()])


def _times(weight: Count, value: float) -> Count | float:
    return value if weight == 1 or not math.isfinite(value) else weight * Fraction(value)


class SumCount(Metric):
    """Base of metrics that are one value, which follows from one sum and one count. Empty: NaN."""

    def __init__(self, name: str, *, better: Direction = "lower") -> None:
        self.name, self.better = name, better
        self._total, self._count = ExactSum(), ExactSum()

    @override
    def update(self, total: Tensor | float, count: Tensor | float) -> None:
        """Adds a batch's sum and count: numbers, or tensors of one element on any device."""
        for kept, value in ((self._total, total), (self._count, count)):
            if self.weight == 1:
                kept.add(value)  # a tensor is not waited for
            else:
                kept.add_all([_times(self.weight, float(value))])

    @property
    def count(self) -> float:
        return float(self._count.exact())

    def quotient(self) -> float:
        """Sum by count, rounded once; NaN without a count, an infinity beyond the largest float."""
        total, count = self._total.exact(), self._count.exact()
        if not count:
            return math.nan
        if isinstance(total, float) or isinstance(count, float):
            return rounded(total) / rounded(count)
        return rounded(total / count)

    def value(self) -> float:
        return self.quotient()

    @override
    def compute(self) -> dict[str, float]:
        return {self.name: self.value()}

    @override
    def directions(self) -> Mapping[str, Direction]:
        return {self.name: self.better}


def rounded(value: Fraction | float) -> float:
    """The nearest float; an infinity beyond the largest."""
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf


class Mean(SumCount):
    """The mean of something that comes as sums with counts, such as a loss."""

    def add(self, terms: Sequence[float]) -> None:
        """Adds one number, the exact sum of ``terms``, as often as the weight says."""
        self._total.add_all([_times(self.weight, term) for term in terms])
        self._count.add_all([self.weight])


class Perplexity(SumCount):
    """``exp(total / count)`` of negative log-likelihoods in nats; lower is better.

    Too large for a float (over ``exp(709.78)``): infinity.
    """

    def __init__(self, name: str = "perplexity") -> None:
        super().__init__(name, better="lower")

    @override
    def value(self) -> float:
        try:
            return math.exp(self.quotient())
        except OverflowError:
            return math.inf


class Accuracy(SumCount):
    """The share that is right, from 0 to 1, of numbers right and in all; higher is better."""

    def __init__(self, name: str = "accuracy") -> None:
        super().__init__(name, better="higher")

    @override
    def errors(self) -> dict[str, float]:
        return {self.name: share_error(self.value(), self.count)}


class Averaged(Metric):
    """Base of metrics that are means of one number a row, by their names; without a row: NaN."""

    def __init__(self, directions: Mapping[str, Direction]) -> None:
        self._directions = dict(directions)
        self._means = {name: Mean(name) for name in directions}

    def add(self, name: str, *terms: float) -> None:
        """Adds the number of one row, the exact sum of ``terms``, to the mean ``name``."""
        self._means[name].weight = self.weight
        self._means[name].add(terms)

    @override
    def compute(self) -> dict[str, float]:
        return {name: mean.quotient() for name, mean in self._means.items()}

    def share_errors(self, *names: str) -> dict[str, float]:
        """The standard errors of means whose rows are right or wrong, 1 or 0."""
        return {n: share_error(self._means[n].quotient(), self._means[n].count) for n in names}

    @override
    def directions(self) -> Mapping[str, Direction]:
        return dict(self._directions)


class BitsPerByte(SumCount):
    r"""Bits that a model needs for a byte of text; lower is better.

    Of negative log-likelihoods in nats, over bytes of UTF-8:
    :math:`\sum \ell / (\ln 2 \cdot \text{bytes})`. Unlike a perplexity it compares models of
    other vocabularies, as long as no token is unknown.
    """

    def __init__(self) -> None:
        super().__init__("bits_per_byte", better="lower")

    @override
    def value(self) -> float:
        return self.quotient() / math.log(2)
