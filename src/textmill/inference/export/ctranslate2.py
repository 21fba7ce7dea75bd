"""CTranslate2 as a format of exports: generated text of the Transformer and of pretrained models.

The weights are the same under CTranslate2's names; its own converter makes the graphs of pretrained
models. A setting that CTranslate2 cannot express is refused by its name.
"""

import copy
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, fields
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Final

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from typing_extensions import override

from textmill.exported.ctranslate2 import ExportedSeq2Seq, names_of
from textmill.exported.formats import FORMATS
from textmill.exported.manifest import GRAPH, TEXT
from textmill.exported.seq2seq import Search
from textmill.inference.export.compare import LOG_PROBABILITIES, Comparison, answers_apart, compare
from textmill.inference.export.folder import ExportWriter, own_answers
from textmill.inference.load import Predictor
from textmill.models.causal_transformer import CausalTransformer
from textmill.models.decoders.pretrained import PretrainedLanguageModel
from textmill.models.decoders.pretrained_seq2seq import PretrainedSeq2Seq
from textmill.models.layers.attention import CrossAttention, MultiHead, SelfAttention
from textmill.models.layers.layer import Gated, Layer, LayerStack, Mlp
from textmill.models.layers.positions import PositionTable, RotaryPositions
from textmill.models.layers.word_embeddings import Embedding
from textmill.models.lora import merged
from textmill.models.transformer import Transformer
from textmill.tasks.language_model import LanguageModeling
from textmill.tasks.seq2seq import Seq2Seq, longest_input
from textmill.tasks.task import Row, Task
from textmill.text.tokenizers.tokenizer import VocabInfo

NEVER: Final = -1e9
"""Added to the score of a token that must never be generated."""
OFF: Final = {
    "sample": False,
    "repetition_penalty": 1.0,
    "no_repeat_ngram": 0,
    # CTranslate2 bans a token before it normalizes, so its scores rank otherwise.
    "min_length": 0,
    "unknown_penalty": 0.0,
}
"""Search settings that CTranslate2 cannot do, with the values that turn them off."""


class CTranslate2Writer(ExportWriter):
    """Writes what :mod:`textmill.exported.ctranslate2` reads."""

    @override
    def unsupported(self, task: Task) -> list[str]:
        if isinstance(task, Seq2Seq):
            off = OFF
        elif isinstance(task, LanguageModeling):
            # Its scores are of what is added; the unknown token is never an answer.
            off = {**OFF, "beam_size": 1}
            del off["unknown_penalty"]
        else:
            return ["it generates no text"]
        decoding = task.config.decoding
        problems = [
            f"task.decoding.{name} is {getattr(decoding, name)}"
            for name, value in off.items()
            if getattr(decoding, name) != value
        ]
        return [*problems, *own_answers(task), *refusals(task.module)]

    @override
    def write(self, task: Task, folder: Path, rows: Sequence[Row]) -> dict[str, Any]:
        assert isinstance(task, Seq2Seq | LanguageModeling), "others are refused"
        (folder / GRAPH).mkdir()
        task.text.save(folder / TEXT)
        write_graph(task, folder / GRAPH)
        longest = longest_input(task.module)
        assert longest is not None, "a module that was not refused says it"
        if isinstance(task, LanguageModeling):
            answers: Mapping[str, Any] = {"until": task.config.until}
        else:
            # The last id generated is never read, so it needs no position.
            longest, answers = longest - len(task.text.target_prefix) + 1, task.answer_settings
        names = [each.name for each in fields(Search) if each.name != "max_length"]
        shared = {name: getattr(task.config.decoding, name) for name in names}
        return {"search": asdict(Search(**shared, max_length=longest)), "answers": {**answers}}

    @override
    def quantize(self, task: Task, folder: Path) -> None:
        assert isinstance(task, Seq2Seq | LanguageModeling), "others are refused"
        write_graph(task, folder / GRAPH, "int8")

    @override
    def compare(
        self, predictor: Predictor, folder: Path, facts: Mapping[str, Any], rows: Sequence[Row]
    ) -> Comparison:
        exported = FORMATS["ctranslate2"].open(folder, facts, device="cpu")
        if isinstance(exported, ExportedSeq2Seq):
            return compare(rows, _texts_apart(predictor, exported, rows), LOG_PROBABILITIES)
        return compare(rows, answers_apart(predictor, exported, rows))


WRITER = CTranslate2Writer()


def _texts_apart(
    predictor: Predictor, exported: ExportedSeq2Seq, rows: Sequence[Row]
) -> Iterator[tuple[bool, float]]:
    """Of each row whether both texts are the same, and by how much the scores differ.

    The run and the export score the export's answer; the difference is per token, in nats.
    """
    task = predictor.task
    assert isinstance(task, Seq2Seq), "others are refused"
    sources, forced = exported.encoded(rows), exported.forced(rows)
    found = [hypotheses[:1] for hypotheses in exported.graph.find(sources, exported.search, forced)]
    answers = zip(predictor.answers(rows), exported.answers_of(found, rows), strict=True)
    power = exported.search.length_penalty
    for number, (ours, theirs) in enumerate(answers):
        source, [hypothesis] = sources[number], found[number]
        limit = exported.search.limit(len(source), len(forced[number]) if forced else 0)
        total, count = log_probability(task, source, hypothesis.ids, limit=limit)
        yield ours.text == theirs.text, abs(hypothesis.score * count**power - total) / count


@torch.inference_mode()
def log_probability(
    task: Seq2Seq, source: list[int], ids: list[int], *, limit: int
) -> tuple[float, int]:
    """The model's log-probability of a whole target, and the number of its tokens."""
    labels = [*ids, task.eos_idx] if len(ids) < limit else ids
    prefix = task.text.target_prefix
    device = task.device
    logits = task.module(
        torch.tensor([source], device=device),
        torch.tensor([len(source)], device=device),
        torch.tensor([[*prefix, *labels[:-1]]], device=device),
    )[0, len(prefix) - 1 :]
    banned = getattr(task.module, "banned", None)  # what is never answered
    if banned is not None and len(banned):
        logits = logits.index_fill(1, banned, -torch.inf)
    chosen = logits.float().log_softmax(dim=1)[torch.arange(len(labels)), torch.tensor(labels)]
    return float(chosen.sum()), len(labels)


def refusals(module: nn.Module) -> list[str]:
    """Why CTranslate2 cannot compute a module, a line for each reason; empty if it can."""
    if isinstance(module, PretrainedLanguageModel | PretrainedSeq2Seq):
        try:
            _pretrained_spec(module)
        except Exception as error:  # what its converter does not know ends in any way
            kind, why = module.model.config.model_type, f"{type(error).__name__}: {error}"
            return [
                f"the model is a {kind}, which CTranslate2's converter does not take ({why:.200})"
            ]
        return []
    if not isinstance(module, Transformer | CausalTransformer):
        found = type(module).__name__
        return [f"the model is a {found}; CTranslate2 runs the Transformer and pretrained models"]
    attention = module.config.attention
    if not isinstance(attention, MultiHead.Config):
        return [f"model.attention is a {kind_of(attention)}, not multi_head"]
    return []


def kind_of(config: Any) -> str:
    """The name of a component's class, from its Config."""
    owner = type(config).__qualname__.removesuffix(".Config")
    return owner or type(config).__name__


def write_graph(
    task: Seq2Seq | LanguageModeling, folder: Path, quantization: str | None = None
) -> None:
    """Writes ``model.bin``, ``config.json`` and the vocabularies; ``quantization`` may be int8."""
    module: Any = task.module
    vocab: VocabInfo = task.text.tokenizer.vocab_info
    with torch.no_grad():
        if isinstance(task, Seq2Seq):
            spec = _seq2seq_spec(module, vocab, task.text.target_prefix[0])
        elif isinstance(module, PretrainedLanguageModel):
            loader, spec = _pretrained_spec(module)
            names = names_of(vocab, rows=len(module.output_weight))
            marks = SimpleNamespace(
                bos_token=names[task.text.begin_idx], eos_token=names[vocab.eos_idx]
            )
            marks.unk_token, marks.pad_token = "<unk>", None
            loader.set_config(spec.config, module.model, marks)
            spec.register_vocabulary(names)
        else:
            spec = _causal_spec(module, vocab)
        spec.validate()
        spec.optimize(quantization)  # equal matrices are written once
        spec.save(str(folder))


def _seq2seq_spec(module: Transformer | PretrainedSeq2Seq, vocab: VocabInfo, start_idx: int) -> Any:
    """CTranslate2's description of an encoder-decoder.

    The vocabulary's names are the ids as text, except for the marks of targets: the text processor
    beside the graph turns text into ids. CTranslate2 is not told of the source's end mark, since it
    would answer an empty source with nothing.
    """
    if isinstance(module, PretrainedSeq2Seq):
        _, spec = _pretrained_spec(module)
        eps = getattr(module.model.config, "layer_norm_epsilon", 1e-5)
    else:
        from ctranslate2.specs.transformer_spec import (
            TransformerDecoderSpec,
            TransformerEncoderSpec,
            TransformerSpec,
        )

        config, source = module.config, _shared(module.config, module.source)
        encoder = TransformerEncoderSpec(config.num_encoder_layers, **source)
        if "rotary_dim" in source:
            del encoder.position_encodings  # the class of decoders leaves it out by itself
        target = _shared(config, module.target)
        spec = TransformerSpec(encoder, TransformerDecoderSpec(config.num_decoder_layers, **target))
        _fill_front(spec.encoder, spec.encoder.embeddings[0], module.source)
        _fill_front(spec.decoder, spec.decoder.embeddings, module.target)
        _fill_stack(spec.encoder, module.encoder)
        _fill_stack(spec.decoder, module.decoder)
        spec.decoder.projection.weight = _numbers(module.output_weight)
        eps = module.config.eps
    bias = torch.zeros(len(module.output_weight))
    if isinstance(module.output_bias, Tensor):
        bias += module.output_bias.detach().float().cpu()
    bias[module.banned.cpu()] = NEVER
    if bias.any():
        spec.decoder.projection.bias = bias.numpy()
    names = names_of(vocab, rows=len(bias))
    spec.register_source_vocabulary([str(i) for i in range(len(names))])
    spec.register_target_vocabulary(names)
    spec.config.add_source_eos = False  # the text processor has put it there
    spec.config.bos_token, spec.config.eos_token = names[vocab.bos_idx], names[vocab.eos_idx]
    spec.config.unk_token, spec.config.decoder_start_token = names[vocab.unk_idx], names[start_idx]
    spec.config.layer_norm_epsilon = eps
    return spec


def _causal_spec(module: CausalTransformer, vocab: VocabInfo) -> Any:
    from ctranslate2.specs.transformer_spec import (
        TransformerDecoderModelSpec,
        TransformerDecoderSpec,
    )

    config = module.config
    attention = config.attention
    assert isinstance(attention, MultiHead.Config), "others are refused"
    decoder = TransformerDecoderSpec(
        config.num_layers,
        **_shared(config, module.text),
        num_heads_kv=attention.num_kv_heads or config.num_heads,
        with_encoder_attention=False,
    )
    _fill_front(decoder, decoder.embeddings, module.text)
    _fill_stack(decoder, module.decoder)
    decoder.projection.weight = _numbers(module.output_weight)
    names = names_of(vocab, rows=len(module.output_weight))
    spec = TransformerDecoderModelSpec(decoder)
    spec.register_vocabulary(names)
    spec.config.bos_token = spec.config.eos_token = names[vocab.eos_idx]
    spec.config.unk_token = names[vocab.unk_idx if vocab.unk_idx < len(names) else vocab.eos_idx]
    spec.config.layer_norm_epsilon = config.eps
    return spec


def _shared(config: Any, front: Embedding) -> dict[str, Any]:
    from ctranslate2.specs.common_spec import Activation

    activation = {
        "relu": Activation.RELU,
        "gelu": Activation.GELU,
        "gelu_tanh": Activation.GELUTanh,
        "silu": Activation.SWISH,
    }
    turned, positions = dict[str, Any](), front.positions
    if isinstance(positions, RotaryPositions):
        turned = {"rotary_dim": positions.cos.shape[1], "rotary_base": positions.base}
        turned["rotary_interleave"] = False
    return {
        **turned,
        "num_heads": config.num_heads,
        "pre_norm": config.norm_order == "pre",
        "activation": activation[config.activation],
        "ffn_glu": config.feed_forward == "gated",
        "rms_norm": config.norm == "rms_norm",
    }


def _fill_front(side: Any, embeddings: Any, front: Embedding) -> None:
    embeddings.weight = _numbers(front.tokens.weight)
    side.scale_embeddings = front.scale != 1.0
    if isinstance(front.positions, PositionTable):
        side.position_encodings.encodings = _numbers(
            front.positions.table[front.positions.offset :]
        )


def _fill_stack(side: Any, stack: LayerStack) -> None:
    if not isinstance(stack.norm, nn.Identity):
        _fill_norm(side.layer_norm, stack.norm)
    for target, layer in zip(side.layer, stack.layers, strict=True):
        assert isinstance(layer, Layer)
        _fill_attention(target.self_attention, layer.get_submodule("attention"))
        _fill_norm(target.self_attention.layer_norm, layer.get_submodule("attention_residual.norm"))
        if hasattr(target, "attention"):
            _fill_attention(target.attention, layer.get_submodule("cross_attention"))
            norm = layer.get_submodule("cross_attention_residual.norm")
            _fill_norm(target.attention.layer_norm, norm)
        _fill_feed_forward(target.ffn, layer.get_submodule("feed_forward"))
        _fill_norm(target.ffn.layer_norm, layer.get_submodule("feed_forward_residual.norm"))


def _fill_attention(target: Any, module: nn.Module) -> None:
    """Copies an attention's projections, which both programs fuse in the same order."""
    assert isinstance(module, SelfAttention | CrossAttention)
    fused = [module.qkv] if isinstance(module, SelfAttention) else [module.q, module.kv]
    for linear, ours in zip(target.linear, [*fused, module.out], strict=True):
        _fill_linear(linear, ours)
    if not hasattr(target, "num_heads_kv"):  # the layer has no word for heads that share keys
        keys_values = target.linear[-2]  # before the output: with the queries, or alone
        for name in ("weight", "bias"):
            kept, shared = np.split(getattr(keys_values, name), [-2 * module.kv_dim])
            heads = shared.reshape(2, module.num_kv_heads, module.head_dim, -1)
            own = heads.repeat(module.heads.num_heads // module.num_kv_heads, axis=1)
            setattr(keys_values, name, np.concatenate([kept, own.reshape(-1, *shared.shape[1:])]))


def _fill_feed_forward(target: Any, block: nn.Module) -> None:
    if isinstance(block, Gated):
        _fill_linear(target.linear_0, block.gate)
        _fill_linear(target.linear_0_noact, block.inner)
    else:
        assert isinstance(block, Mlp)
        _fill_linear(target.linear_0, block.inner)
    _fill_linear(target.linear_1, block.outer)


def _fill_linear(target: Any, linear: nn.Linear) -> None:
    target.weight = _numbers(linear.weight)
    target.bias = _numbers(linear.bias)


def _fill_norm(target: Any, norm: nn.Module) -> None:
    target.gamma = _numbers(norm.get_parameter("weight"))
    if isinstance(norm, nn.LayerNorm):
        target.beta = _numbers(norm.get_parameter("bias"))


def _numbers(tensor: Tensor) -> NDArray[Any]:
    """A copy: CTranslate2 quantizes in place."""
    return np.array(tensor.detach().float().cpu().numpy(), order="C")


@torch.no_grad()
def _pretrained_spec(module: PretrainedLanguageModel | PretrainedSeq2Seq) -> tuple[Any, Any]:
    """CTranslate2's loader of a pretrained architecture, and its description of the model."""
    from ctranslate2.converters.transformers import _MODEL_LOADERS

    whole: Any = merged(module)
    kept = {id(tensor): tensor for tensor in [*whole.parameters(), *whole.buffers()]}
    model = copy.deepcopy(whole.model, kept)  # the converter takes parts out of it
    for name, value in _former(model).items():
        setattr(model.config, name, value)
    model.embed_out = model.get_output_embeddings()  # as GPT-NeoX's was called
    kind = type(model.config).__name__
    if isinstance(module, PretrainedSeq2Seq):
        model.config.tie_word_embeddings = module.scale != 1  # by which it knows what a T5 scales
        for name, value in (("normalize_before", False), ("normalize_embedding", True)):
            setattr(model.config, name, getattr(model.config, name, value))
        if kind == "MarianConfig":  # whose own loader takes the padding's row out
            model.config.normalize_embedding, kind = False, "BartConfig"
    loader = _MODEL_LOADERS[kind]
    return loader, loader.get_model_spec(model)


def _former(model: Any) -> dict[str, Any]:
    """Settings of rotary positions by their older names, which the converter reads."""
    found = getattr(model.config, "rope_parameters", None) or {}
    told = {"rope_theta": found.get("rope_theta"), "rotary_pct": found.get("partial_rotary_factor")}
    scaled = found.get("rope_type", "default") != "default"
    told["rope_scaling"] = found if scaled else None
    return {name: value for name, value in told.items() if value is not None}
