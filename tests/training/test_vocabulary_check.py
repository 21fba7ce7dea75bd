"""Which tensors have a row for each token."""

import pytest
from torch import nn

from textmill.models.encoders.self_attention import SelfAttentionEncoder
from textmill.models.layers.word_embeddings import WordEmbedding
from textmill.models.lstm_seq2seq import LstmSeq2Seq
from textmill.models.masked_language_model import MaskedLanguageModel
from textmill.text.processors.language_model import MaskedText
from textmill.text.tokenizers.word_tokenizer import WordTokenizer
from textmill.training.initial_weights import difference, tables

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


def test_a_text_path_without_pieces_differs_from_none():
    assert difference(TEXT, None) is None
    assert difference(TEXT, TEXT) is None
