import pytest
import torch
from torch import nn

from textmill.errors import UserError
from textmill.models.ngrams import (
    NgramClassifier,
    NgramPairClassifier,
    NgramPairRegressor,
    NgramRegressor,
)
from textmill.text.tokenizers.ngram_tokenizer import FittedNgrams
from textmill.text.tokenizers.word_tokenizer import FittedWords

TEXTS = ["wake me up", "wake us up", "play it again"]
ROWS = [{"text": text} for text in TEXTS]
TOKENIZER = FittedNgrams.Config(characters=(2, 3)).build(train_data=ROWS)
KINDS = {
    "classifier": (NgramClassifier, {"labels": range(3)}),
    "regressor": (NgramRegressor, {}),
    "pair classifier": (NgramPairClassifier, {"labels": range(3)}),
    "pair regressor": (NgramPairRegressor, {}),
}


@pytest.fixture(params=KINDS)
def model(request):
    kind, given = KINDS[request.param]
    torch.manual_seed(0)
    model = kind.Config().build(tokenizer=TOKENIZER, **given)
    for parameter in model.parameters():
        nn.init.normal_(parameter)
    return model


def inputs(model, texts):
    """What the module is called with; the second texts are the first in another order."""
    ids = TOKENIZER.create_encoder().batch(texts)
    one, lengths = torch.from_numpy(ids.padded(range(len(texts)), 0)), torch.tensor(ids.lengths)
    if "Pair" not in type(model).__name__:
        return one, lengths
    return one, lengths, one.flip(0), lengths.flip(0)


def test_padding_changes_nothing(model):
    texts = ["up", "wake me up and play it again", "wake"]
    together = model(*inputs(model, texts))
    padded = [
        nn.functional.pad(part, (0, 3)) if part.ndim == 2 else part for part in inputs(model, texts)
    ]
    torch.testing.assert_close(model(*padded), together)
    alone = model(*inputs(model, texts[1:2]))
    torch.testing.assert_close(alone[0], together[1])


def test_every_parameter_learns(model):
    model(*inputs(model, TEXTS)).square().sum().backward()
    for name, parameter in model.named_parameters():
        assert parameter.grad.abs().sum() > 0, name


def by_hand(ids):
    """The value of each n-gram of a text: its weight over the length of its kind's."""
    values = {}
    for first, end in ((2, 2 + TOKENIZER.words), (2 + TOKENIZER.words, len(TOKENIZER.weights))):
        weights = {i: float(TOKENIZER.weights[i]) for i in ids if first <= i < end}
        length = sum(w * w for w in weights.values()) ** 0.5
        values |= {i: w / length for i, w in weights.items()}
    return values


def test_words_and_characters_count_alike(model):
    for text in inputs(model, TEXTS)[::2]:
        rows, ids, values = model.ngrams(text)
        for row, of_row in enumerate(text.tolist()):
            found = dict(zip(ids[rows == row].tolist(), values[rows == row].tolist(), strict=True))
            assert found == pytest.approx(by_hand(of_row), rel=1e-5)


def test_what_is_solved_is_what_answers(model):
    """Numbers by their places, times weights that were assigned, are the scores."""
    texts = inputs(model, TEXTS)
    rows, places, values = model.features(*texts)
    weights = torch.randn(model.width, len(model.bias))
    model.assign(weights, torch.full((len(model.bias),), 0.5))
    table = torch.zeros(len(TEXTS), model.width).index_put((rows, places), values, accumulate=True)
    torch.testing.assert_close(model(*texts), table @ weights + 0.5)


def test_a_pair_is_known_by_both_of_its_texts():
    model = NgramPairClassifier.Config().build(tokenizer=TOKENIZER, labels=range(3)).train()
    nn.init.normal_(model.table)
    text1, lengths1, text2, lengths2 = inputs(model, TEXTS)
    model(text1, lengths1, text2, lengths2)
    turned = model(text2, lengths2, text2, lengths2)
    assert torch.equal(turned, model.eval()(text2, lengths2, text2, lengths2))


def test_numbers_beside_a_text_count_in_all_as_much_as_a_kind_of_ngrams():
    model = NgramClassifier.Config().build(
        tokenizer=TOKENIZER, labels=range(2), dense=type("Four", (), {"dim": 4})
    )
    nn.init.ones_(model.dense)
    text, lengths = inputs(model, TEXTS[:1])
    found = model(text, lengths, dense=torch.ones(1, 4))
    assert found.tolist() == [[2.0, 2.0]]


def test_an_ngram_of_both_texts_counts_by_itself():
    model = NgramPairRegressor.Config().build(tokenizer=TOKENIZER)
    size = len(TOKENIZER.weights)
    nn.init.ones_(model.table[2 * size : 3 * size])
    encode = TOKENIZER.create_encoder()
    one, two = (torch.from_numpy(encode(text))[None].long() for text in ("wake me up", "wake us"))
    shared = {*one[0].tolist()} & {*two[0].tolist()}
    values = by_hand(two[0].tolist())
    wanted = sum(value for i, value in values.items() if i in shared)
    found = model(one, torch.tensor([9]), two, torch.tensor([9])).item()
    assert found == pytest.approx(wanted, rel=1e-5)
    assert 0 < found < sum(values.values())


def test_a_tokenizer_of_words_is_refused():
    words = FittedWords.Config().build(train_data=ROWS)
    with pytest.raises(UserError, match=r"tokenizer.type=fitted_ngrams.* is a WordTokenizer"):
        NgramClassifier.Config().build(tokenizer=words, labels=range(2))
