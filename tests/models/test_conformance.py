"""What every encoder-decoder must do: one suite, a line for each path through the code."""

from types import SimpleNamespace

import pytest
import torch

from tests.pretrained_checkpoints import SEQ2SEQ
from textmill.models.decoders.pretrained_seq2seq import PretrainedSeq2Seq
from textmill.models.decoding import Decoding, decode
from textmill.models.layers.attention import MultiHead, TalkingHeads
from textmill.models.losses import cross_entropy
from textmill.models.lstm_seq2seq import LstmSeq2Seq
from textmill.models.transformer import Transformer

SIZE, PAD = 40, 1


def transformer(**settings):
    sizes = {"dim": 16, "num_encoder_layers": 1, "num_decoder_layers": 2, "ffn_dim": 32}
    return Transformer.Config(**{**sizes, "num_heads": 2, "max_length": 64, **settings})


def pretrained(name, **told):
    told = {"model_type": name, **SEQ2SEQ[name], "vocab_size": SIZE, **told}
    return PretrainedSeq2Seq.Config(architecture=told)


VARIANTS = {
    "tiny": transformer(),
    "post": transformer(
        norm_order="post", positions="learned", position_offset=2, tie="decoder", output_bias=True
    ),
    "llama": transformer(
        num_heads=4, attention=MultiHead.Config(num_kv_heads=2), feed_forward="gated",
        activation="silu", norm="rms_norm", positions="rotary",
    ),
    "talking": transformer(
        attention=TalkingHeads.Config(), attention_dropout=0.1, tie="none", scale_embedding=False
    ),
    "lstm": LstmSeq2Seq.Config(dim=32),
    "lstm_input_feeding": LstmSeq2Seq.Config(
        dim=28, hidden_dim=32, num_layers=2, bidirectional=False, input_feeding=True, tie="decoder"
    ),
    "lstm_dot": LstmSeq2Seq.Config(dim=32, hidden_dim=28, attention="dot", tie="none"),
    "t5": pretrained("t5"),
    "marian": pretrained("marian", init_std=0.1),
}  # fmt: skip
TOKENIZER = SimpleNamespace(vocab_info=SimpleNamespace(size=SIZE, pad_idx=PAD))


@pytest.fixture(params=VARIANTS)
def model(request):
    return VARIANTS[request.param].build(tokenizer=TOKENIZER).eval()


@pytest.fixture
def batch():
    """Sources with their lengths, and inputs of the decoder."""
    lengths = torch.tensor([7, 3, 5, 2])
    source = torch.randint(4, SIZE, (4, 7))
    source = source.masked_fill(torch.arange(7) >= lengths[:, None], PAD)
    return source, lengths, torch.randint(4, SIZE, (4, 6))


def test_shapes(model, batch):
    source, _, _ = batch
    assert model(*batch).shape == (4, 6, SIZE)
    hidden = model.hidden(*batch)
    assert hidden.shape == (4, 6, model.output_weight.shape[1])
    assert model.project(hidden[:, 0]).shape == (4, SIZE)
    assert model.encode(source, None).states.shape[:2] == (4, 7)
    torch.testing.assert_close(model.project(hidden), model(*batch))


def test_every_parameter_learns(model, batch):
    model.train()
    logits = model(*batch).flatten(0, 1)
    loss = cross_entropy(logits, torch.randint(0, SIZE, (24,)), label_smoothing=0.1)
    assert loss.total / 24 < 1.5 * torch.tensor(float(SIZE)).log()  # starts near uniform
    loss.total.backward()
    for name, parameter in model.named_parameters():
        if not parameter.requires_grad:  # sines, which Marian has among its parameters
            continue
        assert parameter.grad is not None, name
        assert parameter.grad.isfinite().all(), name
        assert parameter.grad.any(), name


def test_state_dict_round_trip(model, batch):
    other = model.config.build(tokenizer=TOKENIZER).eval()
    assert not torch.equal(other(*batch), model(*batch))
    other.load_state_dict(model.state_dict())
    assert torch.equal(other(*batch), model(*batch))
    assert other.config == model.config


def test_padding_changes_nothing(model, batch):
    source, lengths, target = batch
    wanted = model(source, lengths, target)
    more = torch.full((4, 3), PAD)
    longer = model(torch.cat([source, more], 1), lengths, torch.cat([target, more], 1))
    torch.testing.assert_close(longer[:, :6], wanted, rtol=1e-4, atol=1e-5)
    other = source.masked_fill(source == PAD, 5)
    torch.testing.assert_close(model(other, lengths, target), wanted)
    for i, length in enumerate(lengths.tolist()):  # without padding and without a mask
        alone = model(source[i : i + 1, :length], None, target[i : i + 1])
        torch.testing.assert_close(alone[0], wanted[i], rtol=1e-4, atol=1e-5)


def test_one_step_at_a_time_equals_the_whole(model, batch):
    source, lengths, _ = batch
    target = torch.randint(4, SIZE, (4, 40))  # longer than a cache starts with
    with torch.inference_mode():
        wanted = model(source, lengths, target)
        state = model.start(model.encode(source, lengths))
        found = [model.step(target[:, i], state) for i in range(40)]
    torch.testing.assert_close(torch.stack(found, 1), wanted, rtol=1e-5, atol=1e-5)


def test_selected_rows_go_on_as_themselves(model, batch):
    source, lengths, target = batch
    rows = torch.tensor([3, 1, 1])
    with torch.inference_mode():
        wanted = model(source, lengths, target)[rows, -1]
        state = model.start(model.encode(source, lengths))
        for i in range(3):
            model.step(target[:, i], state)
        state.select(rows)
        assert len(state) == 3
        for i in range(3, 6):
            found = model.step(target[rows, i], state)
    torch.testing.assert_close(found, wanted, rtol=1e-5, atol=1e-5)


def test_rows_of_a_group_share_a_memory(model, batch):
    source, lengths, target = batch
    with torch.inference_mode():
        wanted = model(source, lengths, target)
        state = model.start(model.encode(source, lengths))
        model.step(target[:, 0], state)
        state.repeat(2)
        assert len(state) == 8
        state.select(torch.tensor([1, 0, 3, 2, 5, 4, 7, 6]))
        model.step(target[:, 1].repeat_interleave(2), state)
        state.select(torch.tensor([7, 6, 2, 2]), groups=torch.tensor([3, 1]))
        for i in range(2, 6):
            found = model.step(target[[3, 3, 1, 1], i], state)
    torch.testing.assert_close(found, wanted[[3, 3, 1, 1], -1], rtol=1e-5, atol=1e-5)


def test_greedy_decoding_is_the_naive_search(model, batch):
    source, lengths, _ = batch
    model.load_state_dict({name: 3 * value for name, value in model.state_dict().items()})
    decoding = Decoding(max_length_a=0, max_length_b=10)
    found = decode(model, source, lengths, decoding, prefix=[2], eos_idx=3)
    for i, length in enumerate(lengths.tolist()):
        ids = [2]
        while len(ids) < 11:
            with torch.inference_mode():
                logits = model(source[i : i + 1, :length], None, torch.tensor([ids]))[0, -1]
            if (token := int(logits.argmax())) == 3:
                break
            ids.append(token)
        assert found[i][0].ids == ids[1:]
    assert len({tuple(row[0].ids) for row in found}) > 1
