"""The search that the settings ask for."""

from collections.abc import Mapping, Sequence

from torch import Tensor

from textmill.models.decoding.beam import beam_search
from textmill.models.decoding.fast_decoder import fastest
from textmill.models.decoding.sampling import greedy, sample
from textmill.models.decoding.search_settings import Decoding
from textmill.models.decoding.search_state import Generator, Hypothesis, Request


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
    beside: Mapping[str, Tensor] = {},
) -> list[list[Hypothesis]]:
    """Searches targets for sources: draws with ``sample``, else greedy or beam search.

    Each row has ``n_best`` hypotheses, the best first. A model in training mode is put in
    evaluation mode meanwhile. What is asked are the fields of a
    :class:`~textmill.models.decoding.search_state.Request`.
    """
    request = Request(
        source=source,
        source_lengths=source_lengths,
        decoding=decoding,
        prefix=prefix,
        eos_idx=eos_idx,
        unk_idx=unk_idx,
        forced=forced,
        beside=beside,
    )
    if not len(source):
        return []
    search = sample if decoding.sample else greedy if decoding.beam_size == 1 else beam_search
    training, rows = model.training, len(source) * max(decoding.beam_size, decoding.n_best)
    if training:
        model.train(False)
    try:
        return search(fastest(model, rows=rows), request)
    finally:
        if training:
            model.train()
