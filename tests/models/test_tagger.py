"""The tagger: padding has no part, words that are hidden in training, every parameter learns."""

from types import SimpleNamespace

import pytest
import torch

from textmill.models.encoders.lstm import LstmEncoder
from textmill.models.encoders.self_attention import SelfAttentionEncoder
from textmill.models.encoders.sequence import AveragingEncoder
from textmill.models.layers.word_embeddings import WordEmbedding
from textmill.models.tagger import Tagger

TOKENIZER = SimpleNamespace(vocab_info=SimpleNamespace(size=20, pad_idx=0, unk_idx=1))
CHARACTERS = SimpleNamespace(size=9, pad_idx=0)
LABELS = ["O", "B-x", "I-x"]
ENCODERS = {
    "lstm": LstmEncoder.Config(hidden_dim=4),
    "self_attention": SelfAttentionEncoder.Config(num_heads=2, ffn_dim=8),
}


AFFIXES = SimpleNamespace(size=12, pad_idx=0, length=3)


def made(encoder, *, characters=True, **settings):
    torch.manual_seed(0)
    config = Tagger.Config(embedding=WordEmbedding.Config(dim=6), encoder=encoder, **settings)
    given = {"characters": CHARACTERS, "affixes": AFFIXES} if characters else {}
    return config.build(tokenizer=TOKENIZER, labels=LABELS, **given)


@pytest.fixture(params=ENCODERS)
def model(request):
    return made(ENCODERS[request.param], dropout=0.0, crf=True)


WORDS = torch.tensor([[5, 6, 7, 8], [9, 0, 0, 0], [0, 0, 0, 0], [2, 3, 0, 0]])
LENGTHS = torch.tensor([4, 1, 0, 2])
SPELLED = (
    torch.randint(4, 9, (4, 4, 5), generator=torch.Generator().manual_seed(1))
    * (torch.arange(4) < LENGTHS[:, None])[..., None]
)
BESIDE = {"characters": SPELLED, "affixes": SPELLED[..., :3]}


def test_a_text_alone_is_as_beside_longer_ones(model):
    model.eval()
    together = model(WORDS, LENGTHS, **BESIDE)
    assert together.shape == (4, 4, 3)
    for row, length in enumerate(LENGTHS.tolist()):
        alone = model(
            WORDS[row : row + 1, :length],
            LENGTHS[row : row + 1],
            **{name: ids[row : row + 1, :length] for name, ids in BESIDE.items()},
        )
        assert alone.shape == (1, length, 3)
        assert torch.allclose(alone[0], together[row, :length], atol=1e-5)


def test_every_parameter_gets_a_gradient(model):
    real = torch.arange(4) < LENGTHS[:, None]
    scores = model(WORDS, LENGTHS, **BESIDE)
    model.crf.log_likelihood(scores, torch.ones_like(WORDS), real).sum().backward()
    assert [name for name, p in model.named_parameters() if p.grad is None] == []


def test_hidden_words_are_hidden_in_training_only():
    encoder = AveragingEncoder.Config(word_dropout=0.0)
    model = made(encoder, characters=False, dropout=0.0, word_dropout=0.5)
    words = torch.arange(2, 20).repeat(50, 1)
    lengths = torch.full((50,), 18)
    unknown = model.eval()(torch.ones(1, 1, dtype=torch.int64), torch.tensor([1]))[0, 0]
    hidden = (model.train()(words, lengths) == unknown).all(-1)
    assert 0.4 < hidden.float().mean() < 0.6
    assert not (model.eval()(words, lengths) == unknown).all(-1).any()
    kept = model.train()(torch.zeros(50, 18, dtype=torch.int64), lengths)
    assert (kept == kept[0, 0]).all()  # padding is not taken for a word
