"""The fast step is the model's own step."""

import gc
import sys
import weakref

import pytest
import torch

from textmill.models.decoding import Decoding, decode
from textmill.models.decoding.fast_decoder import FastDecoder, fastest
from textmill.models.decoding.slot_cache import FIRST_STEPS, LEAST_SLOTS
from textmill.models.layers.attention import MultiHead, TalkingHeads
from textmill.models.transformer import Transformer

BOS, EOS, SIZE = 1, 2, 120
KINDS = {
    "pre": {},
    "post": {"norm_order": "post", "activation": "silu"},
    "learned": {"positions": "learned", "tie": "none", "scale_embedding": False},
    "blocks": {
        "num_heads": 4,
        "positions": "rotary",
        "attention": MultiHead.Config(num_kv_heads=2),
        "feed_forward": "gated",
        "norm": "rms_norm",
    },
}


@pytest.fixture(params=KINDS)
def model(request, make_model):
    return make_model(SIZE, ends=3.0, **KINDS[request.param])


def sources(rows=9, longest=7):
    return torch.randint(4, SIZE, (rows, longest)), torch.randint(1, longest + 1, (rows,))


@pytest.mark.parametrize("copy", [True, False])
@pytest.mark.parametrize("longest", [3, LEAST_SLOTS - 1, LEAST_SLOTS, 40])
@torch.inference_mode()
def test_scores_of_rows_that_are_dropped_and_repeated(model, copy, longest):
    """Rows on their own, then as groups of beams that change places and are dropped."""
    source, lengths = sources(6, longest)
    fast = fastest(model, rows=32 if copy else 1)
    memory = model.encode(source, lengths)
    states = model.start(memory), fast.start(memory)

    def step(rows):
        tokens = torch.randint(4, SIZE, (rows,))
        wanted, found = model.step(tokens, states[0]), fast.step(tokens, states[1])
        torch.testing.assert_close(found, wanted, rtol=1e-4, atol=1e-4)

    def select(*args, **kwargs):
        for state in states:
            state.select(*args, **kwargs)

    for _ in range(3):
        step(6)
    select(torch.tensor([5, 0, 3, 2]))
    step(4)
    for state in states:
        state.repeat(3)
    for number in range(14):
        step(len(states[0]))
        groups = len(states[0]) // 3
        assert len(states[1]) == 3 * groups
        parents = torch.randint(3, (groups, 3))
        kept = torch.randperm(groups)[: groups - 1] if number in (4, 9) else None
        rows = torch.arange(groups)[:, None] * 3 + parents
        select((rows if kept is None else rows[kept]).flatten(), groups=kept)
    assert states[1].slots > LEAST_SLOTS


@torch.inference_mode()
def test_a_cache_grows(make_model):
    model = make_model(SIZE)
    fast = fastest(model, rows=32)
    memory = model.encode(*sources(2))
    states = model.start(memory), fast.start(memory)
    for _ in range(FIRST_STEPS + 9):
        tokens = torch.randint(4, SIZE, (2,))
        wanted, found = model.step(tokens, states[0]), fast.step(tokens, states[1])
        torch.testing.assert_close(found, wanted, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("settings", [{}, {"beam_size": 4, "n_best": 4}, {"sample": True}])
def test_the_same_ids(model, settings, monkeypatch):
    source, lengths = sources(40)
    decoding = Decoding(**settings)

    def search():
        found = decode(model, source, lengths, decoding, prefix=[BOS, 5], eos_idx=EOS)
        return [[h.ids for h in row] for row in found]

    found = search()
    # The package has a function of the module's name.
    module = sys.modules["textmill.models.decoding.decode"]
    monkeypatch.setattr(module, "fastest", lambda model, rows: model)
    assert found == search()


def test_it_is_chosen_where_it_knows_every_block(make_model):
    assert isinstance(fastest(make_model(), rows=1), FastDecoder)
    model = make_model()
    fast = fastest(model, rows=32)
    assert fastest(fast, rows=32) is fast
    model.decoder.layers[0].register_forward_hook(lambda *_: None)
    assert fastest(model, rows=32) is model
    other = make_model()
    other.decoder.layers[1].attention.out = torch.nn.Sequential(torch.nn.Linear(16, 16))
    assert fastest(other, rows=32) is other
    talking = make_model(attention=TalkingHeads.Config())
    assert fastest(talking, rows=32) is talking


@torch.inference_mode()
def test_its_steps_are_of_float32_under_autocast_too(make_model):
    model, given, tokens = make_model(SIZE), sources(), torch.full((9,), 4)
    fast = fastest(model, rows=32)
    memory = fast.encode(*given)
    wanted = fast.step(tokens, fast.start(memory))
    with torch.autocast("cpu", torch.bfloat16):
        assert torch.equal(fast.step(tokens, fast.start(memory)), wanted)
        assert not torch.equal(fast.encode(*given).states, memory.states)


@pytest.mark.parametrize(
    "kind", [torch.float32, pytest.param(torch.float64, marks=pytest.mark.slow)]
)
def test_copies_of_weights_are_kept_until_a_weight_changes_and_go_with_the_model(make_model, kind):
    model = make_model(SIZE).to(kind)
    laid = fastest(model, rows=32).laid
    assert fastest(model, rows=32).laid is laid
    for change in (
        lambda p: p.detach()[1, 2].mul_(1.01),
        lambda p: p.data.copy_(p.data.flip(0)),
        lambda p: setattr(p, "data", p.data.clone()),
    ):
        for parameter in (model.decoder.layers[1].feed_forward.outer.weight, model.output_weight):
            change(parameter)
            assert fastest(model, rows=32).laid is not laid
            laid = fastest(model, rows=32).laid
            assert fastest(model, rows=32).laid is laid
    gone = weakref.ref(model)
    del model
    gc.collect()
    assert gone() is None


class Shifted(Transformer):
    """A model whose step is its own: the end mark and its neighbour change places."""

    def step(self, tokens, state):
        return super().step(tokens, state).roll(1, dims=1)


def test_a_subclass_decodes_by_its_own_step(make_model):
    model = make_model(SIZE)
    source, lengths = sources()
    plain = decode(model, source, lengths, Decoding(), prefix=[BOS], eos_idx=EOS)
    model.__class__ = Shifted
    assert fastest(model, rows=32) is model
    assert decode(model, source, lengths, Decoding(), prefix=[BOS], eos_idx=EOS) != plain


@pytest.mark.parametrize(
    "path",
    [
        "", "decoder", "decoder.layers.1.attention.heads", "decoder.layers.1.cross_attention.kv",
        "decoder.layers.0.feed_forward.inner", "decoder.layers.0.feed_forward_residual",
    ],
)  # fmt: skip
def test_a_method_replaced_on_an_instance_is_not_passed_by(make_model, path):
    model = make_model(SIZE)
    module = model.get_submodule(path)
    module.forward = module.forward
    assert fastest(model, rows=32) is model
    del module.forward
    assert fastest(model, rows=32) is not model
    model.step = model.step
    assert fastest(model, rows=32) is model


def test_hooks_of_all_modules_are_not_passed_by(make_model):
    model = make_model(SIZE)
    hook = torch.nn.modules.module.register_module_forward_hook(lambda *_: None)
    try:
        assert fastest(model, rows=32) is model
    finally:
        hook.remove()
    assert fastest(model, rows=32) is not model


@torch.inference_mode()
def test_what_a_hook_keeps_of_the_embedding_is_not_changed(make_model):
    model, kept = make_model(SIZE, positions="rotary", scale_embedding=False), []
    model.target.register_forward_hook(lambda module, args, found: kept.append(found))
    fast, memory = fastest(model, rows=32), model.encode(*sources(2))
    assert isinstance(fast, FastDecoder)
    fast.step(torch.tensor([7, 8]), fast.start(memory))
    assert torch.equal(kept[0][:, 0], model.target.tokens.weight[[7, 8]])
