"""Encoders that were trained before, on much text, by others: any that transformers knows."""

import dataclasses
import inspect
from types import SimpleNamespace
from typing import Any, ClassVar, Literal, TypeAlias

import torch
from torch import Tensor, nn
from typing_extensions import override

from textmill.errors import UserError
from textmill.models import registries
from textmill.models.encoders.bert import BertModel, is_bert
from textmill.models.encoders.sequence import SequenceEncoder, real_tokens
from textmill.models.lora import add_adapters
from textmill.models.poolings import Pooler, Pooling
from textmill.models.pretrained import (
    PretrainedConfig,
    building,
    copy_weights,
    pretrained_config,
    vocabulary_of,
)
from textmill.models.vocabulary import ModelVocabInfo

Reads: TypeAlias = Literal["texts", "words", "pairs"]
"""What an encoder reads: framed texts, words of which labels are, or two texts as one."""

_TWO_MARKS = ("camembert", "mpnet", "roberta", "roberta-prelayernorm", "xlm-roberta")
"""Architectures that were pretrained with two marks between a pair's texts."""


@registries.encoders.register("pretrained")
class PretrainedEncoder(SequenceEncoder):
    """An encoder that transformers knows, with its weights: BERT, RoBERTa, ModernBERT, ...

    It reads token ids, with its own tokenizer (``tokenizer.type=pretrained``), in place of their
    vectors. A fresh run begins with the weights of ``path``; the run keeps the architecture and
    its own weights, and needs the path no more.
    Weights are safetensors, and no code is run that transformers does not have.

    Source: Devlin et al. 2019, "BERT: Pre-training of Deep Bidirectional Transformers".
    """

    class Config(PretrainedConfig, SequenceEncoder.Config):
        layers: Literal["transformers"] | None = None
        """Whose layers compute it; null is textmill's own, which are faster, where they know the
        architecture (:class:`~textmill.models.encoders.bert.BertModel`), else those of
        transformers.
        Parameters have the same names in both: a run can be loaded by either."""

        reads_ids: ClassVar[bool] = True
        place: ClassVar[str] = "model.encoder"

    def __init__(
        self, config: Config, *, vocab_info: ModelVocabInfo, reads: Reads = "texts"
    ) -> None:
        super().__init__()
        self.vocab_info = vocab_info
        architecture = config.read_architecture()
        architecture["vocab_size"] = max(vocab_info.size, vocabulary_of(architecture, config.path))
        architecture["pad_token_id"] = vocab_info.pad_idx
        with building(architecture, config):
            own = config.layers is None and is_bert(architecture)  # which needs no package
            needed = "model.encoder.type=pretrained"
            settings: Any = (
                SimpleNamespace(**architecture)
                if own
                else pretrained_config(architecture, config.path, needed_by=needed)
            )
            config.set_dropout(architecture, settings)
            self.model: Any = BertModel(architecture) if own else _encoder(settings, config.path)
            self.out_dim = int(settings.hidden_size)
            self.two_marks = settings.model_type in _TWO_MARKS
            """Whether two marks are between a pair's texts."""
            self.typed = getattr(settings, "type_vocab_size", 0) > 1
            """Whether it reads which of them a token is of."""
            most = getattr(settings, "max_position_embeddings", None)
            # RoBERTa counts positions from its padding's id on.
            reserved = settings.pad_token_id + 1 if _counts_from_padding(self.model) else 0
            if most is not None:
                marks = 2 if reads == "words" else 0
                self.max_length = int(most) - reserved - marks
                self.max_length //= 2 if reads == "pairs" else 1
        self.config = dataclasses.replace(config, architecture=architecture)
        if config.lora is not None:
            add_adapters(self.model, config.lora)

    @override
    def forward(self, x: Tensor, lengths: Tensor) -> Tensor:
        """Makes of each token's id, or of each word's pieces, a vector that knows its text.

        *Shape:* ids of framed texts, :math:`(B,T)`, or of the pieces of words, :math:`(B,T,P)`,
        and the real tokens, or words, of each row, :math:`(B)`, to :math:`(B,T,H)`. A word's
        vector is that of its first piece (Devlin et al. 2019, section 5.3).
        """
        if x.ndim == 2:
            return self._read(x, lengths)
        ids, framed, firsts = framed_words(x, lengths, self.vocab_info, most=self.max_length)
        states = self._read(ids, framed)
        return states.gather(1, firsts[..., None].expand(-1, -1, self.out_dim))

    def pairs(
        self, text1: Tensor, lengths1: Tensor, text2: Tensor, lengths2: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Reads two framed texts, :math:`(B,T)` and :math:`(B,U)`, as one.

        Returns:
            Vectors of both texts' tokens, :math:`(B,S,H)`, and real ones of each row, :math:`(B)`.
        """
        given = text1, lengths1, text2, lengths2
        ids, lengths, second = framed_pairs(*given, info=self.vocab_info, two_marks=self.two_marks)
        return self._read(ids, lengths, second if self.typed else None), lengths

    def _read(self, x: Tensor, lengths: Tensor, types: Tensor | None = None) -> Tensor:
        if isinstance(self.model, BertModel):
            vectors: Tensor = self.model(x, lengths, types)
            return vectors
        given = {"input_ids": x, "attention_mask": real_tokens(x, lengths).long()}
        if types is not None:
            given["token_type_ids"] = types
        out: Tensor = self.model(**given).last_hidden_state
        return out

    def begin(self, pooling: Pooling | None = None) -> str:
        """Takes the weights of ``path``; returns a line that says so.

        The pooling after it has weights there, too, if it is BERT's, by the first token.
        """
        beside = {"pooler.dense": pooling.dense} if isinstance(pooling, Pooler) else {}
        config = self.config
        return copy_weights(self.model, config.path, revision=config.revision, beside=beside)


def _encoder(made: Any, path: str) -> Any:
    import transformers

    masked = transformers.MODEL_FOR_MASKED_LM_MAPPING  # what reads a text from both sides
    if type(made) not in masked or made.is_encoder_decoder or getattr(made, "is_decoder", False):
        raise UserError(
            f"{path or 'The run'} is a {made.model_type!r:.40}, which is not an encoder of "
            "texts such as BERT, RoBERTa, DeBERTa, ELECTRA or ModernBERT. For a decoder such as "
            "GPT-2 take language/pretrained, for an encoder-decoder such as T5 "
            "translation/pretrained."
        )
    kind: Any = transformers.MODEL_MAPPING[type(made)]
    accepts = inspect.signature(kind).parameters
    extra = {"add_pooling_layer": False} if "add_pooling_layer" in accepts else {}
    return transformers.AutoModel.from_config(made, trust_remote_code=False, **extra).float()


def _counts_from_padding(model: nn.Module) -> bool:
    tables = [m for n, m in model.named_modules() if n.endswith("position_embeddings")]
    return any(isinstance(m, nn.Embedding) and m.padding_idx is not None for m in tables)


def framed_words(
    pieces: Tensor, lengths: Tensor, info: ModelVocabInfo, *, most: int | None = None
) -> tuple[Tensor, Tensor, Tensor]:
    """The pieces of each text's words, :math:`(B,T,P)`, in a row, between the marks of a text.

    Of a text with more pieces than ``most``, marks not counted, each word keeps as many of its
    first ones as fit; the words are as many as fit with one.

    Returns:
        Ids, :math:`(B,S)`, real ones of each row, :math:`(B)`, and where each word begins in its
        row, :math:`(B,T)`.
    """
    rows, words, places = pieces.shape
    real = (pieces != info.pad_idx) & real_tokens(pieces, lengths)[..., None]
    exporting = torch.compiler.is_exporting()  # then sizes are not known
    if most is not None and (exporting or words * places > most):
        totals = real.sum(1).cumsum(1)  # with 1, 2, ... places a word
        fits = (totals <= most).sum(1)
        real &= torch.arange(places, device=pieces.device) < fits[:, None, None]
    real = real.reshape(rows, -1)
    at = real.cumsum(1)  # after the mark that begins a text
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
    info: ModelVocabInfo,
    two_marks: bool,
) -> tuple[Tensor, Tensor, Tensor]:
    """Two framed texts as one row: ``[CLS] a [SEP] b [SEP]``, or ``<s> a </s></s> b </s>``.

    Arguments as of :meth:`PretrainedEncoder.pairs`; with ``two_marks`` it is the second.

    Returns:
        Ids, :math:`(B,S)`, real ones of each row, :math:`(B)`, and 1 at those of the second text,
        :math:`(B,S)`.
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
