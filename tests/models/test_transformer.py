"""The Transformer's settings, its errors and its weights."""

from types import SimpleNamespace

import pytest
import torch

from textmill.config.merge import Settings
from textmill.config.parameters import Parameter
from textmill.config.values.typed_values import plain
from textmill.config.values.yaml_files import dump_yaml, yaml_nodes
from textmill.errors import UserError
from textmill.models.decoders.transformer import TransformerDecoder, TransformerDecoderLayer
from textmill.models.encoders.self_attention import TransformerEncoder
from textmill.models.layers.attention import MultiHead, TalkingHeads
from textmill.models.layers.feed_forward import Gated, Mlp
from textmill.models.layers.layer import SelfAttentionLayer
from textmill.models.layers.norms import LayerNorm, RMSNorm
from textmill.models.layers.positions import LearnedPositions, RotaryPositions, SinusoidalPositions
from textmill.models.transformer import Transformer
from textmill.recipes import registries


def read(text):
    """The settings of a model as a file has them, and what is wrong with them."""
    settings = Settings()
    nodes = [yaml_nodes(text, source="model.yaml")] if text else []
    default = Parameter("model", Transformer.Config, Transformer.Config())
    return settings.resolve(default, nodes, "model"), [p.message for p in settings.problems]


def decoder_layer(**blocks):
    return TransformerDecoder.Config(layer=TransformerDecoderLayer.Config(**blocks))


def encoder_layer(**blocks):
    return TransformerEncoder.Config(layer=SelfAttentionLayer.Config(**blocks))


def test_it_is_registered():
    assert registries.models.get("transformer") is Transformer


def test_sizes_are_filled_from_the_tokenizer(build):
    assert build(size=31, pad_idx=4).config.vocabulary_size == 31
    assert build(size=31, pad_idx=4).config.pad_idx == 4
    assert build(size=31, pad_idx=4, vocabulary_size=31).config.pad_idx == 4


@pytest.mark.parametrize(
    ("written", "found"),
    [
        ({"vocabulary_size": 7}, "vocabulary_size is 7, but the tokenizer's is 50"),
        ({"pad_idx": 3}, "pad_idx is 3, but the tokenizer's is 0"),
    ],
)
def test_another_vocabulary_than_the_tokenizer_s_is_refused(written, found):
    tokenizer = SimpleNamespace(vocab_info=SimpleNamespace(size=50, pad_idx=0))
    with pytest.raises(UserError) as error:
        Transformer.Config(**written).build(tokenizer=tokenizer)
    assert str(error.value) == (
        f"model.{found}. Leave model.{next(iter(written))} out to take the tokenizer's, "
        "or use the tokenizer that the model was made for."
    )


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (
            {"num_heads": 3},
            "model.dim must be divisible by model.num_heads, but dim is 16 and num_heads 3.",
        ),
        ({"num_decoder_layers": 0}, "model.num_decoder_layers must be at least 1, but is 0."),
        ({"dropout": 1.0}, "model.dropout must be from 0 to below 1, but is 1.0."),
        (
            {"dim": 15, "num_heads": 3},
            "Sinusoidal positions need an even dim of at least 4, but dim is 15.",
        ),
        (
            {"dim": 12, "num_heads": 4, "positions": "rotary"},
            "Rotary positions turn pairs of features: a head must have an even number, but has 3 "
            "(model.dim 12 over 4 heads).",
        ),
    ],
)
def test_settings_that_cannot_work_are_refused(build, settings, message):
    with pytest.raises(UserError) as error:
        build(**settings)
    assert str(error.value) == message


def test_a_sequence_over_max_length_is_refused(build):
    model = build(max_length=6)
    with pytest.raises(UserError) as error:
        model(torch.ones(1, 7).long(), None, torch.ones(1, 2).long())
    assert str(error.value) == (
        "A sequence of 7 tokens is longer than the model's max_length of 6. "
        "Shorten it, or build the model with a larger max_length."
    )


def test_lengths_must_fit_the_rows(build):
    with pytest.raises(UserError) as error:
        build().encode(torch.ones(2, 3).long(), torch.tensor([3]))
    assert str(error.value) == (
        "source_lengths must have one length a row of source, "
        "but its shape is (1,) and source's (2, 3)."
    )


@pytest.mark.parametrize(("tie", "matrices"), [("all", 1), ("decoder", 2), ("none", 3)])
def test_tied_matrices_are_one_parameter(build, tie, matrices):
    model = build(tie=tie)
    found = [p for p in model.parameters() if p.shape == (50, 16)]
    assert len(found) == matrices
    assert (model.output_weight is model.target.tokens.weight) == (tie != "none")


def test_no_mask_is_made_where_there_is_no_padding(build):
    model, source = build(), torch.ones(2, 3).long()
    assert model.encode(source, torch.tensor([3, 3])).mask is None
    assert model.encode(source, None).mask is None
    mask = model.encode(source, torch.tensor([3, 1])).mask
    assert mask.tolist() == [[[[True, True, True]]], [[[True, False, False]]]]


def test_weights_start_at_the_scale_they_say(build):
    model = build(size=2000, dim=64)
    assert model.source.tokens.weight.std().item() == pytest.approx(64**-0.5, rel=0.02)
    assert not model.source.tokens.weight[0].any()  # the padding's
    qkv = model.encoder.layers[0].attention.qkv
    assert qkv.weight.abs().max().item() == pytest.approx((6 / 128) ** 0.5 * 2**-0.5, rel=0.01)
    inner = model.encoder.layers[0].feed_forward.inner
    assert inner.weight.abs().max().item() == pytest.approx((6 / 96) ** 0.5, rel=0.01)
    assert not qkv.bias.any()
    assert not inner.bias.any()


def test_dropout_is_for_training_only(build):
    model = build(dropout=0.5)
    args = torch.ones(2, 3).long(), None, torch.ones(2, 3).long()
    assert torch.equal(model(*args), model(*args))
    model.train()
    assert not torch.equal(model(*args), model(*args))


# --- blocks -------------------------------------------------------------------------------------


def test_blocks_are_as_the_model_s_settings_say(build):
    config = build(
        activation="gelu", dropout=0.2, attention_dropout=0.1, norm_order="post",
        positions="learned", position_offset=2,
    ).config  # fmt: skip
    attention = MultiHead.Config(num_heads=2, dropout=0.1)
    blocks = {
        "attention": attention,
        "feed_forward": Mlp.Config(ffn_dim=32, activation="gelu"),
        "norm": LayerNorm.Config(),
        "norm_order": "post",
        "dropout": 0.2,
    }
    positions = LearnedPositions.Config(offset=2)
    assert config.encoder == TransformerEncoder.Config(
        positions=positions, layer=SelfAttentionLayer.Config(**blocks)
    )
    assert config.decoder == TransformerDecoder.Config(
        positions=positions,
        layer=TransformerDecoderLayer.Config(**blocks, cross_attention=attention),
    )


def test_a_block_s_own_settings_count(build):
    model = build(
        encoder=encoder_layer(
            attention=TalkingHeads.Config(num_heads=4, dropout=0.3),
            feed_forward=Gated.Config(ffn_dim=24, activation="gelu"),
            norm=RMSNorm.Config(eps=1e-4),
            norm_order="post",
            dropout=0.4,
        ),
        decoder=TransformerDecoder.Config(
            positions=RotaryPositions.Config(base=500.0),
            layer=TransformerDecoderLayer.Config(attention=MultiHead.Config(num_kv_heads=1)),
        ),
    )
    layer = model.encoder.layers[0]
    assert isinstance(layer.attention.heads, TalkingHeads)
    assert (layer.attention.num_heads, layer.attention.heads.dropout) == (4, 0.3)
    assert layer.feed_forward.gate.weight.shape == (24, 16)
    assert isinstance(layer.feed_forward_residual.norm, RMSNorm)
    assert layer.feed_forward_residual.norm.eps == 1e-4
    assert (layer.attention_residual.order, layer.attention_residual.dropout.p) == ("post", 0.4)
    assert isinstance(model.encoder.norm, torch.nn.Identity)
    assert isinstance(model.source.positions, SinusoidalPositions)
    other = model.decoder.layers[0]
    assert isinstance(model.decoder.norm, LayerNorm)
    assert isinstance(other.feed_forward, Mlp)
    assert other.attention.positions is model.target.positions
    assert other.attention.qkv.weight.shape == (16 + 8 + 8, 16)
    assert other.cross_attention.kv.weight.shape == (32, 16)


def test_names_of_parameters_tell_the_layer(build):
    names = [name for name, _ in build(tie="none").named_parameters()]
    for side in ("encoder", "decoder"):
        inside = [name.split(".")[:3] for name in names if name.startswith(f"{side}.layers")]
        assert {tuple(parts) for parts in inside} == {(side, "layers", "0"), (side, "layers", "1")}
    outside = {name.split(".")[0] for name in names if ".layers." not in name}
    assert outside == {"source", "target", "encoder", "decoder", "output_weight"}


TALKING_GATED = """
encoder:
  layer:
    attention: {type: talking_heads}
    feed_forward: {type: gated, activation: gelu}
decoder:
  positions: {type: rotary}
  layer: {norm: {type: rms_norm}, cross_attention: {num_kv_heads: 2}}
"""


def test_a_file_names_blocks_by_type():
    config, problems = read(TALKING_GATED)
    assert problems == []
    assert config.encoder == encoder_layer(
        attention=TalkingHeads.Config(), feed_forward=Gated.Config(activation="gelu")
    )
    assert config.decoder == TransformerDecoder.Config(
        positions=RotaryPositions.Config(),
        layer=TransformerDecoderLayer.Config(
            norm=RMSNorm.Config(), cross_attention=MultiHead.Config(num_kv_heads=2)
        ),
    )
    assert config.decoder.layer.attention == MultiHead.Config()


def test_a_model_that_was_built_reads_back_as_itself():
    config, _ = read(TALKING_GATED)
    tokenizer = SimpleNamespace(vocab_info=SimpleNamespace(size=50, pad_idx=0))
    built = config.build(tokenizer=tokenizer).config
    assert built != config
    again, problems = read(dump_yaml({k: v for k, v in plain(built).items() if k != "type"}))
    assert problems == []
    assert again == built
    assert again.build(tokenizer=tokenizer).config == built


def test_a_saved_model_from_before_there_were_blocks_is_read():
    old = {
        "dim": 64, "num_encoder_layers": 2, "num_decoder_layers": 1, "num_heads": 4, "ffn_dim": 96,
        "dropout": 0.1, "attention_dropout": 0.0, "activation": "silu", "norm_order": "post",
        "positions": "sinusoidal_tensor2tensor", "position_offset": 2, "max_length": 99,
    }  # fmt: skip
    config, problems = read(dump_yaml(old))
    assert problems == []
    assert config == Transformer.Config(**old)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "encoder: {layer: {attention: {type: talking}}}",
            "model.encoder.layer.attention.type: no attention is named 'talking'. "
            "Did you mean 'talking_heads'? Known: multi_head, talking_heads.",
        ),
        (
            "encoder: {layer: {feed_forward: {type: talking_heads}}}",
            "model.encoder.layer.feed_forward.type: no feed_forward is named "
            "'talking_heads'. Known: gated, mlp.",
        ),
        (
            "decoder: {layer: {norm: {type: rms_norm, eps: 0}}}",
            "model.decoder.layer.norm: eps must be over 0 and finite, but is 0.0.",
        ),
        (
            "decoder: {layer: {cross_attention: {num_heads: 3}}}",
            "model: model.dim must be divisible by model.decoder.layer.cross_attention.num_heads, "
            "but dim is 128 and num_heads 3.",
        ),
        (
            "encoder: {layer: {attention: {num_kv_heads: 3}}}",
            "model: model.encoder.layer.attention: num_heads must be divisible by num_kv_heads, "
            "but is 4, and num_kv_heads 3.",
        ),
        (
            "encoder: {layer: {dropout: 1.5}}",
            "model.encoder.layer: dropout must be from 0 to below 1, but is 1.5.",
        ),
    ],
)
def test_what_is_wrong_with_a_block_is_said_before_anything_runs(text, message):
    assert read(text)[1] == [message]
