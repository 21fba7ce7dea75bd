"""Mask-predict against a plain reference, and the parts of its model against torch's."""

import math
from types import SimpleNamespace

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from textmill.errors import UserError
from textmill.models.decoders.mask_predict import MaskPredict
from textmill.models.decoding import mask_predict as search
from textmill.models.decoding.mask_predict import MaskPredictDecoding, mask_predict

SIZE, PAD, EOS, MOST = 12, 0, 3, 6
TOKENIZER = SimpleNamespace(vocab_info=SimpleNamespace(size=SIZE, pad_idx=PAD))


@pytest.fixture(params=["copies", "words"])
def model(request):
    """A model with scores far from uniform, all of whose tokens but two were written."""
    made = MaskPredict.Config(
        dim=16, num_heads=2, ffn_dim=32, num_encoder_layers=1, num_decoder_layers=2,
        max_length=32, copies=request.param == "copies", longest_move=MOST,
    ).build(tokenizer=TOKENIZER)  # fmt: skip
    with torch.no_grad():
        for parameter in made.parameters():
            if parameter.ndim > 1:
                parameter.mul_(2.0)
    made.written[2:] = True
    return made.eval()


@pytest.fixture
def batch():
    """Sources that end with a mark, and their lengths."""
    lengths = torch.tensor([7, 3, 5, 2, 6])
    source = torch.randint(4, SIZE, (5, 7))
    places = torch.arange(7)
    source[places == lengths[:, None] - 1] = EOS
    return source.masked_fill(places >= lengths[:, None], PAD), lengths


def answered(model, batch, **settings):
    decoding = MaskPredictDecoding(max_length_a=2.0, max_length_b=3, **settings)
    return mask_predict(model, *batch, decoding, eos_idx=EOS)


def reference(model, source, decoding):
    """Ghazvininejad et al. 2019, sections 3.1 and 3.2, for one sentence, a token at a time."""
    source, count = source[None], torch.tensor([len(source)])
    memory = model.encode(source, None)
    limit = min(int(decoding.max_length_a * count) + decoding.max_length_b, model.max_length)
    moves = model.move_scores(memory)[0].tolist()
    places = [
        at + max(range(2 * MOST + 1), key=each.__getitem__) - MOST for at, each in enumerate(moves)
    ]
    scores = torch.tensor(moves[-1]).log_softmax(dim=0).tolist()
    lengths = [int(count) + difference for difference in range(-MOST, MOST + 1)]
    able = [place for place, length in enumerate(lengths) if 0 < length <= limit]
    able.sort(key=lambda place: scores[place], reverse=True)
    found = []
    for chosen in able[: decoding.beam_size]:
        length = lengths[chosen]
        ids, log_probs, masked = [0] * length, [0.0] * length, [*range(length)]
        for t in range(1, decoding.iterations + 1):
            read = torch.zeros(1, length, dtype=torch.bool)
            read[0, masked] = True
            length_ = torch.tensor([length])
            decoded = model.read(torch.tensor([ids]), read, length_, memory, torch.tensor([places]))
            every = model.scores(decoded, torch.ones_like(read), memory)
            every[:, :2] = -math.inf  # never written
            chances = every.log_softmax(dim=1).tolist()
            for place in masked:
                log_probs[place] = max(chances[place])
                ids[place] = chances[place].index(log_probs[place])
            again = length * (decoding.iterations - t) // decoding.iterations
            masked = sorted(range(length), key=lambda place: log_probs[place])[:again]
            if not masked:
                break
        tokens = [i if i < SIZE else int(source[0, i - SIZE]) for i in ids]
        tokens = tokens[: tokens.index(EOS)] if EOS in tokens else tokens
        found.append(((scores[chosen] + sum(log_probs)) / length**decoding.length_penalty, tokens))
    return sorted(found, key=lambda each: each[0], reverse=True)[: decoding.n_best]


@pytest.mark.parametrize(
    "settings",
    [
        {"iterations": 1},
        {"iterations": 3},
        {"iterations": 9},
        {"iterations": 4, "beam_size": 3, "n_best": 2},
        {"iterations": 2, "beam_size": 40, "n_best": 5, "length_penalty": 0.5},
    ],
)
@torch.inference_mode()
def test_it_is_the_paper_s_algorithm(model, batch, settings, monkeypatch):
    monkeypatch.setattr(search, "ROWS", 4)  # so that there are several parts
    found = answered(model, batch, **settings)
    decoding = MaskPredictDecoding(max_length_a=2.0, max_length_b=3, **settings)
    source, lengths = batch
    different = set()
    for row, hypotheses in enumerate(found):
        wanted = reference(model, source[row, : lengths[row]], decoding)
        assert [h.ids for h in hypotheses] == [tokens for _, tokens in wanted]
        assert [h.score for h in hypotheses] == pytest.approx([s for s, _ in wanted], rel=1e-4)
        different |= {tuple(h.ids) for h in hypotheses}
    assert len(different) > 3


@torch.inference_mode()
def test_one_pass_takes_the_likeliest_of_what_is_all_masked(model, batch):
    memory = model.encode(*batch)
    places, lengths = torch.randint(0, 6, batch[0].shape), torch.tensor([4, 5, 2, 6, 3])
    once = MaskPredictDecoding(iterations=1)
    ids, log_probs = search.fill(model, memory, places, lengths, once)
    masked = torch.arange(6) < lengths[:, None]
    decoded = model.read(torch.full((5, 6), 7), masked, lengths, memory, places)
    scores = model.scores(decoded, masked, memory)
    scores[:, :2] = -torch.inf
    wanted = scores.log_softmax(dim=1).max(dim=1)
    assert ids[masked].tolist() == wanted.indices.tolist()
    torch.testing.assert_close(log_probs[masked], wanted.values)
    assert not log_probs[~masked].any()


def test_a_length_is_limited_and_one_that_is_not_allowed_gives_way_to_the_nearest(model, batch):
    decoding = {"max_length_a": 0.0, "max_length_b": 2, "min_length": 1, "beam_size": 13}
    rows = mask_predict(model, *batch, MaskPredictDecoding(**decoding, n_best=13), eos_idx=-1)
    assert all(len(h.ids) == 2 for row in rows for h in row)
    least = MaskPredictDecoding(min_length=20, max_length_b=40)
    assert [len(row[0].ids) for row in mask_predict(model, *batch, least, eos_idx=-1)] == [21] * 5


def test_moves_are_scored_by_torch_s_layers_and_are_how_much_later_a_token_is(model, batch):
    source, lengths = batch
    found = model.move_scores(model.encode(source, lengths))
    torch_s = nn.Sequential(nn.Linear(16, 16), nn.ReLU(), nn.Linear(16, 2 * MOST + 1))
    torch_s.load_state_dict(model.moves.state_dict())
    for row, length in enumerate(lengths):  # alone, without padding
        wanted = torch_s(model.encode(source[row : row + 1, :length], None).states[0])
        torch.testing.assert_close(found[row, :length], wanted, rtol=1e-4, atol=1e-5)
    moves = model.move(torch.tensor([7, 1, 20]), torch.tensor([5, 9, 5]))
    assert moves.tolist() == [MOST + 2, 0, 2 * MOST]
    scores = F.one_hot(torch.tensor([[MOST + 2, MOST, MOST - 1]]), 2 * MOST + 1).float()
    assert model.moved(scores).tolist() == [[2, 1, 1]]


@torch.inference_mode()
def test_each_token_knows_those_on_both_sides_and_no_masked_one(model, batch):
    ids, lengths = torch.randint(4, SIZE, (5, 6)), torch.tensor([6, 4, 5, 6, 6])
    masked = torch.zeros(5, 6, dtype=torch.bool)
    masked[:, 1] = True
    memory, places = model.encode(*batch), torch.arange(7).expand(5, 7)

    def read(ids, places=places):
        return model.read(ids, masked, lengths, memory, places).states

    before, other, hidden = read(ids), ids.clone(), ids.clone()
    other[:, 3] = (ids[:, 3] - 3) % 8 + 4
    hidden[:, 1] = (ids[:, 1] - 3) % 8 + 4
    assert not torch.isclose(before[:, 0], read(other)[:, 0]).all(dim=1).any()
    torch.testing.assert_close(read(hidden), before)
    padding = ids.clone()
    padding[1, 4:] = padding[2, 5:] = PAD
    torch.testing.assert_close(read(padding)[1, :4], before[1, :4])
    if model.copied is None:
        torch.testing.assert_close(read(ids, places + 1), before)
    else:  # a copied token is read by its state, and so is the one that is moved to a place
        copied = torch.where(torch.arange(6) == 3, SIZE, ids)
        assert not torch.isclose(before[:, 0], read(copied)[:, 0]).all(dim=1).any()
        assert not torch.isclose(before, read(ids, places + 1)).all(dim=2).any(dim=1).all()


def test_tokens_of_the_source_are_copied_each_once():
    config = MaskPredict.Config(dim=16, num_encoder_layers=1, num_decoder_layers=1)
    model = config.build(tokenizer=TOKENIZER)
    source = torch.tensor([[5, 6, 5, EOS, PAD, PAD], [7, 8, 9, 10, 11, EOS]])
    target = torch.tensor([[4, 5, 9, 5, 5, EOS, PAD], [9, 4, 7, PAD, PAD, PAD, PAD]])
    copied = model.with_copies(target, source)
    at = SIZE
    assert copied.tolist() == [
        [4, at, 9, at + 2, 5, at + 3, PAD],  # there is no third 5
        [at + 2, 4, at, PAD, PAD, PAD, PAD],
    ]
    assert torch.equal(model.with_tokens(copied, source), target)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"iterations": 0}, "decoding.iterations must be"),
        ({"sample": True}, "decoding.sample=True is for tokens that are generated one after"),
        ({"beam_size": 2, "early_stopping": "first"}, "decoding.early_stopping=first is for"),
        ({"no_repeat_ngram": 3}, "decoding.no_repeat_ngram=3 is for tokens"),
    ],
)
def test_settings_that_would_do_nothing_are_refused(settings, message):
    with pytest.raises(UserError) as caught:
        MaskPredictDecoding(**settings)
    assert str(caught.value).startswith(message)
