"""What a pretrained encoder reads of words, and of two texts: one row of ids with marks."""

import torch
from torch import Tensor

from textmill.models.encoders.sequence import real_tokens
from textmill.models.vocabulary import FramedVocabInfo


def framed_words(
    pieces: Tensor, lengths: Tensor, info: FramedVocabInfo, *, most: int | None = None
) -> tuple[Tensor, Tensor, Tensor]:
    """The pieces of each text's words behind each other, between the marks of a text.

    Of a text with more pieces than ``most``, each word keeps as many of its first ones as fit; the
    words are as many as fit with one.

    Args:
        pieces: Ids. *Shape:* :math:`(B,T,P)`.
        lengths: Real words of each row. *Shape:* :math:`(B)`.
        info: Knows the ids of marks and of padding.
        most: Pieces of a text, marks not counted.

    Returns:
        Ids, :math:`(B,S)`, real ones of each row, :math:`(B)`, and where each word begins in its
        row, :math:`(B,T)`.

    Example:
        >>> from types import SimpleNamespace
        >>> info = SimpleNamespace(pad_idx=0, bos_idx=1, eos_idx=2)
        >>> words = torch.tensor([[[5, 6], [7, 0]], [[8, 0], [0, 0]]])
        >>> ids, lengths, begins = framed_words(words, torch.tensor([2, 1]), info)
        >>> ids.tolist(), lengths.tolist(), begins.tolist()
        ([[1, 5, 6, 7, 2], [1, 8, 2, 0, 0]], [5, 3], [[1, 3], [1, 0]])
    """
    rows, words, places = pieces.shape
    real = (pieces != info.pad_idx) & real_tokens(pieces, lengths)[..., None]
    exporting = torch.compiler.is_exporting()  # then sizes are not known
    if most is not None and (exporting or words * places > most):
        totals = real.sum(1).cumsum(1)  # with 1, 2, ... places a word
        fits = (totals <= most).sum(1)
        real &= torch.arange(places, device=pieces.device) < fits[:, None, None]
    real = real.reshape(rows, -1)
    at = real.cumsum(1)  # behind the mark that begins a text
    count = at[:, -1]
    size = words * places if exporting else int(count.max())
    ids = pieces.new_full((rows, size + 3), info.pad_idx)
    ids.scatter_(1, at.where(real, size + 2), pieces.reshape(rows, -1))  # the last is dropped
    ids[:, 0] = info.bos_idx
    ids = ids[:, :-1].scatter(1, count[:, None] + 1, info.eos_idx)
    if most is not None and exporting:
        ids = ids[:, : torch.sym_min(ids.shape[1], most + 2)]
    return ids, count + 2, at.where(real, 0).reshape(rows, words, places)[..., 0]


def framed_pairs(
    text1: Tensor,
    lengths1: Tensor,
    text2: Tensor,
    lengths2: Tensor,
    *,
    info: FramedVocabInfo,
    two_marks: bool,
) -> tuple[Tensor, Tensor, Tensor]:
    """Two framed texts as one row: ``[CLS] a [SEP] b [SEP]``, or ``<s> a </s></s> b </s>``.

    Args:
        text1: Ids. *Shape:* :math:`(B,T)`.
        lengths1: Real ones of each row. *Shape:* :math:`(B)`.
        text2: Ids. *Shape:* :math:`(B,U)`.
        lengths2: Real ones of each row. *Shape:* :math:`(B)`.
        info: Knows the ids of marks and of padding.
        two_marks: Whether two marks are between the texts.

    Returns:
        Ids, :math:`(B,S)`, real ones of each row, :math:`(B)`, and 1 at those of the second text,
        :math:`(B,S)`.

    Example:
        >>> from types import SimpleNamespace
        >>> info = SimpleNamespace(pad_idx=0, bos_idx=1, eos_idx=2)
        >>> one, two = torch.tensor([[1, 5, 2, 0]]), torch.tensor([[1, 6, 7, 2]])
        >>> given = one, torch.tensor([3]), two, torch.tensor([4])
        >>> ids, lengths, second = framed_pairs(*given, info=info, two_marks=False)
        >>> ids.tolist(), lengths.tolist(), second.tolist()
        ([[1, 5, 2, 6, 7, 2]], [6], [[0, 0, 0, 1, 1, 1]])
    """
    skipped = 0 if two_marks else 1  # the mark that begins the second text
    ends = lengths1.to(text1.device)[:, None]
    whole = lengths1 + lengths2 - skipped
    most = text1.shape[1] + text2.shape[1]
    width = most if torch.compiler.is_exporting() else int(whole.max())
    at = torch.arange(width, device=text1.device).expand(text1.shape[0], -1)
    inside = (at - ends + skipped).clamp(min=0, max=text2.shape[1] - 1)
    following = text2.gather(1, inside).where(inside > 0, info.eos_idx)
    second = (at >= ends) & (at < whole.to(at.device)[:, None])
    first = text1.gather(1, at.clamp(max=text1.shape[1] - 1))
    ids = first.where(at < ends, following.where(second, info.pad_idx))
    return ids, whole, second.long()
