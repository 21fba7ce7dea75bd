"""Losses of texts' vectors, as components: sums over the rows of a batch, with their count."""

from abc import abstractmethod
from typing import Any, ClassVar

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from typing_extensions import override

from textmill.config.component import Component
from textmill.config.component import Config as BaseConfig
from textmill.config.validators import require
from textmill.models import registries


class EmbeddingLoss(Component, nn.Module):
    """Base of losses of the vectors of rows of two texts or more, compared by their cosine."""

    class Config(BaseConfig):
        """Settings of a loss."""

    config: Any
    scored: ClassVar[bool]
    """Whether a row has a score that says how alike its two texts are."""
    compares: ClassVar[bool] = True
    """Whether it compares rows of a batch with each other: it gets those of all ranks at once."""

    def __init__(self, config: Config) -> None:
        nn.Module.__init__(self)
        self.config = config

    @abstractmethod
    @override
    def forward(self, vectors: Tensor, targets: Tensor) -> tuple[Tensor, Tensor]:
        """The differentiable sum of the loss, and what it is divided by, the rows.

        Args:
            vectors: Those of each row's texts. *Shape:* :math:`(B,K,H)`, K being 2, or with wrong
                texts more where rows have no scores.
            targets: The scores of rows, float :math:`(B)`. Of rows without such, which text is
                which, int64 :math:`(B,K)`: equal ones have one number.
        """


@registries.losses.register("multiple_negatives_ranking")
class MultipleNegativesRanking(EmbeddingLoss):
    r"""A row's second text is to be nearer to its first than those of all other rows are.

    The cross entropy of choosing it, by cosines :math:`s` times a scale, among the second texts,
    and the wrong ones, of all rows :math:`j` that are computed together:

    .. math::
        \ell_i = -\log \frac{\exp(\lambda s_{ii})}{\sum_j \exp(\lambda s_{ij})}

    The negatives are those of the micro-batch, of all ranks, so other than elsewhere its size
    matters: accumulation leaves fewer of them. A text that equals the right one, as where two
    questions have one answer, is no negative.

    Source: Henderson et al. 2017, "Efficient Natural Language Response Suggestion for Smart Reply".
    """

    class Config(EmbeddingLoss.Config):
        scale: float = 20.0
        """What cosines are multiplied by: one over the temperature."""
        symmetric: bool = False
        """Whether the first text is chosen among all first ones, too; the loss is the mean."""

        def __post_init__(self) -> None:
            require(self, "task.loss", positive=["scale"])

    scored = False

    @override
    def forward(self, vectors: Tensor, targets: Tensor) -> tuple[Tensor, Tensor]:
        units = F.normalize(vectors.float(), dim=-1)
        # By their place in a row: first all right texts, then all wrong ones.
        first, others = units[:, 0], units[:, 1:].transpose(0, 1).flatten(0, 1)
        names = targets[:, 1:].T.flatten()
        total = self._chosen(first, others, targets[:, 1], names)
        if self.config.symmetric:
            right = units[:, 1]
            total = (total + self._chosen(right, first, targets[:, 0], targets[:, 0])) / 2
        return total, vectors.new_tensor(len(vectors))

    def _chosen(self, asked: Tensor, texts: Tensor, right: Tensor, names: Tensor) -> Tensor:
        kind = asked.device.type
        with torch.autocast("cpu" if kind == "meta" else kind, enabled=False):  # 3 digits are few
            scores = self.config.scale * asked @ texts.T
        places = torch.arange(len(texts), device=texts.device)
        own = places[: len(asked)]
        equal = (right[:, None] == names) & (own[:, None] != places)
        return F.cross_entropy(scores.masked_fill(equal, -torch.inf), own, reduction="sum")


@registries.losses.register("cosine_similarity")
class CosineSimilarity(EmbeddingLoss):
    """The squared difference between the cosine of a row's texts and its score.

    Scores are from 0 (or -1) to 1; others become such by ``task.span``.

    Source: Reimers and Gurevych 2019, "Sentence-BERT", section 3.
    """

    scored = True
    compares = False

    @override
    def forward(self, vectors: Tensor, targets: Tensor) -> tuple[Tensor, Tensor]:
        found = F.cosine_similarity(vectors[:, 0].float(), vectors[:, 1].float())
        total = F.mse_loss(found, targets, reduction="sum")
        return total, vectors.new_tensor(len(vectors))


@registries.losses.register("cosent")
class CoSent(EmbeddingLoss):
    r"""Rows with a higher score are to have a higher cosine than rows with a lower one.

    .. math::
        \ell = \log \Bigl(1 + \sum_{y_i < y_j} \exp(\lambda (s_i - s_j))\Bigr)

    It looks at the order of scores alone, so they may be of any scale. Rows are compared with
    those of their micro-batch, of all ranks, whose one loss counts as that of each of its rows.

    Source: Su 2022, "CoSENT: a more efficient sentence vector scheme than Sentence-BERT",
    https://kexue.fm/archives/8847.
    """

    class Config(EmbeddingLoss.Config):
        scale: float = 20.0
        """What cosines are multiplied by."""

        def __post_init__(self) -> None:
            require(self, "task.loss", positive=["scale"])

    scored = True

    @override
    def forward(self, vectors: Tensor, targets: Tensor) -> tuple[Tensor, Tensor]:
        cosines = F.cosine_similarity(vectors[:, 0].float(), vectors[:, 1].float())
        found = self.config.scale * cosines
        apart = (found[:, None] - found).masked_fill(targets[:, None] >= targets, -torch.inf)
        total = F.pad(apart.flatten(), (1, 0)).logsumexp(dim=0)
        count = vectors.new_tensor(len(vectors))
        return total * count, count


def supervised_contrastive(vectors: Tensor, labels: Tensor, *, temperature: float) -> Tensor:
    r"""How far each row is from the rows of its label, beside all others: :math:`(B)`.

    .. math::
        \ell_i = -\frac{1}{|P_i|} \sum_{p \in P_i}
            \log \frac{\exp(s_{ip} / \tau)}{\sum_{j \ne i} \exp(s_{ij} / \tau)}

    where :math:`s` are cosines and :math:`P_i` the other rows with the label of row :math:`i`. The
    loss of a row that is the only one with its label is 0. *Shape:* vectors :math:`(B,H)`, numbers
    of labels :math:`(B)`.

    Source: Khosla et al. 2020, "Supervised Contrastive Learning", equation 2.

    Example:
        >>> x = torch.tensor([[1.0, 0.0], [2.0, 0.0], [0.0, 3.0]])
        >>> supervised_contrastive(x, torch.tensor([0, 0, 1]), temperature=1.0)
        tensor([0.3133, 0.3133, 0.0000])
    """
    units = F.normalize(vectors.float(), dim=-1)
    kind = vectors.device.type
    with torch.autocast("cpu" if kind == "meta" else kind, enabled=False):  # 3 digits are few
        cosines = units @ units.T / temperature
    itself = torch.eye(len(labels), dtype=torch.bool, device=labels.device)
    same = (labels[:, None] == labels) & ~itself
    others = cosines.masked_fill(itself, -torch.inf).logsumexp(dim=1)  # -inf if there are none
    counts = same.sum(dim=1)
    lost = (others[:, None] - cosines).where(same, 0.0).sum(dim=1)
    return lost / counts.clamp(min=1)
