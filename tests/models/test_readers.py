"""Readers: a row alone is as beside longer ones, every parameter learns, odd texts are read."""

from dataclasses import replace
from types import SimpleNamespace

import pytest
import torch

from textmill.errors import UserError
from textmill.models.encoders.lstm import LstmEncoder
from textmill.models.encoders.pretrained import PretrainedEncoder
from textmill.models.encoders.self_attention import SelfAttentionEncoder
from textmill.models.layers.word_embeddings import WordEmbedding
from textmill.models.readers.pretrained import PretrainedReader
from textmill.models.readers.reader import DrqaReader, JoinedReader

INFO = SimpleNamespace(size=22, pad_idx=0, unk_idx=1, bos_idx=20, eos_idx=21)
TOKENIZER = SimpleNamespace(vocab_info=INFO)
CHARACTERS = SimpleNamespace(size=9, pad_idx=0)
WORDS = WordEmbedding.Config(dim=6)
LSTM = LstmEncoder.Config(hidden_dim=3)
ATTENTION = SelfAttentionEncoder.Config(num_heads=2, num_layers=1, ffn_dim=8, dropout=0.0)
BERT = {
    "model_type": "bert", "hidden_size": 6, "num_hidden_layers": 1, "num_attention_heads": 2,
    "intermediate_size": 8, "max_position_embeddings": 16,
    "hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0,
}  # fmt: skip
MODELS = {
    "drqa": DrqaReader.Config(
        embedding=WORDS, encoder=LSTM, question_encoder=LSTM, dropout=0.0, no_answer=True
    ),
    "drqa without matches": DrqaReader.Config(
        embedding=WORDS, encoder=LSTM, question_encoder=LSTM, dropout=0.0, matches=False
    ),
    "joined": JoinedReader.Config(embedding=WORDS, encoder=ATTENTION, dropout=0.0, no_answer=True),
    "pretrained": PretrainedReader.Config(
        encoder=PretrainedEncoder.Config(architecture=BERT), dropout=0.0, no_answer=True
    ),
}


@pytest.fixture(params=MODELS)
def model(request):
    torch.manual_seed(0)
    unspelled = request.param in ("drqa without matches", "pretrained")
    spelled = {} if unspelled else {"characters": CHARACTERS}
    return MODELS[request.param].build(tokenizer=TOKENIZER, **spelled)


def texts(lengths, *, seed):
    generator = torch.Generator().manual_seed(seed)
    real = torch.arange(int(lengths.max())) < lengths[:, None]
    ids = torch.randint(1, 20, real.shape, generator=generator) * real
    spelled = torch.randint(4, 9, (*real.shape, 5), generator=generator) * real[..., None]
    return ids, spelled


ASKED, GIVEN = torch.tensor([3, 1, 0, 2]), torch.tensor([2, 5, 4, 0])
(QUESTION, SPELLED_QUESTION), (CONTEXT, SPELLED) = texts(ASKED, seed=1), texts(GIVEN, seed=2)
MATCHES = torch.tensor([[3, 0, 0, 0, 0], [0, 1, 2, 3, 0], [1, 1, 0, 2, 0], [0] * 5])


def read(model, row=None):
    inputs = [QUESTION, ASKED, CONTEXT, GIVEN, MATCHES, SPELLED_QUESTION, SPELLED]
    if row is not None:
        q, c = int(ASKED[row]), int(GIVEN[row])
        inputs = [part[row : row + 1] for part in inputs]
        inputs = [
            part if part.ndim == 1 else part[:, : q if part.shape[1] == 3 else c] for part in inputs
        ]
    return model(*inputs[:5] if isinstance(model, PretrainedReader) else inputs)


def test_a_row_alone_is_as_beside_longer_ones(model):
    model.eval()
    together = read(model)
    assert together.start.shape == together.end.shape == (4, 5)
    for row, length in enumerate(GIVEN.tolist()):
        alone = read(model, row)
        for one, all_ in ((alone.start, together.start), (alone.end, together.end)):
            assert torch.allclose(one[0, :length], all_[row, :length], atol=1e-5)
        if together.none is not None:
            assert torch.allclose(alone.none[0], together.none[row], atol=1e-5)
    assert (together.none is not None) == model.no_answer


def test_every_parameter_gets_a_gradient(model):
    found = read(model)
    real = torch.arange(5) < GIVEN[:, None]
    total = (found.start[real] * torch.randn(11)).sum() + (found.end[real] ** 2).sum()
    (total if found.none is None else total + found.none.sum()).backward()
    for name, parameter in model.named_parameters():
        assert parameter.grad is not None, name
        assert parameter.grad.isfinite().all(), name
        if name != "weight.bias":  # which a softmax takes out again: its gradient is but rounding
            assert parameter.grad.any(), name


def test_the_question_and_the_matches_matter():
    torch.manual_seed(0)
    for name in ("drqa", "joined"):
        model = MODELS[name].build(tokenizer=TOKENIZER).eval()
        before = model(QUESTION, ASKED, CONTEXT, GIVEN, MATCHES)
        other = model(QUESTION.flip(0), ASKED.flip(0), CONTEXT, GIVEN, MATCHES)
        unmatched = model(QUESTION, ASKED, CONTEXT, GIVEN, MATCHES * 0)
        assert not torch.allclose(before.start[1], other.start[1])
        assert not torch.allclose(before.start[1], unmatched.start[1])


def test_words_are_hidden_in_training_alone():
    torch.manual_seed(0)
    config = replace(MODELS["drqa"], word_dropout=0.999, matches=False)
    model = config.build(tokenizer=TOKENIZER)
    inputs = [QUESTION, ASKED, CONTEXT, GIVEN, MATCHES]
    others = [QUESTION, ASKED, CONTEXT.clamp(max=1), GIVEN, MATCHES]
    unknown = [QUESTION.clamp(max=1), ASKED, CONTEXT.clamp(max=1), GIVEN, MATCHES]
    assert torch.allclose(model(*inputs).start, model(*unknown).start)
    model.eval()
    assert not torch.allclose(model(*inputs).start[0], model(*others).start[0])


def test_a_pretrained_encoder_has_no_place_for_characters():
    with pytest.raises(UserError, match="takes no others"):
        MODELS["pretrained"].build(tokenizer=TOKENIZER, characters=CHARACTERS)
