"""Mask-predict: all tokens of a target at once, then the least certain of them again."""

from dataclasses import dataclass
from typing import ClassVar, Final

import torch
from torch import Tensor
from typing_extensions import override

from textmill.config.component import typed_construction
from textmill.config.validators import require
from textmill.errors import UserError
from textmill.models.decoder_state import DecoderMemory
from textmill.models.decoders.mask_predict import MaskPredict
from textmill.models.decoding.search_settings import Decoding
from textmill.models.decoding.search_state import Hypothesis

ROWS: Final = 64
"""Targets that are filled together: those of about one length, so that little is padded."""


@typed_construction
@dataclass(frozen=True, kw_only=True)
class MaskPredictDecoding(Decoding):
    """How targets are predicted, all tokens at once."""

    shown_first: ClassVar = frozenset({"iterations", "beam_size"})

    beam_size: int = 1
    """Lengths that are tried for each source, the likeliest ones. Of their targets the best has the
    highest log-probability of length and tokens, divided by ``length ** length_penalty``."""
    iterations: int = 4
    """Passes of the decoder, T: the pass t of 1, 2 ... predicts the tokens that are masked, and
    then the ``N * (T - t) / T`` least probable ones of N are masked again."""

    @override
    def __post_init__(self) -> None:
        super().__post_init__()
        require(self, "decoding", sizes=["iterations"])
        ordered = ("early_stopping", "sample", "repetition_penalty", "no_repeat_ngram")
        for name in (*ordered, "unknown_penalty"):
            if (value := getattr(self, name)) != getattr(Decoding, name):
                raise UserError(
                    f"decoding.{name}={value} is for tokens that are generated one after another, "
                    "but mask-predict generates all at once: leave it out."
                )


@torch.inference_mode()
def mask_predict(
    model: MaskPredict,
    source: Tensor,
    source_lengths: Tensor,
    decoding: MaskPredictDecoding,
    *,
    eos_idx: int,
) -> list[list[Hypothesis]]:
    """Fills targets of the ``beam_size`` likeliest lengths; each row's ``n_best``, the best first.

    *Shape:* as in :class:`~textmill.models.decoding.search_state.Request`.
    """
    memory = model.encode(source, source_lengths)
    moves = model.move_scores(memory)
    places = model.moved(moves)
    rows, lengths, of_length = _candidates(model, moves, source, source_lengths, decoding)
    answers: list[list[Hypothesis]] = [[] for _ in source]
    for part in lengths.argsort(stable=True).split(ROWS):
        of, own = rows[part], lengths[part]
        ids, log_probs = fill(model, memory.select(of), places[of], own, decoding)
        tokens = model.with_tokens(ids, source[of]).tolist()
        joint = of_length[part] + log_probs.sum(dim=1)
        scores = (joint / own**decoding.length_penalty).tolist()
        for row, target, length, score in zip(
            of.tolist(), tokens, own.tolist(), scores, strict=True
        ):
            end = target.index(eos_idx) if eos_idx in target[:length] else length
            answers[row].append(Hypothesis(target[:end], score))
    for found in answers:
        found.sort(key=lambda hypothesis: hypothesis.score, reverse=True)
    return [found[: decoding.n_best] for found in answers]


def fill(
    model: MaskPredict,
    memory: DecoderMemory,
    places: Tensor,
    lengths: Tensor,
    decoding: MaskPredictDecoding,
) -> tuple[Tensor, Tensor]:
    """Numbers of the tokens of targets, and their log-probabilities, 0 at padding.

    *Shape:* places of source tokens :math:`(B,S)`, lengths :math:`(B)`, to :math:`(B,T)` each.
    """
    ids = lengths.new_zeros((len(lengths), int(lengths.max())))
    each = torch.arange(ids.shape[1], device=ids.device)
    masked = real = each < lengths[:, None]
    log_probs = torch.zeros(ids.shape, device=ids.device)
    for left in reversed(range(decoding.iterations)):
        decoded = model.read(ids, masked, lengths, memory, places)
        log_probs[masked], ids[masked] = model.likeliest(decoded, masked, memory)
        again = lengths[:, None] * left // decoding.iterations
        if not again.any():
            break
        order = log_probs.masked_fill(~real, torch.inf).argsort(dim=1, stable=True)
        masked = torch.zeros_like(real).scatter_(1, order, each < again)
    return ids, log_probs


def _candidates(
    model: MaskPredict,
    moves: Tensor,
    source: Tensor,
    source_lengths: Tensor,
    decoding: MaskPredictDecoding,
) -> tuple[Tensor, Tensor, Tensor]:
    """The rows of the targets to fill, their lengths, the likeliest ones, and how likely each is.

    *Shape:* :math:`(N)` each; log-probabilities.
    """
    last = torch.arange(len(source), device=source.device), source_lengths - 1
    scores = moves[last].float().log_softmax(dim=1)
    most = model.config.longest_move
    lengths = torch.arange(-most, most + 1, device=source.device) + source_lengths[:, None]
    limits = decoding.limits(source, source_lengths, longest=model.max_length)[:, None]
    least = limits.clamp(max=decoding.min_length + 1)
    allowed = (lengths >= least) & (lengths <= limits)
    allowed |= ~allowed.any(dim=1, keepdim=True)  # then the nearest is taken
    best = scores.masked_fill(~allowed, -torch.inf).topk(min(decoding.beam_size, 2 * most + 1))
    kept = best.values > -torch.inf
    lengths = lengths.gather(1, best.indices).maximum(least).minimum(limits)
    return kept.nonzero()[:, 0], lengths[kept], best.values[kept]
