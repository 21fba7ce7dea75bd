"""What tasks over words make of scores of tags: a random field's answers, rows, words read back."""

from collections.abc import Callable

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from weft.data.column_batch import ColumnBatch
from weft.exported.forward import CrfForward, Forward, TagForward
from weft.models.crf import LinearChainCrf
from weft.text.features.labels import UNSEEN
from weft.text.processors.column_processor import ColumnsText

__all__ = [
    "random_field",
    "seen_rows",
    "tag_chances",
    "tag_forward",
    "tag_outputs",
    "words_of",
]


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
    """What becomes of :func:`tag_outputs` where there is no torch."""
    if crf is None:
        return TagForward()
    return CrfForward(crf.answering_transitions().detach().cpu().numpy())


def seen_rows(*targets: Tensor) -> Tensor:
    """Which rows have no label that training has not. *Shape:* :math:`(B)`.

    Args:
        targets: Labels of rows or of words, ``UNSEEN`` where training has none such.
            *Shape:* :math:`(B)` or :math:`(B,T)`.

    Example:
        >>> seen_rows(torch.tensor([0, UNSEEN]), torch.tensor([[1, 2], [0, -1]])).tolist()
        [True, False]
    """
    wrong = [(target == UNSEEN).reshape(len(target), -1).any(dim=1) for target in targets]
    return ~torch.stack(wrong).any(dim=0)


def words_of(text: ColumnsText, batch: ColumnBatch) -> list[str]:
    """The known words of each row of a ready batch, as text."""
    decoder = text.ingredients["tokenizer"].create_decoder()
    ids, lengths = batch["words"].cpu().numpy(), batch.lengths["words"].tolist()
    texts: list[str] = decoder.batch([row[:n] for n, row in zip(lengths, ids, strict=True)])
    return texts
