"""What another run has elsewhere or otherwise: submodules, settings, rows of a vocabulary."""

import pytest
import torch
from torch import nn

from textmill.models.encoders.self_attention import SelfAttentionEncoder
from textmill.models.layers.word_embeddings import WordEmbedding
from textmill.models.lstm_seq2seq import LstmSeq2Seq
from textmill.models.masked_language_model import MaskedLanguageModel
from textmill.text.processors.language_model import MaskedText
from textmill.text.tokenizers.word_tokenizer import WordTokenizer
from textmill.training.initial_weights import moved_modules, other_settings, tables


def state(**shapes):
    return {name.replace("__", "."): torch.zeros(shape) for name, shape in shapes.items()}


@pytest.mark.parametrize(
    ("here", "there", "expected"),
    [
        (state(encoder__w=2), state(text__encoder__w=2), {"encoder": "text.encoder"}),
        (state(text__encoder__w=2), state(encoder__w=2), {"text.encoder": "encoder"}),
        (state(a__encoder__layers__w=2), state(encoder__layers__w=2), {"a.encoder": "encoder"}),
        # What has its own name there is nowhere else, whatever its shape.
        (state(encoder__w=2), state(text__encoder__w=2, encoder__w=3), {}),
        # One of another shape is found, and then not taken.
        (state(encoder__w=2), state(text__encoder__w=3), {"encoder": "text.encoder"}),
        # Of two places none is taken.
        (state(encoder__w=2), state(one__encoder__w=2, two__encoder__w=2), {}),
        (
            state(encoder__w=2),
            state(one__encoder__w=2, two__encoder__w=9),
            {"encoder": "one.encoder"},
        ),
        # A tensor alone is no submodule, and two levels are too far.
        (state(mask=2), state(text__mask=2), {}),
        (state(a__b__encoder__w=2), state(encoder__w=2), {}),
        ({}, state(encoder__w=2), {}),
    ],
)
def test_where_a_submodule_is_found(here, there, expected):
    assert moved_modules(here, there) == expected


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


TOKENIZER = WordTokenizer.Config(words=("a", "b", "c"), marks=True).build()
TEXT = MaskedText.of(TOKENIZER)


@pytest.mark.parametrize(("tie", "more"), [("none", True), ("decoder", False)])
def test_a_translator_has_tables_and_outputs(tie, more):
    model = LstmSeq2Seq.Config(dim=8, tie=tie).build(tokenizer=TOKENIZER)
    found = tables(model, TEXT)
    assert found == ["source.weight", "target.weight", "output_weight", "output_bias"]
    assert (model.output_weight is not model.target.weight) == more


@pytest.mark.parametrize("tie", [True, False])
def test_a_masked_model_has_a_table_and_outputs_below_any_name(tie):
    model = MaskedLanguageModel.Config(
        embedding=WordEmbedding.Config(dim=8),
        encoder=SelfAttentionEncoder.Config(num_heads=2),
        tie=tie,
    ).build(tokenizer=TOKENIZER)
    names = ["embedding.tokens.weight", "output_weight", "output_bias"]
    assert tables(nn.ModuleDict({"old": model}), TEXT) == [f"old.{name}" for name in names]
