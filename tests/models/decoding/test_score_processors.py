"""Each processor against that of ``transformers``, and what holds of all together."""

import numpy as np
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
from textmill.models.decoding.sampling import draw, likely, source_keys, uniforms
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


GOLDEN = 0x9E3779B97F4A7C15


def splitmix64(x):
    """The generator's step in Python's integers."""
    mask = (1 << 64) - 1
    x = (x + GOLDEN) & mask
    x = ((x ^ (x >> 30)) * 0xBF58476D1CE4E5B9) & mask
    x = ((x ^ (x >> 27)) * 0x94D049BB133111EB) & mask
    return x ^ (x >> 31)


def test_they_are_those_of_splitmix64():
    # Its published first number from seed 0.
    assert splitmix64(0) == 0xE220A8397B1DCDAF
    keys = torch.tensor([0, 1, -5, 2**62, -(2**63)])
    for number in (0, 1, 2**32 + 7, 999):
        wanted = [
            (splitmix64(splitmix64(key % 2**64) ^ number) >> 24) / 2**40 for key in keys.tolist()
        ]
        assert uniforms(keys, number).tolist() == wanted


def test_they_are_even_and_do_not_hang_together():
    source = torch.arange(20_000)[:, None].repeat(1, 3)
    keys = source_keys(source, None, seed=0)
    one, two = uniforms(keys, 0), uniforms(keys, 1)
    other = uniforms(source_keys(source, None, seed=1), 0)
    for numbers in (one, two, other, torch.stack([uniforms(keys[:1], n)[0] for n in range(4000)])):
        counts = np.histogram(numbers.numpy(), bins=20, range=(0, 1))[0]
        mean = len(numbers) / 20
        # Over 43.8 in one of a thousand histograms (19 degrees of freedom).
        assert ((counts - mean) ** 2 / mean).sum() < 43.8
    for pair in ((one, two), (one, other), (one[1:], one[:-1])):
        assert abs(np.corrcoef(*pair)[0, 1]) < 0.03


def test_a_source_has_its_key_whatever_its_padding_and_place():
    source = torch.tensor([[7, 8, 0, 0], [7, 8, 9, 9], [7, 8, 0, 1]])
    keys = source_keys(source, torch.tensor([2, 4, 2]), seed=-3)
    alone = source_keys(torch.tensor([[7, 8]]), None, seed=-3)
    assert keys[0] == keys[2] == alone[0]
    assert keys[0] != keys[1]
    assert source_keys(torch.tensor([[8, 7]]), None, seed=-3) != alone
    huge = source_keys(torch.tensor([[7, 8]]), None, seed=2**70 + 1)
    assert huge == source_keys(torch.tensor([[7, 8]]), None, seed=1)
