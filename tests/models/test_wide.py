"""The wide part of models: what n-grams count, and what is refused."""

from types import SimpleNamespace

import pytest
import torch
from torch import nn

from textmill.errors import UserError
from textmill.models.classifier import Classifier
from textmill.models.tagger import IntentSlotModel
from textmill.models.wide import ANSWER_SCALE, MARGIN_SCALE, RARE, SCALE, FittedScores, WideScores
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


def test_fitted_scores_are_those_of_scikit_learns_machine():
    from sklearn.svm import LinearSVC

    ids = torch.tensor([[2, 5], [3, 0], [4, 0], [2, 3], [4, 3], [2, 0]])
    for labels in (torch.tensor([0, 1, 2, 0, 2, 1]), torch.tensor([0, 1, 1, 0, 1, 0])):
        wide = FittedScores(NGRAMS, 4)
        wide.fit([ids[:4], ids[4:]], [labels[:4], labels[4:]])
        rows = torch.zeros(6, 6).scatter_add_(1, ids, wide.values.padded(ids)).numpy()
        machine = LinearSVC(random_state=0).fit(rows, labels.numpy())
        expected = torch.from_numpy(machine.decision_function(rows)).float()
        found = wide(ids) / MARGIN_SCALE
        if expected.ndim == 1:  # of two labels it has one score
            torch.testing.assert_close(found[:, :2], torch.stack([-expected, expected], 1))
            assert found[:, 2:].eq(-1).all(), "a label without a row is never the answer"
        else:
            torch.testing.assert_close(found[:, :3], expected)
    assert wide(torch.zeros(2, 0, dtype=torch.int64)).shape == (2, 4)


def test_of_one_label_nothing_is_fitted():
    wide = FittedScores(NGRAMS, 2)
    wide.fit([torch.tensor([[2], [3]])], [torch.tensor([1, 1])])
    assert not wide(torch.tensor([[2]])).any()


def classifier():
    return Classifier.Config().build(tokenizer=WORDS, labels=range(3), ngrams=NGRAMS)


def joint():
    given = {"tokenizer": WORDS, "labels": range(3), "slots": ["O"], "ngrams": NGRAMS}
    return IntentSlotModel.Config(dropout=0.0).build(**given)


def test_the_first_scores_are_those_of_the_encoder_and_ngrams_add_theirs():
    torch.manual_seed(0)
    model = classifier().eval()
    text, lengths, ids = torch.tensor([[5, 6], [7, 0]]), torch.tensor([2, 1]), [[2, 3], [4, 0]]
    deep = model(text, lengths)
    torch.testing.assert_close(model(text, lengths, ngrams=torch.tensor(ids)), deep)
    nn.init.normal_(model.wide.table)
    both = model(text, lengths, ngrams=torch.tensor(ids))
    torch.testing.assert_close(both - deep, model.wide(torch.tensor(ids)))
    assert not any("values" in name for name in model.state_dict())


def test_the_encoder_adds_its_scores_of_intents_to_those_that_are_fitted():
    torch.manual_seed(0)
    model = joint()
    text, lengths = torch.tensor([[5, 6], [7, 0]]), torch.tensor([2, 1])
    ids = torch.tensor([[2, 3], [4, 0]])
    model.wide.fit([ids], [torch.tensor([1, 2])])
    deep, wide = model(text, lengths)[0], model.wide(ids)
    torch.testing.assert_close(model(text, lengths, ngrams=ids)[0], deep + wide)
    model.eval()
    torch.testing.assert_close(model(text, lengths, ngrams=ids)[0], ANSWER_SCALE * (deep + wide))
    assert not any("values" in name for name in model.state_dict())


@pytest.mark.parametrize("make", [classifier, joint])
def test_what_is_no_ngrams_is_refused(make, monkeypatch):
    monkeypatch.setitem(make.__globals__, "NGRAMS", WORDS)
    with pytest.raises(UserError, match=r"n-grams needs tokenizer\.type=fitted_ngrams"):
        make()
