"""The Transformer's settings, its errors and its weights."""

from types import SimpleNamespace

import pytest
import torch

from weft.config import registries
from weft.errors import UserError
from weft.models.transformer import Transformer


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
