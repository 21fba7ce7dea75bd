"""Each processor against that of ``transformers``, and what holds of all together."""

import pytest
import torch
from transformers import (
    MinNewTokensLengthLogitsProcessor,
    NoRepeatNGramLogitsProcessor,
    RepetitionPenaltyLogitsProcessor,
    TemperatureLogitsWarper,
    TopKLogitsWarper,
    TopPLogitsWarper,
)

from textmill.errors import UserError
from textmill.models.decoding.sampling import draw, likely
from textmill.models.decoding.score_processors import Scores
from textmill.models.decoding.search_settings import Decoding

ROWS, SIZE, START = 7, 11, 2


@pytest.fixture
def scores():
    return torch.randn(ROWS, SIZE) * 3


def changed(scores, ids, forced=None, rows=None, **settings):
    made = Scores(Decoding(**settings), eos_idx=4, unk_idx=3)
    made = made if forced is None else made.forcing(forced, torch.device("cpu"))
    rows = torch.arange(len(ids)) if rows is None else rows
    return made(scores.clone(), ids, START, rows=rows)


@pytest.mark.parametrize("length", [2, 3, 9, 20])
@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        ({"repetition_penalty": 1.7}, RepetitionPenaltyLogitsProcessor(1.7)),
        ({"repetition_penalty": 0.6}, RepetitionPenaltyLogitsProcessor(0.6)),
        ({"no_repeat_ngram": 1}, NoRepeatNGramLogitsProcessor(1)),
        ({"no_repeat_ngram": 2}, NoRepeatNGramLogitsProcessor(2)),
        ({"no_repeat_ngram": 3}, NoRepeatNGramLogitsProcessor(3)),
        ({"min_length": 3}, MinNewTokensLengthLogitsProcessor(START, 3, 4)),
    ],
)
def test_scores_change_as_those_of_transformers(scores, length, ours, theirs):
    ids = torch.randint(0, 5, (ROWS, length))
    wanted = theirs(ids, scores.clone())
    torch.testing.assert_close(changed(scores, ids, **ours), wanted, rtol=0, atol=0)


@pytest.mark.parametrize("temperature", [0.3, 2.5])
@pytest.mark.parametrize("top_k", [0, 1, 4, 50])
@pytest.mark.parametrize("top_p", [1e-6, 0.5, 1.0])
def test_a_draw_is_from_the_distribution_of_transformers(scores, temperature, top_k, top_p):
    decoding = Decoding(sample=True, temperature=temperature, top_k=top_k, top_p=top_p)
    left, tokens = likely(scores, decoding)
    if tokens is not None:
        left = torch.zeros(ROWS, SIZE, dtype=torch.float64).scatter(1, tokens, left)
    wanted = TemperatureLogitsWarper(temperature)(None, scores)
    wanted = TopKLogitsWarper(top_k)(None, wanted) if top_k else wanted
    wanted = TopPLogitsWarper(top_p)(None, wanted).softmax(1).double()
    torch.testing.assert_close(left / left.sum(1, keepdim=True), wanted, rtol=1e-5, atol=1e-7)


def test_numbers_are_looked_up_in_the_cumulated_probabilities():
    scores = torch.tensor([[0.2, 0.5, 0.3, 0.0]]).log().repeat(1001, 1)
    drawn = draw(scores, torch.linspace(0, 1 - 2**-40, 1001, dtype=torch.float64), Decoding())
    counts = drawn.bincount(minlength=4)
    assert counts.tolist() == [200, 501, 300, 0]
    assert drawn.tolist() == sorted(drawn.tolist())


def test_the_unknown_token_is_banned_by_an_infinite_penalty(scores):
    found = changed(scores, torch.zeros(ROWS, 3).long(), unknown_penalty=float("inf"))
    assert (found[:, 3] == -torch.inf).all()
    rest = [i for i in range(SIZE) if i != 3]
    assert torch.equal(found[:, rest], scores[:, rest])


def test_forced_ids_hold_whatever_is_banned_and_keep_their_scores(scores):
    settings = {"no_repeat_ngram": 1, "repetition_penalty": 2.0, "min_length": 9}
    forced = [[4, 4], [5], []]
    rows = torch.tensor([0, 0, 1, 2])
    ids = torch.tensor([[1, 0, 4], [1, 0, 4], [1, 0, 5], [1, 0, 6]])
    found = changed(scores[:4], ids, forced, rows, **settings)
    for row in (0, 1):  # the second id
        assert (found[row] > -torch.inf).nonzero().tolist() == [[4]]
        assert found[row, 4] == scores[row, 4]
    for row, banned in ((2, [0, 1, 4, 5]), (3, [0, 1, 4, 6])):
        assert (found[row] == -torch.inf).nonzero()[:, 0].tolist() == banned


def test_where_all_is_banned_the_target_ends(scores):
    ids = torch.arange(SIZE).repeat(ROWS, 1)
    found = changed(scores, ids, no_repeat_ngram=1, min_length=99)
    assert (found > -torch.inf).nonzero().tolist() == [[row, 4] for row in range(ROWS)]
    assert torch.equal(found[:, 4], scores[:, 4])


def test_settings_change_scores_in_the_order_of_transformers(scores):
    everything = {"repetition_penalty": 1.5, "no_repeat_ngram": 3, "min_length": 12}
    ids = torch.randint(0, 5, (ROWS, 9))
    wanted = RepetitionPenaltyLogitsProcessor(1.5)(ids, scores.clone())
    wanted[:, 3] -= 0.5
    wanted = NoRepeatNGramLogitsProcessor(3)(ids, wanted)
    wanted = MinNewTokensLengthLogitsProcessor(START, 12, 4)(ids, wanted)
    found = changed(scores, ids, unknown_penalty=0.5, **everything)
    torch.testing.assert_close(found, wanted, rtol=0, atol=0)
    made = Scores(Decoding(unknown_penalty=0.5, **everything), eos_idx=4, unk_idx=3)
    assert made.change(0)
    assert not made.only_ban
    assert Scores(Decoding(min_length=2, no_repeat_ngram=1), eos_idx=4).only_ban
    assert not Scores(Decoding(), eos_idx=4).change(0)
    with pytest.raises(UserError, match="unknown_penalty needs unk_idx"):
        Scores(Decoding(unknown_penalty=0.5), eos_idx=4)
