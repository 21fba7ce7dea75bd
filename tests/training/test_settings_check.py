"""Settings that no tensor shows are compared with those that another run keeps."""

import pytest
from torch import nn

from textmill.models.encoders.self_attention import SelfAttentionEncoder
from textmill.training.initial_weights import other_settings

SAVED = """settings:
  model:
    type: masked_language_model
    tie: true
    encoder:
      type: self_attention
      num_heads: 2
      positions: rotary
      dropout: 0.5
      max_length: 99
      norm: rms_norm
"""


def module(**settings):
    encoder = SelfAttentionEncoder.Config(**{"num_heads": 2, "positions": "rotary"} | settings)
    return nn.ModuleDict({"text": nn.ModuleDict({"encoder": encoder.build(dim=8)})})


@pytest.fixture
def run(tmp_path):
    (tmp_path / "config.yaml").write_text(SAVED)
    return tmp_path


TAKEN = {"text.encoder.layers.x": "encoder.layers.x"}
NORM = "text.encoder.norm is layer_norm here and rms_norm there"


@pytest.mark.parametrize("place", ["", "modules", "checkpoints/step-00000001"])
def test_what_differs_is_named(run, place):
    found = other_settings(run / place, module(num_heads=4, positions="sinusoidal"), TAKEN)
    assert found == [
        "text.encoder.num_heads is 4 here and 2 there",
        NORM,
        "text.encoder.positions is sinusoidal here and rotary there",
    ]


def test_settings_are_those_of_the_name_there(run):
    (run / "config.yaml").write_text(SAVED.replace("    encoder:", "    old:"))
    assert other_settings(run, module(num_heads=4), TAKEN) == []
    found = other_settings(run, module(num_heads=4), {"text.encoder.x": "text.old.x"})
    assert found == ["text.encoder.num_heads is 4 here and 2 there", NORM]


@pytest.mark.parametrize("saved", ["", "settings: {model: 3}", "settings: [", "built: {}"])
def test_a_source_without_settings_is_not_compared(run, saved):
    (run / "config.yaml").write_text(saved)
    assert other_settings(run, module(), TAKEN) == []
    (run / "config.yaml").unlink()
    assert other_settings(run, module(), TAKEN) == []
