"""What tasks over words make of scores of tags: a random field's answers, rows, words read back."""

from collections.abc import Callable

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from textmill.data.column_batch import ColumnBatch
from textmill.errors import UserError
from textmill.exported.forward import CrfForward, Forward, TagForward
from textmill.models.crf import LinearChainCrf
from textmill.models.label_losses import AutoLoss, LabelLoss
from textmill.tasks.batches.real_places import at_places, real_places
from textmill.tasks.task import Loss
from textmill.text.features.labels import UNSEEN, Labels
from textmill.text.processors.column_processor import ColumnsText


def random_field(module: nn.Module) -> LinearChainCrf | None:
    """A module's random field, its submodule ``crf``; None: each word is for itself.

    Example:
        >>> random_field(nn.Linear(2, 3)) is None
        True
    """
    try:
        found = module.get_submodule("crf")
    except AttributeError:
        return None
    return found if isinstance(found, LinearChainCrf) else None


def tag_chances(
    scores: Tensor,
    batch: ColumnBatch,
    crf: LinearChainCrf | None,
    probabilities: Callable[[Tensor], Tensor],
) -> list[tuple[NDArray[np.int64], NDArray[np.float32]]]:
    """The number and the probability of the label of each word, row by row.

    Args:
        scores: Unnormalized scores of labels. *Shape:* :math:`(B,T,L)`.
        batch: The words they are of.
        crf: Whose best sequences and own probabilities are taken; None: each word's best label.
        probabilities: Of labels from scores, where there is no random field.
    """
    if crf is None:
        chances, numbers = probabilities(scores).max(dim=-1)
    else:
        numbers, chances = crf.decode_with_chances(scores, batch.mask("words").to(scores.device))
    lengths = batch.lengths["words"].tolist()
    rows = zip(lengths, numbers.cpu().numpy(), chances.float().cpu().numpy(), strict=True)
    return [(row[:n], scored[:n]) for n, row, scored in rows]


def tag_outputs(
    scores: Tensor, crf: LinearChainCrf | None, probabilities: Callable[[Tensor], Tensor]
) -> tuple[Tensor, ...]:
    """What an exported graph gives of tags: numbers and probabilities, or scores for a field.

    Args and shapes are those of :func:`tag_chances`.
    """
    if crf is not None:
        return (scores.float(),)
    chances, numbers = probabilities(scores).max(dim=-1)
    return numbers, chances.float()


def tag_forward(crf: LinearChainCrf | None) -> Forward:
    """How an export answers from :func:`tag_outputs`, without torch."""
    if crf is None:
        return TagForward()
    return CrfForward(crf.answering_transitions().detach().cpu().numpy())


def seen_rows(*targets: Tensor) -> Tensor:
    """Mask of the rows whose labels were all seen in training. *Shape:* :math:`(B)`.

    Args:
        targets: Labels of rows or of words, ``UNSEEN`` where training has none such.
            *Shape:* :math:`(B)` or :math:`(B,T)`.

    Example:
        >>> seen_rows(torch.tensor([0, UNSEEN]), torch.tensor([[1, 2], [0, -1]])).tolist()
        [True, False]
    """
    wrong = [(target == UNSEEN).reshape(len(target), -1).any(dim=1) for target in targets]
    return ~torch.stack(wrong).any(dim=0)


def word_criterion(
    loss: LabelLoss.Config | None, labels: Labels, crf: LinearChainCrf | None
) -> LabelLoss:
    """The loss of each word's label, where there is no random field.

    Raises:
        UserError: A loss is set, and there is a random field.
    """
    if loss is not None and crf is not None:
        raise UserError(
            "task.loss is the loss of each word for itself, but a model with model.crf=true has "
            "the likelihood of whole sequences for its loss: leave one of them out."
        )
    built: LabelLoss = (loss or AutoLoss.Config()).build(names=labels.names, multiple=False)
    return built


def word_loss(
    scores: Tensor,
    batch: ColumnBatch,
    crf: LinearChainCrf | None,
    criterion: LabelLoss,
    *,
    training: bool,
) -> Loss:
    """The loss of a batch: a sum over its words, without padding.

    In an evaluation words with a label that training has not seen are left out; of a random field,
    whole sentences.

    Args:
        scores: Unnormalized scores of labels. *Shape:* :math:`(B,T,L)`.
        batch: The words they are of, and their ``tags``.
        crf: The likelihood of whole sequences is the loss.
        criterion: The loss of each word, where there is no random field.
        training: Whether all labels are known.
    """
    tags, real = batch["tags"], batch.mask("words")
    if not training and crf is not None:
        rows = seen_rows(tags)
        scores, tags, real = scores[rows], tags[rows], real[rows]
    elif not training:
        real = real & (tags >= 0)
    if crf is not None:
        return Loss(-crf.log_likelihood(scores, tags, real).sum(), real.sum())
    places = real_places(real, batch.count("words")) if training else real
    return Loss.of(criterion(at_places(scores, places), at_places(tags, places)), criterion)


def words_of(text: ColumnsText, batch: ColumnBatch) -> list[str]:
    """The known words of each row of a ready batch, as text."""
    decoder = text.ingredients["tokenizer"].create_decoder()
    ids, lengths = batch["words"].cpu().numpy(), batch.lengths["words"].tolist()
    texts: list[str] = decoder.batch([row[:n] for n, row in zip(lengths, ids, strict=True)])
    return texts
