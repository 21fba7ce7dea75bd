"""The masked language model: what it reads of a mask, what it scores, and its weights."""

import dataclasses
from types import SimpleNamespace

import pytest
import torch

from textmill.errors import UserError
from textmill.models.encoders.lstm import LstmEncoder
from textmill.models.encoders.self_attention import SelfAttentionEncoder
from textmill.models.layers.word_embeddings import WordEmbedding
from textmill.models.masked_language_model import MaskedLanguageModel

SIZE = 11
MASK = SIZE
TOKENIZER = SimpleNamespace(vocab_info=SimpleNamespace(size=SIZE, pad_idx=0, unk_idx=1))
EMBEDDING = WordEmbedding.Config(dim=8)
ATTENTION = SelfAttentionEncoder.Config(num_layers=1, num_heads=2, ffn_dim=16, dropout=0.0)


def make(**settings):
    torch.manual_seed(0)
    config = MaskedLanguageModel.Config(**{"embedding": EMBEDDING, "encoder": ATTENTION} | settings)
    return config.build(tokenizer=TOKENIZER)


def test_a_mask_is_read_by_a_vector_of_its_own_whatever_it_hides():
    model = make()
    ids = torch.tensor([[5, MASK, 7]])
    before = model.hidden(ids)
    with torch.no_grad():
        model.embedding.tokens.weight[[1, 2, 3, 4, 6, 8, 9, 10]] += 1.0
        assert torch.equal(model.hidden(ids), before)
        model.mask += torch.linspace(0, 1, 8)
        assert not torch.allclose(model.hidden(ids), before)
        assert torch.equal(model.hidden(ids[:, :1]), make().hidden(ids[:, :1]))


def test_padding_has_no_effect():
    model = make()
    alone = model(torch.tensor([[5, MASK]]))
    padded = model(torch.tensor([[5, MASK, 0, 0], [5, 6, 7, 8]]), torch.tensor([2, 4]))
    assert torch.allclose(padded[0, :2], alone[0], atol=1e-6)


def test_tokens_are_scored_by_their_own_vectors_or_by_others():
    tied, untied = make(), make(tie=False)
    assert tied.output_weight is tied.embedding.tokens.weight
    assert untied.output_weight is not untied.embedding.tokens.weight
    count = [sum(p.numel() for p in model.parameters()) for model in (tied, untied)]
    assert count[1] - count[0] == SIZE * 8
    states = torch.randn(3, 8)
    wanted = tied.head(states) @ tied.embedding.tokens.weight.T + tied.output_bias
    assert torch.allclose(tied.project(states), wanted, atol=1e-6)


@pytest.mark.parametrize("positions", ["sinusoidal", "learned", "rotary"])
@pytest.mark.parametrize("order", ["pre", "post"])
def test_rows_that_are_kept_apart_are_each_as_if_alone(positions, order):
    settings = {"num_layers": 2, "positions": positions, "norm_order": order}
    model = make(encoder=dataclasses.replace(ATTENTION, **settings), rows_apart=True).double()
    ids = torch.tensor([[5, 6, 7, MASK, 9, 3, 4, 4], [MASK, 8, 3, 2, 6, 7, 8, 9]])
    parts = torch.tensor([[0, 0, 0, 1, 1, 1, 1, 2], [0, 1, 1, 1, 1, 1, 1, 1]])
    packed = model(ids, parts=parts)
    for row, begin, end in ((0, 0, 3), (0, 3, 7), (0, 7, 8), (1, 0, 1), (1, 1, 8)):
        alone = model(ids[row : row + 1, begin:end])[0]
        assert torch.allclose(packed[row, begin:end], alone, atol=1e-6)
    assert not torch.allclose(packed, model(ids), atol=1e-3)
    # Padding at the end of a block, as of texts of different lengths.
    lengths = torch.tensor([7, 8])
    assert torch.allclose(model(ids, lengths, parts)[0, :7], packed[0, :7], atol=1e-6)


def test_rows_are_kept_apart_by_self_attention_alone():
    with pytest.raises(UserError, match=r"model\.rows_apart .* LstmEncoder"):
        make(encoder=LstmEncoder.Config(hidden_dim=3), rows_apart=True)
