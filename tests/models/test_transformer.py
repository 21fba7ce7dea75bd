"""The Transformer's settings, its errors and its weights."""

import re
from types import SimpleNamespace

import pytest
import torch

from textmill.config.merge import Settings
from textmill.config.parameters import Parameter
from textmill.config.values.typed_values import plain
from textmill.config.values.yaml_files import dump_yaml, yaml_nodes
from textmill.errors import UserError
from textmill.models.layers.attention import MultiHead, TalkingHeads
from textmill.models.transformer import Transformer


def read(text):
    """The settings of a model as a file has them, and what is wrong with them."""
    settings = Settings()
    nodes = [yaml_nodes(text, source="model.yaml")] if text else []
    default = Parameter("model", Transformer.Config, Transformer.Config())
    model = settings.layered(Transformer.Config, default, nodes, "model")
    return model, [p.message for p in settings.problems]


def test_sizes_are_filled_from_the_tokenizer(build):
    assert build(size=31, pad_idx=4).config.vocabulary_size == 31
    assert build(size=31, pad_idx=4).config.pad_idx == 4
    assert build(size=31, pad_idx=4, vocabulary_size=31).config.pad_idx == 4


@pytest.mark.parametrize("written", [{"vocabulary_size": 7}, {"pad_idx": 3}])
def test_another_vocabulary_than_the_tokenizer_s_is_refused(written):
    tokenizer = SimpleNamespace(vocab_info=SimpleNamespace(size=50, pad_idx=0))
    with pytest.raises(UserError, match=f"model.{next(iter(written))} is "):
        Transformer.Config(**written).build(tokenizer=tokenizer)


@pytest.mark.parametrize(
    ("settings", "named"),
    [
        ({"num_heads": 3}, "model.num_heads.* 16 and num_heads 3"),
        ({"num_decoder_layers": 0}, "model.num_decoder_layers"),
        ({"dim": 15, "num_heads": 3}, "dim is 15"),
        ({"dim": 12, "num_heads": 4, "positions": "rotary"}, "an even number, but has 3"),
        ({"position_offset": -1}, "model.position_offset"),
    ],
)
def test_settings_that_cannot_work_are_refused(build, settings, named):
    with pytest.raises(UserError, match=named):
        build(**settings)


def test_texts_that_do_not_fit_are_refused(build):
    model = build(max_length=6)
    with pytest.raises(UserError, match="7 tokens is longer than the model's max_length of 6"):
        model(torch.ones(1, 7).long(), None, torch.ones(1, 2).long())
    with pytest.raises(UserError, match=r"source_lengths .*\(1,\) and source's \(2, 3\)"):
        model.encode(torch.ones(2, 3).long(), torch.tensor([3]))


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
    assert not qkv.bias.any()


def test_layers_are_as_the_settings_say(build):
    model = build(
        num_heads=4, attention=MultiHead.Config(num_kv_heads=1), attention_dropout=0.3,
        feed_forward="gated", activation="gelu", norm="rms_norm", norm_eps=1e-4, norm_order="post",
        dropout=0.4, positions="rotary", rotary_base=500.0,
    )  # fmt: skip
    for layer in (*model.encoder.layers, *model.decoder.layers):
        assert layer.attention.heads.dropout == 0.3
        assert layer.attention.qkv.weight.shape == (16 + 4 + 4, 16)
        assert layer.feed_forward.gate.weight.shape == (32, 16)
        assert isinstance(layer.feed_forward_residual.norm, torch.nn.RMSNorm)
        assert layer.feed_forward_residual.norm.eps == 1e-4
        assert (layer.attention_residual.order, layer.attention_residual.dropout.p) == ("post", 0.4)
    assert model.decoder.layers[0].cross_attention.kv.weight.shape == (8, 16)
    assert model.decoder.layers[0].attention.positions is model.target.positions
    assert model.target.positions.base == 500.0
    assert isinstance(model.encoder.norm, torch.nn.Identity)


TALKING_GATED = """
attention: {type: talking_heads}
feed_forward: gated
norm: rms_norm
positions: rotary
"""


def test_a_model_that_was_built_reads_back_as_itself():
    config, problems = read(TALKING_GATED)
    assert problems == []
    assert config == Transformer.Config(
        attention=TalkingHeads.Config(), feed_forward="gated", norm="rms_norm", positions="rotary"
    )
    tokenizer = SimpleNamespace(vocab_info=SimpleNamespace(size=50, pad_idx=0))
    built = config.build(tokenizer=tokenizer).config
    again, problems = read(dump_yaml({k: v for k, v in plain(built).items() if k != "type"}))
    assert problems == []
    assert again == built != config


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("attention: {type: talking}", "model.attention.type.*'talking_heads'"),
        ("feed_forward: talking_heads", "model.feed_forward"),
        ("norm_eps: 0", "model.norm_eps must be positive"),
        ("attention: {num_kv_heads: 3}", "divisible by attention.num_kv_heads"),
        ("dropout: 1.5", "model.dropout must be from 0 to below 1"),
    ],
)
def test_what_is_wrong_with_a_layer_is_said_before_anything_runs(text, named):
    (problem,) = read(text)[1]
    assert re.search(named, problem)
