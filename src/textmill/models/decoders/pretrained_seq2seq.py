"""Encoder-decoders that were trained before, on much text, by others: any that transformers has."""

import dataclasses
from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn
from typing_extensions import override

from textmill.errors import UserError
from textmill.models import registries
from textmill.models.decoder_state import DecoderMemory, length_mask
from textmill.models.layers.linear import TokenScores
from textmill.models.lora import add_adapters
from textmill.models.pretrained import (
    PretrainedConfig,
    banned_ids,
    building,
    copy_weights,
    pretrained_config,
    vocabulary_of,
)
from textmill.models.vocabulary import HasVocabInfo

_POSITIONS = (
    "max_position_embeddings",
    *("max_encoder_position_embeddings", "max_decoder_position_embeddings"),  # LED
)
"""What architectures call the most tokens that there are positions for."""
_APART = ("mt5", "umt5")
"""Architectures whose scores have a matrix of their own, whatever their settings say."""
_PROBE = 3
"""Tokens of which the scores of a new model are looked at."""
_ALIKE = 1e-3
"""Share of the largest score by which those of one text may differ, computed in two ways."""


class PretrainedSeq2SeqState:
    """Keys and values of what a decoder read, and of its memory, which the rows of a group share.

    Both are in caches of transformers, of each layer :math:`(B,H,S,K)` and :math:`(B,H,T,K)`; a
    mask is True at real positions of the memory, None if all are, :math:`(B,S)`.
    """

    def __init__(self, memory: Any, mask: Tensor | None, read: Any) -> None:
        self.memory, self.mask, self.read = memory, mask, read
        self._grouped = False

    def __len__(self) -> int:
        return len(self.memory.layers[0].keys)

    def repeat(self, times: int) -> None:
        self._grouped = True
        rows = torch.arange(len(self)).repeat_interleave(times)
        self._select(rows.to(self.memory.layers[0].keys.device), memory=True)

    def select(self, indices: Tensor, *, groups: Tensor | None = None) -> None:
        self._select(indices, memory=groups is not None or not self._grouped)

    def _select(self, indices: Tensor, *, memory: bool) -> None:
        if self.read.get_seq_length():
            self.read.batch_select_indices(indices)
        if memory:
            self.memory.batch_select_indices(indices)
            self.mask = None if self.mask is None else self.mask.index_select(0, indices)


@registries.models.register("pretrained_seq2seq")
class PretrainedSeq2Seq(TokenScores):
    """An encoder-decoder of Hugging Face's transformers: BART, T5, Marian, M2M-100, NLLB, ...

    It reads and writes texts with its own tokenizer (``tokenizer.type=pretrained``). A fresh run
    begins with the weights of ``path``; the run keeps the architecture and its own weights. Weights
    are safetensors, and no code is run that transformers does not have. What the checkpoint bans
    from answers alone (``bad_words_ids``: Marian's padding) has no probability there.

    Source: Lewis et al. 2020, "BART"; Raffel et al. 2020, "T5"; Junczys-Dowmunt et al. 2018,
    "Marian"; Fan et al. 2021, "M2M-100".
    """

    class Config(PretrainedConfig):
        """Where the model comes from."""

    def __init__(self, config: Config, *, tokenizer: HasVocabInfo) -> None:
        nn.Module.__init__(self)
        vocab = tokenizer.vocab_info
        architecture = config.read_architecture()
        architecture["vocab_size"] = max(vocab.size, vocabulary_of(architecture, config.path))
        architecture |= {
            "pad_token_id": vocab.pad_idx,
            "decoder_vocab_size": architecture["vocab_size"],
        }
        made = _settings(architecture, config.path)
        config.set_dropout(architecture, made)
        self.config = dataclasses.replace(config, architecture=architecture)
        banned = torch.tensor(banned_ids(architecture, config.path), dtype=torch.int64)
        self.register_buffer("banned", banned, persistent=False)
        with building(architecture, config):
            self.model = _model(made, architecture)
        self.scale = 1.0
        """What states are multiplied by before they are scored: T5's are."""
        self.scale = self._found_scale(config.path)
        if config.lora is not None:
            add_adapters(self.model, config.lora)

    banned: Tensor

    @property
    @override
    def output_weight(self) -> Tensor:  # type: ignore[override]  # it has a name of its own there
        weight: Tensor = self.model.get_output_embeddings().weight
        return weight

    @property
    @override
    def output_bias(self) -> Tensor | None:  # type: ignore[override]
        bias: Tensor | None = getattr(self.model, "final_logits_bias", None)
        return None if bias is None else bias[0]

    @property
    def max_length(self) -> int:
        """Longest source or target, in tokens; a million where there are no positions (T5)."""
        found = (getattr(self.model.config, name, None) for name in _POSITIONS)
        return min((int(most) for most in found if most), default=1_000_000)

    @override
    def forward(self, source: Tensor, source_lengths: Tensor | None, target_in: Tensor) -> Tensor:
        """Scores the next token, as :meth:`textmill.models.transformer.Transformer.forward`."""
        return self.project(self.hidden(source, source_lengths, target_in))

    def hidden(self, source: Tensor, source_lengths: Tensor | None, target_in: Tensor) -> Tensor:
        memory = self.encode(source, source_lengths)
        return self._decoded(target_in, memory.states, _of_rows(memory.mask), use_cache=False)

    def encode(self, source: Tensor, source_lengths: Tensor | None) -> DecoderMemory:
        mask = length_mask(source, source_lengths)
        encoder: Any = self.model.get_encoder()
        read = encoder(input_ids=source, attention_mask=_of_rows(mask))
        return DecoderMemory(read.last_hidden_state, mask)

    def start(self, memory: DecoderMemory) -> PretrainedSeq2SeqState:
        """A state in which nothing of the target was read: the memory is projected, once."""
        from transformers import DynamicCache, EncoderDecoderCache

        first = memory.states.new_zeros((len(memory.states), 1), dtype=torch.int64)
        cache, mask = EncoderDecoderCache(DynamicCache(), DynamicCache()), _of_rows(memory.mask)
        self._decoded(first, memory.states, mask, past_key_values=cache, use_cache=True)
        return PretrainedSeq2SeqState(cache.cross_attention_cache, mask, DynamicCache())

    def step(self, tokens: Tensor, state: PretrainedSeq2SeqState) -> Tensor:
        """Reads a token of each row. *Shape:* :math:`(B)` to logits :math:`(B,V)`."""
        logits = self.project(self._read(tokens[:, None], state)[:, 0])
        return logits.index_fill(1, self.banned, -torch.inf) if len(self.banned) else logits

    def begin(self) -> str:
        return copy_weights(self.model, self.config.path, revision=self.config.revision)

    def _read(self, tokens: Tensor, state: PretrainedSeq2SeqState) -> Tensor:
        from transformers import EncoderDecoderCache

        keys = state.memory.layers[0].keys
        # Only how long the memory is is looked at, for its keys and values are there.
        length = keys.new_empty(()).expand(len(keys), keys.shape[2], 1)
        cache = EncoderDecoderCache(state.read, state.memory)
        given = {"past_key_values": cache, "use_cache": True}
        return self._decoded(tokens, length, state.mask, **given)

    def _decoded(self, tokens: Tensor, memory: Tensor, mask: Tensor | None, **cache: Any) -> Tensor:
        given = {"encoder_hidden_states": memory, "encoder_attention_mask": mask}
        decoder: Any = self.model.get_decoder()
        out: Tensor = decoder(input_ids=tokens, **given, **cache).last_hidden_state
        return out if self.scale == 1 else out * self.scale

    def _found_scale(self, path: str) -> float:
        """What states are multiplied by, so that a matrix makes the model's scores of them."""
        if self.output_weight.is_meta:  # only its shapes are asked for
            return 1.0
        self.eval()
        try:
            found = self._probed()
        except Exception as error:  # each architecture has ways of its own
            raise _refusal(self.model.config, path) from error
        self.train()
        if found is None:
            raise _refusal(self.model.config, path)
        return found

    @torch.no_grad()
    def _probed(self) -> float | None:
        pad = self.model.config.pad_token_id  # which has no position in an M2M-100
        ids = torch.tensor([[i for i in range(_PROBE + 1) if i != pad][:_PROBE]])
        wanted = self.model(input_ids=ids, decoder_input_ids=ids, use_cache=False).logits
        state = self.start(self.encode(ids, None))
        read = [self._read(ids[:, place : place + 1], state) for place in range(_PROBE)]
        whole = self.hidden(ids, None, ids)
        for scale in (1.0, whole.shape[-1] ** -0.5):
            made = (self.project(states * scale) for states in (whole, torch.cat(read, dim=1)))
            apart = max(float((scores - wanted).abs().max()) for scores in made)
            if apart <= _ALIKE * float(wanted.abs().max()):
                return scale
        return None


def _of_rows(mask: Tensor | None) -> Tensor | None:
    """A mask as transformers has it. *Shape:* :math:`(B,1,1,S)` to :math:`(B,S)`."""
    return None if mask is None else mask[:, 0, 0].long()


def _settings(architecture: Mapping[str, Any], path: str) -> Any:
    made = pretrained_config(architecture, path, needed_by="model.type=pretrained_seq2seq")
    import transformers

    if type(made) not in transformers.MODEL_FOR_SEQ_TO_SEQ_CAUSAL_LM_MAPPING:
        raise _refusal(made, path)
    return made


def _model(made: Any, architecture: Mapping[str, Any]) -> Any:
    import transformers

    kind: Any = transformers.AutoModelForSeq2SeqLM
    model = kind.from_config(made, trust_remote_code=False).float()
    # transformers ties these of every T5, and undoes it where a file has both.
    apart = (
        architecture.get("tie_word_embeddings") is False
        or architecture.get("scale_decoder_outputs") is False
    )
    head = model.get_output_embeddings()
    if (apart or made.model_type in _APART) and head.weight is model.get_input_embeddings().weight:
        head.weight = nn.Parameter(head.weight.detach().clone())
    return model


def _refusal(made: Any, path: str) -> UserError:
    return UserError(
        f"{path or 'The run'} is a {made.model_type!r:.40}, which is not an encoder-decoder of "
        "texts that scores a token by a matrix, such as BART, T5, FLAN-T5, mT5, Marian, M2M-100 or "
        "NLLB. For an encoder such as BERT take classification/pretrained, for a decoder such as "
        "GPT-2 language/pretrained."
    )
