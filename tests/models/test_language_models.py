"""What every language model must do: one suite, a line for each."""

from types import SimpleNamespace

import pytest
import torch
from torch import nn

from tests.pretrained_checkpoints import LANGUAGE_MODELS
from textmill.errors import UserError
from textmill.models.causal_transformer import CausalTransformer
from textmill.models.decoders.pretrained import PretrainedLanguageModel
from textmill.models.decoding import Decoding
from textmill.models.decoding.decode import decode
from textmill.models.decoding.search_state import Generator
from textmill.models.language_model import LstmLanguageModel

TOKENIZER = SimpleNamespace(vocab_info=SimpleNamespace(size=11, pad_idx=0, eos_idx=1, bos_idx=2))
SMALL = {"dim": 8, "num_heads": 2, "ffn_dim": 16, "num_layers": 2, "max_length": 20}
MODELS = {
    "lstm": LstmLanguageModel.Config(dim=8),
    "lstm projected": LstmLanguageModel.Config(dim=6, hidden_dim=8, num_layers=3),
    "transformer": CausalTransformer.Config(**SMALL),
    "learned": CausalTransformer.Config(**SMALL, positions="learned", tie=False),
    "rows apart": CausalTransformer.Config(**SMALL, rows_apart=True),
    "sinusoidal": CausalTransformer.Config(**SMALL, positions="sinusoidal", norm_order="post"),
    **{
        family: PretrainedLanguageModel.Config(
            architecture={
                **LANGUAGE_MODELS[family][2],
                **{"model_type": family, "vocab_size": 11, "init_std": 0.2},
            }
        )
        for family in ("gpt2", "llama", "opt")
    },
}
IDS = torch.tensor([[3, 5, 6, 7, 2, 9], [3, 4, 4, 8, 10, 2]])


@pytest.fixture(params=MODELS)
def model(request):
    torch.manual_seed(1)
    return MODELS[request.param].build(tokenizer=TOKENIZER).eval()


def test_a_row_alone_is_as_beside_another(model):
    logits = model(IDS)
    assert logits.shape == (2, 6, 11)
    assert torch.allclose(model(IDS[1:]), logits[1:], atol=1e-5)


def test_steps_are_the_whole(model):
    assert isinstance(model, Generator)
    state = model.start(model.encode(IDS, None))
    steps = [model.step(IDS[:, place], state) for place in range(IDS.shape[1])]
    assert torch.allclose(torch.stack(steps, dim=1), model(IDS), atol=1e-5)


def test_a_block_after_another_is_one_block_where_a_state_is_carried(model):
    whole, _ = model.hidden(IDS)
    first, state = model.hidden(IDS[:, :4])
    if not model.carries_state:
        assert state is None
        return
    second, _ = model.hidden(IDS[:, 4:], state)
    assert torch.allclose(torch.cat([first, second], dim=1), whole, atol=1e-6)


def test_every_parameter_gets_a_gradient(model):
    model.train()
    loss = nn.functional.cross_entropy(model(IDS).flatten(0, 1), IDS.flatten())
    loss.backward()
    assert all(p.grad is not None and p.grad.abs().sum() > 0 for p in model.parameters())


@pytest.mark.parametrize("beams", [1, 3])
def test_a_search_goes_on_with_texts(model, beams):
    decoding = Decoding(beam_size=beams, n_best=beams, max_length_a=0.0, max_length_b=5)
    forced = [[5, 6], [], [7, 8, 9, 4]]
    source = torch.zeros(3, 4, dtype=torch.int64)
    found = decode(model, source, None, decoding, prefix=[3], eos_idx=3, forced=forced)
    for ids, hypotheses in zip(forced, found, strict=True):
        assert len(hypotheses) == beams
        for hypothesis in hypotheses:
            assert hypothesis.ids[: len(ids)] == ids
            assert len(hypothesis.ids) <= len(ids) + 5
            if beams == 1:
                read = torch.tensor([[3, *hypothesis.ids]])
                best = model(read)[0, len(ids) : -1].argmax(-1)
                assert best.tolist() == hypothesis.ids[len(ids) :]


@pytest.mark.parametrize("positions", ["rotary", "learned"])
def test_nothing_leaks_from_row_to_row_where_they_are_apart(positions):
    """Neither into a later row's scores nor, in the gradients, back into an earlier row."""
    torch.manual_seed(1)
    config = CausalTransformer.Config(**SMALL, rows_apart=True, positions=positions)
    model, joined = config.build(tokenizer=TOKENIZER), MODELS["learned"].build(tokenizer=TOKENIZER)
    ids = torch.tensor([[5, 6, 1, 7, 8, 9, 1, 4, 10], [5, 6, 7, 8, 1, 1, 3, 3, 4]])
    other = ids.clone()
    other[0, :2] = other[1, :4] = 10
    for each, same in ((model.eval(), True), (joined.eval(), False)):
        ours, theirs = each(ids), each(other)
        assert torch.equal(ours[0, 2:], theirs[0, 2:]) == same
        assert torch.equal(ours[1, 4:], theirs[1, 4:]) == same
        assert not torch.equal(ours[0, :2], theirs[0, :2])
    kept = []
    model.text.register_forward_hook(lambda *given: kept.append(given[2].retain_grad() or given[2]))
    model(ids)[0, 3:6].sum().backward()
    reached = kept[-1].grad[0].abs().sum(-1) > 0
    assert reached.tolist() == [False, False, True, True, True, True, False, False, False]
    if positions == "rotary":  # which know of distances alone
        assert torch.allclose(model(ids)[0, 2:6], model(ids[:1, 2:6])[0], atol=1e-5)


def test_an_lstm_is_torchs_own():
    torch.manual_seed(2)
    config = LstmLanguageModel.Config(dim=8, dropout=0.0)
    model = config.build(tokenizer=TOKENIZER)
    own = nn.LSTM(8, 8, num_layers=2, batch_first=True)
    weights = {
        name.replace("_l0", f"_l{number}"): value
        for number, layer in enumerate(model.layers)
        for name, value in layer.named_parameters()
    }
    own.load_state_dict(weights)
    first, (h, c) = own(model.tokens(IDS[:, :3]))
    second, _ = own(model.tokens(IDS[:, 3:]), (h, c))
    states, carried = model.hidden(IDS[:, :3])
    assert torch.allclose(states, first, atol=1e-6)
    assert torch.allclose(carried, torch.stack([h, c]), atol=1e-6)
    assert torch.allclose(model.hidden(IDS[:, 3:], carried)[0], second, atol=1e-6)


def test_what_is_too_long_and_a_state_it_has_not_are_refused():
    model = MODELS["transformer"].build(tokenizer=TOKENIZER)
    with pytest.raises(UserError, match="21 tokens is longer than the model's max_length of 20"):
        model(torch.zeros(1, 21, dtype=torch.int64))
    with pytest.raises(UserError, match="carries no state"):
        model.hidden(IDS, torch.zeros(1))


@pytest.mark.parametrize(
    ("config", "settings", "message"),
    [
        (LstmLanguageModel.Config, {"hidden_dim": 0}, "model.hidden_dim must be at least 1"),
        (LstmLanguageModel.Config, {"dropout": 1.0}, "model.dropout must be from 0 to below 1"),
        (CausalTransformer.Config, {"num_layers": 0}, "model.num_layers must be at least 1"),
        (CausalTransformer.Config, {"attention_dropout": -1.0}, "model.attention_dropout must be"),
        (CausalTransformer.Config, {"dim": 10}, "dim is 10 and num_heads 4"),
    ],
)
def test_settings_that_cannot_be_are_refused(config, settings, message):
    with pytest.raises(UserError, match=message):
        config(**settings)
