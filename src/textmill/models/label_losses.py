"""Losses of labels, as components: sums over the rows of a batch, with their count."""

import math
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from typing_extensions import override

from textmill.config.component import Component, setting
from textmill.config.component import Config as BaseConfig
from textmill.config.validators import require
from textmill.errors import UserError
from textmill.models import registries
from textmill.models.losses import cross_entropy


class LabelLoss(Component, nn.Module):
    """Base of losses between the scores of labels and the labels that are right."""

    class Config(BaseConfig):
        weights: Mapping[str, float] = setting(factory=dict)
        """How much a label counts, by its name, as ``{"spam": 2}``; 1 where it is not named."""

    config: Any

    def __init__(self, config: Config, *, names: Sequence[str], multiple: bool) -> None:
        nn.Module.__init__(self)
        self.config, self.multiple = config, multiple
        unknown = [name for name in config.weights if name not in names]
        if unknown:
            listed = ", ".join(map(repr, names[:12]))
            raise UserError(f"task.loss.weights names {unknown[0]!r}; the labels are {listed}.")
        bad = [name for name, weight in config.weights.items() if not 0 <= weight < float("inf")]
        if bad:
            raise UserError(
                f"task.loss.weights of {bad[0]!r} must be 0 or more, "
                f"but is {config.weights[bad[0]]}."
            )
        if not any(config.weights.get(name, 1.0) for name in names):
            raise UserError(
                "task.loss.weights are 0 for every label: no row would count. Give one of them a "
                "weight above 0."
            )
        weights = torch.tensor([float(config.weights.get(name, 1.0)) for name in names])
        self.register_buffer("weights", weights, persistent=False)
        self.weights: Tensor

    @override
    def forward(
        self, scores: Tensor, targets: Tensor, rows: Tensor | None = None
    ) -> tuple[Tensor, Tensor]:
        """The differentiable sum of the loss, and what it is divided by.

        That are rows, each counted by the weight of its label, where a row has one label.
        ``scores`` are unnormalized, :math:`(B,L)`; ``targets`` the label of each row, int64
        :math:`(B)`, or, of several, 1 at those that are right, float :math:`(B,L)`. A row counts as
        often as ``rows`` says, :math:`(B)`; None: once.
        """
        weights = self.weights.to(scores.device)
        losses = self.each(scores.float(), targets)
        count = scores.new_tensor(len(scores)) if rows is None else rows.sum()
        if self.multiple:
            own = weights if rows is None else weights * rows[:, None]
            return (losses * own).sum() / losses.shape[1], count
        own = weights[targets] if rows is None else weights[targets] * rows
        return (losses * own).sum(), own.sum()

    @abstractmethod
    def each(self, scores: Tensor, targets: Tensor) -> Tensor:
        """The loss of each row :math:`(B)`, or of each label of each row :math:`(B,L)`."""

    @abstractmethod
    def probabilities(self, scores: Tensor) -> Tensor:
        """What answers show of scores. *Shape:* :math:`(B,L)` to :math:`(B,L)`, from 0 to 1.

        Of several labels each has its own.
        """

    @property
    def is_independent(self) -> bool:
        """Whether each label has a probability of its own (a sigmoid); else they sum to 1."""
        return self.multiple

    def log_probabilities(self, scores: Tensor) -> Tensor:
        """The logs of :meth:`probabilities`, with all digits. *Shape:* :math:`(..., L)`."""
        scores = scores.float()
        return F.logsigmoid(scores) if self.is_independent else scores.log_softmax(dim=-1)

    def scores_of(self, logs: Tensor) -> Tensor:
        """Scores that have these :meth:`log_probabilities`. *Shape:* :math:`(..., L)`."""
        if not self.is_independent:
            return logs
        return logs - (-logs.clamp(max=-LEAST_DOUBT).expm1()).log()

    def divergence(self, scores: Tensor, teacher: Tensor, temperature: float) -> Tensor:
        r"""How far the probabilities of each row are from a teacher's, both at a temperature.

        That is :math:`T^2 \, \mathrm{KL}(p \| q)`, with the probabilities :math:`p` of the scores
        ``teacher / T`` and :math:`q` of ``scores / T``; of independent labels the mean over them.
        The factor keeps the size of the gradient (Hinton et al. 2015, "Distilling the Knowledge in
        a Neural Network", section 2). *Shape:* :math:`(N,L)` twice, to :math:`(N)`.
        """
        told, given = teacher.float() / temperature, scores.float() / temperature
        apart = _relative_entropy(self.log_probabilities(told), self.log_probabilities(given))
        if self.is_independent:  # a label is there, or it is not
            apart = apart + _relative_entropy(F.logsigmoid(-told), F.logsigmoid(-given))
        rows = apart.mean(dim=-1) if self.is_independent else apart.sum(dim=-1)
        return temperature**2 * rows


@registries.losses.register("cross_entropy")
class CrossEntropyLoss(LabelLoss):
    """Cross entropy of one label a row, with label smoothing."""

    class Config(LabelLoss.Config):
        label_smoothing: float = 0.0
        """Share of the target's probability spread over all labels (Szegedy et al. 2016)."""

        def __post_init__(self) -> None:
            require(self, "task.loss", shares=["label_smoothing"])

    def __init__(self, config: Config, *, names: Sequence[str], multiple: bool) -> None:
        if multiple:
            raise UserError(
                "task.loss.type=cross_entropy is for one label a row, but labels.multiple is true. "
                "Use binary_cross_entropy."
            )
        super().__init__(config, names=names, multiple=multiple)

    @override
    def forward(
        self, scores: Tensor, targets: Tensor, rows: Tensor | None = None
    ) -> tuple[Tensor, Tensor]:
        if self.config.weights or rows is not None:
            return super().forward(scores, targets, rows)
        sums = cross_entropy(scores, targets, label_smoothing=self.config.label_smoothing)
        return sums.total, sums.count

    @override
    def each(self, scores: Tensor, targets: Tensor) -> Tensor:
        smoothing = self.config.label_smoothing
        return F.cross_entropy(scores, targets, reduction="none", label_smoothing=smoothing)

    @override
    def probabilities(self, scores: Tensor) -> Tensor:
        return scores.float().softmax(dim=-1)


@registries.losses.register("binary_cross_entropy")
class BinaryCrossEntropy(LabelLoss):
    """For each label, whether the row has it: the mean over labels of the binary cross entropy.

    Where a row has one label all others are wrong ones (one against the rest).
    """

    is_independent = True

    @override
    def each(self, scores: Tensor, targets: Tensor) -> Tensor:
        losses = F.binary_cross_entropy_with_logits(scores, _hot(scores, targets), reduction="none")
        return losses if self.multiple else losses.mean(dim=1)

    @override
    def probabilities(self, scores: Tensor) -> Tensor:
        return scores.float().sigmoid()


@registries.losses.register("auto")
class AutoLoss(LabelLoss):
    """Cross entropy where a row has one label, binary cross entropy where it has several."""

    class Config(CrossEntropyLoss.Config):
        """Settings of either; smoothing is of the cross entropy."""

        @override
        def build(  # type: ignore[override]  # what is built of is named
            self, *, names: Sequence[str], multiple: bool
        ) -> LabelLoss:
            if multiple and self.label_smoothing:
                raise UserError(
                    "task.loss.label_smoothing is for one label a row, but labels.multiple is "
                    "true: leave it out."
                )
            weights, smoothing = self.weights, self.label_smoothing
            chosen: LabelLoss.Config = (
                BinaryCrossEntropy.Config(weights=weights)
                if multiple
                else CrossEntropyLoss.Config(weights=weights, label_smoothing=smoothing)
            )
            built: LabelLoss = chosen.build(names=names, multiple=multiple)
            return built


LEAST_DOUBT = 2.0**-40
"""What a probability lacks of 1 at least, so that its score is finite: 27.7 at most."""


def averaged_scores(losses: Sequence[LabelLoss], scores: Sequence[Tensor]) -> Tensor:
    """Scores, to the first loss, that have the mean of the probabilities that each one's have.

    *Shape:* that of each, :math:`(..., L)`.
    """
    logs = [loss.log_probabilities(own) for loss, own in zip(losses, scores, strict=True)]
    return losses[0].scores_of(torch.stack(logs).logsumexp(dim=0) - math.log(len(logs)))


def _relative_entropy(told: Tensor, given: Tensor) -> Tensor:
    """The terms of a Kullback-Leibler divergence, of two logs of probabilities."""
    return F.kl_div(given, told, reduction="none", log_target=True)


def _hot(scores: Tensor, targets: Tensor) -> Tensor:
    """1 at right labels. *Shape:* :math:`(B)` or :math:`(B,L)` to :math:`(B,L)`."""
    if targets.ndim == scores.ndim:
        return targets
    return torch.zeros_like(scores).scatter_(1, targets[:, None], 1.0)


def multi_hot(numbers: Tensor, size: int) -> Tensor:
    """1 at the labels of each row, 0 elsewhere, of their numbers, :math:`(B,K)`: :math:`(B,L)`.

    Numbers are below 0 at padding and of unseen labels.

    Example:
        >>> multi_hot(torch.tensor([[0, 2], [1, -1]]), 3).tolist()
        [[1, 0, 1], [0, 1, 0]]
    """
    out = numbers.new_zeros(len(numbers), size + 1)
    if numbers.shape[1]:
        out.scatter_(1, torch.where(numbers < 0, size, numbers), 1)
    return out[:, :size]
