"""The wide part of models: what n-grams count, and what is refused."""

from types import SimpleNamespace

import pytest
import torch
from torch import nn

from textmill.errors import UserError
from textmill.models.classifier import Classifier
from textmill.models.tagger import IntentSlotModel
from textmill.models.wide import RARE, SCALE, WideScores
from textmill.text.tokenizers.ngram_tokenizer import NgramTokenizer

NGRAMS = NgramTokenizer({"wake": 90, "up": 10, "now": 1}, {"wa": 40}, rows=99)
WORDS = SimpleNamespace(vocab_info=SimpleNamespace(size=9, pad_idx=0, unk_idx=1))


def test_a_value_is_its_weight_less_the_fewer_rows_have_the_ngram():
    seen = torch.tensor([90.0, 10.0, 1.0, 40.0])
    expected = torch.from_numpy(NGRAMS.weights)[2:] * seen / (seen + RARE)
    values = WideScores(NGRAMS, 3).values
    torch.testing.assert_close(values[2:], expected)
    assert values[:2].tolist() == [0, 0]
    torch.testing.assert_close(values[3], torch.tensor(NGRAMS.weights[3] / 2))


def test_texts_have_scores_of_one_length_and_those_without_ngrams_none():
    wide = WideScores(NGRAMS, 1)
    nn.init.ones_(wide.table)
    alone, padded, none = wide(torch.tensor([[2, 0, 0], [2, 3, 0], [0, 0, 0]]))
    assert alone.item() == pytest.approx(SCALE)
    share = nn.functional.normalize(wide.values[[2, 3]], dim=0).sum()
    assert padded.item() == pytest.approx(SCALE * share.item())
    assert none.item() == 0
    assert wide(torch.zeros(2, 0, dtype=torch.int64)).tolist() == [[0], [0]]


def classifier():
    model = Classifier.Config().build(tokenizer=WORDS, labels=range(3), ngrams=NGRAMS)
    return model, lambda scores: scores


def joint():
    given = {"tokenizer": WORDS, "labels": range(3), "slots": ["O"], "ngrams": NGRAMS}
    return IntentSlotModel.Config().build(**given), lambda scores: scores[0]


@pytest.mark.parametrize("make", [classifier, joint])
def test_the_first_scores_are_those_of_the_encoder_and_ngrams_add_theirs(make):
    torch.manual_seed(0)
    model, of_text = make()
    model.eval()
    text, lengths, ids = torch.tensor([[5, 6], [7, 0]]), torch.tensor([2, 1]), [[2, 3], [4, 0]]
    deep = of_text(model(text, lengths))
    torch.testing.assert_close(of_text(model(text, lengths, ngrams=torch.tensor(ids))), deep)
    nn.init.normal_(model.wide.table)
    both = of_text(model(text, lengths, ngrams=torch.tensor(ids)))
    torch.testing.assert_close(both - deep, model.wide(torch.tensor(ids)))
    assert not any("values" in name for name in model.state_dict())


@pytest.mark.parametrize("make", [classifier, joint])
def test_what_is_no_ngrams_is_refused(make, monkeypatch):
    monkeypatch.setitem(make.__globals__, "NGRAMS", WORDS)
    with pytest.raises(UserError) as error:
        make()
    assert str(error.value) == (
        "ngrams must be of type fitted_ngrams, but they are a SimpleNamespace."
    )
