"""Greedy and beam search against an enumeration of all sequences, and row by row."""

import itertools

import pytest
import torch

from textmill.models.decoding import Decoding, decode

BOS, EOS = 1, 2


@pytest.fixture
def model(make_model):
    return make_model()


def sources(rows=6):
    lengths = torch.randint(1, 6, (rows,))
    return torch.randint(0, 5, (rows, 5)), lengths


def enumerated(model, source, length, *, limit, prefix=(BOS,)):
    """Every sequence of one source with its log probability: no search, no cache."""
    vocabulary = range(5)
    others = [token for token in vocabulary if token != EOS]
    sequences = [
        (*start, EOS) for n in range(limit) for start in itertools.product(others, repeat=n)
    ] + list(itertools.product(others, repeat=limit))
    found = []
    for sequence in sequences:
        target = torch.tensor([[*prefix, *sequence]])
        logits = model(source[None, :length], None, target[:, :-1])[0, len(prefix) - 1 :]
        steps = logits.log_softmax(-1).gather(1, target[0, len(prefix) :, None])
        found.append((steps.sum().item(), sequence))
    return found


def best_first(sequences, penalty):
    """Scores and ids of sequences, the best first."""
    scored = [
        (total / len(sequence) ** penalty, [token for token in sequence if token != EOS])
        for total, sequence in sequences
    ]
    return sorted(scored, reverse=True)


@torch.no_grad()
def test_a_wide_beam_finds_the_best_of_all_sequences(model):
    (source, lengths), prefix = sources(3), [EOS, 3]
    every = [
        enumerated(model, source[row], lengths[row], limit=3, prefix=prefix) for row in range(3)
    ]
    for penalty in (1.7, -0.5):
        found = decode(model, source, lengths, wide(penalty), prefix=prefix, eos_idx=EOS)
        for row in range(3):
            wanted = best_first(every[row], penalty)[:10]
            assert [h.ids for h in found[row]] == [ids for _, ids in wanted]
            scores = [score for score, _ in wanted]
            assert [h.score for h in found[row]] == pytest.approx(scores, rel=1e-4, abs=1e-5)


def wide(penalty):
    # 4 + 16 prefixes of up to 2 ids: a beam of 25 drops none; "never" stops for no guess.
    return Decoding(
        beam_size=25, n_best=10, length_penalty=penalty, early_stopping="never", max_length_a=0,
        max_length_b=3,
    )  # fmt: skip


@torch.no_grad()
def test_a_vocabulary_too_small_for_n_gives_fewer(model):
    source, lengths = sources(2)
    decoding = Decoding(beam_size=9, n_best=9, max_length_a=0, max_length_b=1)
    found = decode(model, source, lengths, decoding, prefix=[BOS], eos_idx=EOS)
    assert [len(row) for row in found] == [5, 5]


@pytest.mark.parametrize("beam_size", [1, 2])
def test_the_model_s_positions_are_a_limit(build, beam_size):
    model = build(size=9, max_length=12)
    decoding = Decoding(beam_size=beam_size, max_length_b=500)
    source = torch.randint(4, 9, (2, 3))
    found = decode(model, source, None, decoding, prefix=[BOS, 4], eos_idx=77)
    assert [len(row[0].ids) for row in found] == [11, 11]


def test_a_model_in_training_decodes_without_dropout_and_goes_on_training(build):
    model = build(dropout=0.5)
    source = torch.randint(4, 50, (3, 5))
    wanted = decode(model, source, None, Decoding(), prefix=[BOS], eos_idx=EOS)
    model.train()
    assert decode(model, source, None, Decoding(), prefix=[BOS], eos_idx=EOS) == wanted
    assert model.training


def test_no_rows_give_no_rows(build):
    source = torch.zeros((0, 5), dtype=torch.int64)
    assert decode(build(), source, None, Decoding(), prefix=[BOS], eos_idx=EOS) == []
