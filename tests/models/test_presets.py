"""Presets have the published sizes."""

import dataclasses
from types import SimpleNamespace

import pytest
import torch
from transformers import M2M100Config, M2M100ForConditionalGeneration

from textmill.config.registry import UnknownNameError
from textmill.models.presets import preset, preset_names


def num_parameters(config, size):
    tokenizer = SimpleNamespace(vocab_info=SimpleNamespace(size=size, pad_idx=1))
    with torch.device("meta"):
        model = config.build(tokenizer=tokenizer)
    assert next(model.parameters()).device.type == "meta"
    return sum(parameter.numel() for parameter in model.parameters())


@pytest.mark.parametrize(
    ("name", "size", "millions"),
    [
        ("base", 37_000, 63),  # Vaswani et al. 2017 say 65: they round the vocabulary
        ("big", 37_000, 214),  # 213 there
        ("nllb/dense_600m", 256_206, 615),  # the model card of nllb-200-distilled-600M
        ("nllb/dense_1.3b", 256_206, 1371),
        ("nllb/dense_3.3b", 256_206, 3345),
    ],
)
def test_numbers_of_parameters_are_the_published_ones(name, size, millions):
    assert round(num_parameters(preset(name), size) / 1e6) == millions


@pytest.mark.parametrize("name", ["nllb/dense_600m", "nllb/dense_1.3b", "nllb/dense_3.3b"])
def test_numbers_of_parameters_are_those_of_transformers(name):
    config = preset(name)
    with torch.device("meta"):
        theirs = M2M100ForConditionalGeneration(
            M2M100Config(
                vocab_size=config.vocabulary_size,
                d_model=config.dim,
                encoder_layers=config.num_encoder_layers,
                decoder_layers=config.num_decoder_layers,
                encoder_ffn_dim=config.ffn_dim,
                decoder_ffn_dim=config.ffn_dim,
            )
        )
    wanted = sum(parameter.numel() for parameter in theirs.parameters())
    assert num_parameters(config, config.vocabulary_size) == wanted


@pytest.mark.parametrize("name", preset_names())
def test_every_preset_is_complete(name):
    assert preset(name).dim >= 16
    assert dataclasses.replace(preset(name), dim=64).dim == 64


def test_an_unknown_name_shows_those_there_are():
    with pytest.raises(UnknownNameError) as error:
        preset("nllb")
    assert str(error.value) == f"Unknown model preset 'nllb'. Known: {', '.join(preset_names())}."
