"""Poolings: from the vectors of a text's tokens to one vector of the text."""

from abc import abstractmethod
from typing import Any, ClassVar, Literal, Self

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from typing_extensions import override

from textmill.config.component import Component
from textmill.config.component import Config as BaseConfig
from textmill.config.validators import require
from textmill.errors import UserError
from textmill.models import registries
from textmill.models.layers.dropout import Dropout


class VectorModule(Component, nn.Module):
    """Base of modules over vectors of ``dim`` features, made from a config."""

    config: Any
    out_dim: int
    """Features of a vector, as it comes out; as many as come in, unless ``__init__`` sets it."""
    num_dims: ClassVar[int]
    """Dimensions of what comes out: 2 of a vector for each text, 3 of one for each token."""

    @override
    def __new__(cls, config: BaseConfig | None = None, *, dim: int = 0, **given: Any) -> Self:
        made = super().__new__(cls)
        made.config, made.out_dim = config, dim
        return made

    def __init__(self, config: BaseConfig | None = None, *, dim: int = 0) -> None:
        nn.Module.__init__(self)

    @override
    def __call__(self, *args: Tensor) -> Tensor:
        """Calls ``forward``, and refuses a result of another shape than it says."""
        out: Any = super().__call__(*args)
        shape = tuple(out.shape) if isinstance(out, Tensor) else ()
        if len(shape) != self.num_dims or shape[-1] != self.out_dim:
            found = f"{shape}" if isinstance(out, Tensor) else f"a {type(out).__name__}"
            rows = "rows" if self.num_dims == 2 else "rows, tokens"
            raise UserError(
                f"{type(self).__qualname__}.forward gives {found}; wanted a tensor of ({rows}, "
                f"{self.out_dim}), as its out_dim is {self.out_dim}. Give that, or set "
                "self.out_dim in its __init__."
            )
        checked: Tensor = out
        return checked


class Pooling(VectorModule):
    """Base of poolings; padding has no part in them."""

    class Config(BaseConfig):
        """Settings of a pooling."""

    num_dims = 2

    @abstractmethod
    @override
    def forward(self, states: Tensor, real: Tensor) -> Tensor:
        """Makes one vector, :math:`(B,H)`, of those of a text's tokens, :math:`(B,T,H)`.

        ``real`` is True at tokens that are no padding, one a row at least, :math:`(B,T)`.
        """


@registries.poolings.register("max")
class MaxPooling(Pooling):
    """The largest value of each feature (Collobert et al. 2011; Kim 2014)."""

    @override
    def forward(self, states: Tensor, real: Tensor) -> Tensor:
        return states.masked_fill(~real[..., None], -torch.inf).amax(dim=1)


@registries.poolings.register("mean")
class MeanPooling(Pooling):
    """The mean of each feature."""

    @override
    def forward(self, states: Tensor, real: Tensor) -> Tensor:
        total = states.masked_fill(~real[..., None], 0.0).sum(dim=1)
        return total / real.sum(dim=1, keepdim=True)


@registries.poolings.register("first")
class FirstPooling(Pooling):
    """The vector of the first token, the mark ``[CLS]`` of BERT (Devlin et al. 2019)."""

    @override
    def forward(self, states: Tensor, real: Tensor) -> Tensor:
        return states[:, 0]


@registries.poolings.register("pooler")
class Pooler(Pooling):
    r"""The vector of the first token, which BERT and its kin have a mark for, through a layer.

    .. math::
        v = \mathrm{tanh}(W h_1 + b)

    A fresh run takes the layer's weights from a pretrained encoder that has them.

    Source: Devlin et al. 2019, "BERT: Pre-training of Deep Bidirectional Transformers".
    """

    class Config(Pooling.Config):
        activation: Literal["tanh", "gelu"] = "tanh"
        """What follows it: the hyperbolic tangent for BERT and RoBERTa, gelu for ELECTRA."""

    def __init__(self, config: Config, *, dim: int) -> None:
        super().__init__(config, dim=dim)
        self.dense = nn.Linear(dim, dim)

    @override
    def forward(self, states: Tensor, real: Tensor) -> Tensor:
        found = self.dense(states[:, 0])
        return found.tanh() if self.config.activation == "tanh" else F.gelu(found)


@registries.poolings.register("attention")
class AttentionPooling(Pooling):
    r"""A weighted mean whose weights the text's own vectors give (Lin et al. 2017, one head).

    .. math::
        a = \mathrm{softmax}(w_2 \tanh(W_1 h)), \quad v = \sum_t a_t h_t
    """

    class Config(Pooling.Config):
        attention_dim: int = 64
        """Features of the layer that weighs."""
        dropout: float = 0.0
        """Probability of dropping a feature before it is weighed, in training."""

        def __post_init__(self) -> None:
            require(self, sizes=["attention_dim"], shares=["dropout"])

    def __init__(self, config: Config, *, dim: int) -> None:
        super().__init__(config, dim=dim)
        self.dropout = Dropout(config.dropout)
        self.hidden = nn.Linear(dim, config.attention_dim, bias=False)
        self.score = nn.Linear(config.attention_dim, 1, bias=False)

    @override
    def forward(self, states: Tensor, real: Tensor) -> Tensor:
        scores = self.score(torch.tanh(self.hidden(self.dropout(states))))
        weights = scores.masked_fill(~real[..., None], -torch.inf).softmax(dim=1)
        out: Tensor = (weights * states.masked_fill(~real[..., None], 0.0)).sum(dim=1)
        return out
