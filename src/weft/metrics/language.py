"""Metrics of language models."""

import math
from collections.abc import Mapping
from typing import final

from typing_extensions import override

from weft.metrics.metric import Direction
from weft.metrics.streaming import SumCount

__all__ = ["BitsPerByte"]


@final
class BitsPerByte(SumCount):
    r"""Bits that a model needs for a byte of text; lower is better. Empty: NaN.

    Of negative log-likelihoods in nats, over bytes of UTF-8:
    :math:`\sum \ell / (\ln 2 \cdot \text{bytes})`. Unlike a perplexity it compares models of
    other vocabularies, as long as no token is unknown.

    Example:
        >>> metric = BitsPerByte()
        >>> metric.update(16 * math.log(2), 8)
        >>> metric.compute()
        {'bits_per_byte': 2.0}
    """

    @override
    def compute(self) -> dict[str, float]:
        return {"bits_per_byte": self.quotient() / math.log(2)}

    @override
    def directions(self) -> Mapping[str, Direction]:
        return {"bits_per_byte": "lower"}
