"""What a search asks of the state of a decoder of the user's own."""

import pytest
import torch

from textmill.errors import UserError
from textmill.models.decoding import Decoding, decode
from textmill.models.decoding.fast_decoder import fastest

BOS, EOS = 1, 2
SOURCE = torch.tensor([[5, 6, 3], [7, 3, 0]])


class Least:
    """A state that is no subclass of the library's: ``select`` alone."""

    def __init__(self, inner):
        self.inner = inner

    def select(self, indices):
        self.inner.select(indices)


class WithGroups(Least):
    def select(self, indices, *, groups=None):
        self.inner.select(indices, groups=groups)


class Whole(WithGroups):
    def repeat(self, times):
        self.inner.repeat(times)


class Anything(Whole):
    def select(self, *args, **options):
        self.inner.select(*args, **options)


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


def search(model, **settings):
    found = decode(
        model, SOURCE, torch.tensor([3, 2]), Decoding(**settings), prefix=[BOS], eos_idx=EOS
    )
    return [[h.ids for h in row] for row in found]


@pytest.mark.parametrize(
    ("state", "settings"),
    [
        (Least, {}),
        (Least, {"sample": True, "n_best": 2}),
        (Whole, {"beam_size": 3, "n_best": 2}),
        (Anything, {"beam_size": 3}),
    ],
)
def test_a_state_with_all_that_a_search_asks_for(make_model, state, settings):
    model = make_model(40)
    assert search(Mine(model, state), **settings) == search(model, **settings)
    mine = Mine(model, state)
    assert fastest(mine, rows=32) is mine


@pytest.mark.parametrize(
    ("state", "beam_size", "missing"),
    [
        (lambda inner: inner.memory_keys_values, 1, ["select(indices)"]),
        (lambda inner: inner.memory_keys_values, 2, ["indices, groups=None", "repeat(times)"]),
        (Least, 4, ["groups=None in its select(indices)", "repeat(times)"]),
        (WithGroups, 4, ["without repeat(times)"]),
    ],
)
def test_what_a_state_lacks_is_named_before_the_search(make_model, state, beam_size, missing):
    with pytest.raises(UserError) as caught:
        search(Mine(make_model(40), state), beam_size=beam_size)
    assert all(each in str(caught.value) for each in missing)
