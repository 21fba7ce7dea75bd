"""The search that the settings ask for."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from torch import Tensor

from weft.models.decoding.beam import beam_search
from weft.models.decoding.fast import fastest
from weft.models.decoding.hypothesis import Generator, Hypothesis
from weft.models.decoding.sampling import sample
from weft.models.decoding.search_settings import Decoding
from weft.models.decoding.search_state import Request
from weft.models.decoding.token_loop import greedy

__all__ = ["decode"]


def decode(
    model: Generator,
    source: Tensor,
    source_lengths: Tensor | None,
    decoding: Decoding,
    *,
    prefix: Sequence[int],
    eos_idx: int,
    unk_idx: int | None = None,
    forced: Sequence[Sequence[int]] | None = None,
) -> list[list[Hypothesis]]:
    """Searches targets for sources: draws with ``sample``, else greedy or beam search.

    A model in training mode is put in evaluation mode meanwhile.

    Args:
        model: The model.
        source: Token ids. *Shape:* :math:`(B,S)`.
        source_lengths: Real tokens of each row; None: all are. *Shape:* :math:`(B)`.
        decoding: The settings.
        prefix: Ids every target starts with: the start mark, and a language tag where there is one.
        eos_idx: Id of the end mark.
        unk_idx: Id of the unknown token; only its penalty needs it.
        forced: Ids that each row's target begins with, after the prefix.

    Returns:
        For each row of ``source``, in order, ``n_best`` hypotheses, the best first.

    Example:
        >>> import torch
        >>> from types import SimpleNamespace
        >>> from weft.models.transformer import Transformer
        >>> tokenizer = SimpleNamespace(vocab_info=SimpleNamespace(size=20, pad_idx=0))
        >>> config = Transformer.Config(dim=8, num_heads=2, ffn_dim=16)
        >>> model = config.build(tokenizer=tokenizer)
        >>> source, decoding = torch.tensor([[5, 6, 3]]), Decoding(beam_size=2)
        >>> found = decode(model, source, None, decoding, prefix=[2], eos_idx=3, forced=[[7, 9]])
        >>> len(found), len(found[0]), found[0][0].ids[:2]
        (1, 1, [7, 9])
    """
    request = Request(
        source=source,
        source_lengths=source_lengths,
        decoding=decoding,
        prefix=prefix,
        eos_idx=eos_idx,
        unk_idx=unk_idx,
        forced=forced,
    )
    return _search(model, request) if len(source) else []


def _search(model: Generator, request: Request) -> list[list[Hypothesis]]:
    decoding = request.decoding
    search = sample if decoding.sample else greedy if decoding.beam_size == 1 else beam_search
    rows = len(request.source) * max(decoding.beam_size, decoding.n_best)
    with _evaluating(model):
        return search(fastest(model, rows=rows), request)


@contextmanager
def _evaluating(model: Generator) -> Iterator[None]:
    """Puts a model in evaluation mode, and back."""
    training = model.training
    if training:
        model.train(False)
    try:
        yield
    finally:
        if training:
            model.train()
