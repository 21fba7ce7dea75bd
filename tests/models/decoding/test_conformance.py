"""What holds of every way to decode."""

import itertools
from collections import Counter

import pytest
import torch

from textmill.errors import UserError
from textmill.models.decoding import Decoding, decode
from textmill.models.decoding.fast_decoder import fastest

BOS, EOS, UNK, SIZE = 1, 2, 3, 120
STRATEGIES = {
    "greedy": {},
    "n-best": {"beam_size": 4, "n_best": 3, "early_stopping": "never"},
    "samples": {"sample": True, "n_best": 4, "temperature": 1.5, "top_p": 0.9, "top_k": 30},
    "penalties": {"repetition_penalty": 1.8, "unknown_penalty": 2.0},
    "ngrams": {"no_repeat_ngram": 2, "beam_size": 3},
}


@pytest.fixture(params=STRATEGIES)
def settings(request):
    return STRATEGIES[request.param]


@pytest.fixture
def model(make_model):
    return make_model(SIZE, ends=4.0)


def search(model, source, lengths, *, forced=None, eos_idx=EOS, **settings):
    decoding = Decoding(**{"max_length_a": 0.0, "max_length_b": 9, **settings})
    return decode(
        model, source, lengths, decoding, prefix=[BOS, 4], eos_idx=eos_idx, unk_idx=UNK,
        forced=forced,
    )  # fmt: skip


def sources(rows=12):
    return torch.randint(4, SIZE, (rows, 6)), torch.randint(1, 7, (rows,))


def same(found, wanted):
    assert [[h.ids for h in row] for row in found] == [[h.ids for h in row] for row in wanted]
    scores = [[h.score for row in side for h in row] for side in (found, wanted)]
    assert scores[0] == pytest.approx(scores[1], abs=1e-4)


def test_a_row_is_answered_the_same_in_any_batch(model, settings):
    source, lengths = sources(24)
    together = search(model, source, lengths, **settings)
    assert len({len(row[0].ids) for row in together}) > 1  # rows end at different lengths
    alone = [
        search(model, source[row : row + 1, : lengths[row]], None, **settings)[0]
        for row in range(24)
    ]
    same(together, alone)
    order = torch.randperm(24)
    shuffled = search(model, source[order], lengths[order], **settings)
    same(shuffled, [together[row] for row in order.tolist()])


def test_the_end_mark_is_in_no_answer_and_the_best_comes_first(model, settings):
    found = search(model, *sources(24), **settings)
    for row in found:
        assert len(row) == settings.get("n_best", 1)
        assert [h.score for h in row] == sorted((h.score for h in row), reverse=True)
        assert all(EOS not in h.ids and len(h.ids) <= 9 for h in row)


def test_a_target_ends_at_its_limit(make_model, settings):
    model = make_model(SIZE, ends=-torch.inf)
    source, lengths = sources(5)
    found = search(model, source, lengths, max_length_a=1.5, max_length_b=2, **settings)
    limits = (1.5 * lengths).long() + 2
    assert [{len(h.ids) for h in row} for row in found] == [{limit} for limit in limits.tolist()]


def test_forced_ids_begin_a_target_of_each_row_its_own(model, settings):
    source, lengths = sources(6)
    forced = [[50, 60, 60, 50, 60, 60, 50], [], [UNK], [70, 71], [], [99] * 12]
    found = search(model, source, lengths, forced=forced, **settings)
    for row, ids in zip(found, forced, strict=True):
        assert all(h.ids[: len(ids)] == ids for h in row)
        assert all(len(h.ids) <= 9 + len(ids) for h in row)
    free = search(model, source, lengths, **settings)
    same([found[1], found[4]], [free[1], free[4]])
    same(found[:1], search(model, source[:1, : lengths[0]], None, forced=forced[:1], **settings))


def test_no_end_before_the_least_length(model, settings):
    found = search(model, *sources(12), min_length=5, **settings)
    assert all(5 <= len(h.ids) <= 9 for row in found for h in row)


# Beam search ranks with penalties, which the model's own probability does not know.
@pytest.mark.parametrize("settings", [s for s in STRATEGIES.values() if "no_repeat_ngram" not in s])
def test_a_score_is_the_log_probability_by_length(model, settings):
    source, lengths = sources(4)
    found = search(
        model, source, lengths, length_penalty=0.7, forced=[[9], [], [5, 5], []], **settings
    )
    for row, hypotheses in enumerate(found):
        for h in hypotheses:
            ids = [*h.ids, EOS][: 9 + (1, 0, 2, 0)[row]]
            target = torch.tensor([[BOS, 4, *ids]])
            logits = model(source[row : row + 1, : lengths[row]], None, target[:, :-1])[0, 1:]
            steps = logits.log_softmax(-1).gather(1, target[0, 2:, None])
            assert h.score == pytest.approx(steps.sum().item() / len(ids) ** 0.7, abs=1e-4)


def test_draws_have_the_probabilities_of_the_model(make_model):
    """All targets of up to 3 ids, enumerated, against 4,000 draws."""
    model = make_model(5)
    source = torch.tensor([[4, 3, 4]])
    tokens = range(5)
    limit, temperature, total = 3, 1.3, 4000
    wanted = Counter()
    for ids in itertools.product(tokens, repeat=limit):
        target = torch.tensor([[BOS, 4, *ids]])
        logits = model(source, None, target[:, :-1])[0, 1:] / temperature
        steps = logits.log_softmax(-1).gather(1, target[0, 2:, None])
        ends = ids.index(EOS) if EOS in ids else limit
        wanted[ids[:ends]] += steps.sum().exp().item()
    drawn = Counter()
    for seed in range(4):
        (found,) = search(
            model, source, None, sample=True, n_best=1000, seed=seed, temperature=temperature,
            max_length_b=limit,
        )  # fmt: skip
        drawn.update(tuple(h.ids) for h in found)
    assert sum(wanted.values()) == pytest.approx(1, abs=1e-4)
    likely = [ids for ids in wanted if wanted[ids] * total > 5]
    assert len(likely) > 8
    squares = [(drawn[ids] - total * wanted[ids]) ** 2 / (total * wanted[ids]) for ids in likely]
    # Chi-square with at most len(likely) degrees of freedom: mean n, deviation (2n)**0.5.
    assert sum(squares) < len(likely) + 4 * (2 * len(likely)) ** 0.5


def test_what_does_not_fit_is_refused(build):
    model = build(size=SIZE, max_length=12)
    source, lengths = sources(2)
    with pytest.raises(UserError, match="each of the 2 sources, but are for 1"):
        search(model, source, lengths, forced=[[4]])
    search(model, source, lengths, forced=[[4] * 10, []])
    with pytest.raises(UserError, match="Row 2 has 11 forced ids"):
        search(model, source, lengths, forced=[[], [4] * 11])
    with pytest.raises(UserError, match="a prefix of at least one id"):
        decode(model, source, lengths, Decoding(), prefix=[], eos_idx=EOS)


SOURCE = torch.tensor([[5, 6, 3], [7, 3, 0]])


class Least:
    """A state that is no subclass of the library's: ``select`` alone."""

    def __init__(self, inner):
        self.inner = inner

    def select(self, indices):
        self.inner.select(indices)


class Whole(Least):
    def select(self, indices, *, groups=None):
        self.inner.select(indices, groups=groups)

    def repeat(self, times):
        self.inner.repeat(times)


class Mine:
    """A model of the user's own: the methods that a search needs, and a state of its own."""

    training = False

    def __init__(self, model, state):
        self.model, self.state, self.max_length = model, state, model.max_length
        self.encode = model.encode

    def train(self, mode=True):
        return self

    def start(self, memory):
        return self.state(self.model.start(memory))

    def step(self, tokens, state):
        return self.model.step(tokens, state.inner)


def searched(model, **settings):
    found = decode(
        model, SOURCE, torch.tensor([3, 2]), Decoding(**settings), prefix=[BOS], eos_idx=EOS
    )
    return [[h.ids for h in row] for row in found]


@pytest.mark.parametrize(
    ("state", "settings"),
    [(Least, {}), (Least, {"sample": True, "n_best": 2}), (Whole, {"beam_size": 3, "n_best": 2})],
)
def test_a_state_with_all_that_a_search_asks_for(make_model, state, settings):
    model = make_model(40)
    assert searched(Mine(model, state), **settings) == searched(model, **settings)
    mine = Mine(model, state)
    assert fastest(mine, rows=32) is mine


@pytest.mark.parametrize(
    ("named", "settings"),
    [
        ("n_best", {"beam_size": 2, "n_best": 3}), ("n_best", {"beam_size": 0}),
        ("n_best", {"sample": True, "n_best": 0}), ("n_best", {"sample": True, "n_best": 1001}),
        ("beam_size", {"beam_size": 1001}), ("length_penalty", {"length_penalty": 500.0}),
        ("length_penalty", {"length_penalty": float("nan")}),
        ("max_length_a", {"max_length_a": -1.0}), ("min_length", {"min_length": -1}),
        ("no_repeat_ngram", {"no_repeat_ngram": -2}),
        ("repetition_penalty", {"repetition_penalty": 0.0}),
        ("unknown_penalty", {"unknown_penalty": -float("inf")}),
        ("temperature", {"sample": True, "temperature": float("nan")}),
        ("top_k", {"sample": True, "top_k": -1}), ("top_p", {"sample": True, "top_p": 1.5}),
        ("sample", {"sample": True, "beam_size": 4}), ("top_p=0.9 is for drawn", {"top_p": 0.9}),
        ("early_stopping=first is for beams", {"early_stopping": "first"}),
    ],
)  # fmt: skip
def test_settings_that_cannot_work_are_refused(named, settings):
    with pytest.raises(UserError, match=f"decoding.{named}"):
        Decoding(**settings)
