"""What a batch looks like before training: its tensors' shapes, and one example as text and ids."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import fields, is_dataclass
from typing import Any

import torch

from weft.data.seq2seq import Seq2SeqBatch
from weft.text.tokenizer import Tokenizer

__all__ = ["describe_batch"]

SHOWN_IDS = 30
"""Ids of a sequence that fit on a line or two; 99 of 100 sentences have fewer."""


def describe_batch(batch: Any, tokenizer: Tokenizer | None = None) -> list[str]:
    r"""The lines that show a batch: its type, the shape of each tensor, its first example.

    Args:
        batch: Of any type: the tensors of a dataclass, mapping, tuple or list are found. Of a
            ``Seq2SeqBatch`` the first example is shown too; without tensors there is no line.
        tokenizer: Turns ids back into the text that the model sees; None shows ids only.

    Example:
        >>> ids = torch.tensor([[5, 3, 0], [6, 7, 3]])
        >>> print("\n".join(describe_batch(Seq2SeqBatch.from_padded(ids, pad_idx=0))))
        the first batch is a Seq2SeqBatch:
          source [2, 3] int64
          source_lengths [2] int64
        its first example:
          source, 2 ids: 5 3
    """
    tensors = [
        f"  {name} {list(value.shape)} {str(value.dtype).removeprefix('torch.')}"
        for name, value in _parts(batch)
        if isinstance(value, torch.Tensor)
    ]
    lines = [f"the first batch is a {type(batch).__name__}:", *tensors] if tensors else []
    if isinstance(batch, Seq2SeqBatch) and len(batch):
        lines += ["its first example:", *_example(batch, tokenizer)]
    return lines


def _parts(batch: Any) -> Iterable[tuple[str, Any]]:
    """The named parts of a batch; those of a tuple or list have their number for a name."""
    if is_dataclass(batch):
        return [(field.name, getattr(batch, field.name)) for field in fields(batch)]
    if isinstance(batch, Mapping):
        return [(str(name), value) for name, value in batch.items()]
    if isinstance(batch, tuple | list):
        return [(str(number), value) for number, value in enumerate(batch)]
    return [("itself", batch)]


def _example(batch: Seq2SeqBatch, tokenizer: Tokenizer | None) -> list[str]:
    sides = [("source", batch.source[0, : int(batch.source_lengths[0])].tolist())]
    if batch.target is not None and batch.target_lengths is not None:
        # A target has one id more than it has labels: the one it begins with.
        sides.append(("target", batch.target[0, : int(batch.target_lengths[0]) + 1].tolist()))
    return [f"  {name}, {len(ids)} ids: {_ids(ids)}{_text(ids, tokenizer)}" for name, ids in sides]


def _ids(ids: Sequence[int]) -> str:
    more = " ..." if len(ids) > SHOWN_IDS else ""
    return " ".join(map(str, ids[:SHOWN_IDS])) + more


def _text(ids: Sequence[int], tokenizer: Tokenizer | None) -> str:
    if tokenizer is None:
        return ""
    size = tokenizer.vocab_info.size
    strange = [number for number in ids if not 0 <= number < size]
    if strange:
        return f" (the tokenizer has {size:,} ids, so {strange[0]} is none of them)"
    decode: Callable[[Sequence[int]], str] = tokenizer.create_decoder()
    return f" = {decode(ids)!r}"
