"""Masks: how many, of what, in whose place; new in each epoch and the same for the same epoch."""

import itertools

import numpy as np
import pytest

from textmill.data.block_batches import Blocking
from textmill.data.masking import MaskedBlocks, Masking, mask_text, words_of
from textmill.errors import DataError
from textmill.text.ragged import Ragged
from textmill.text.tokenizers.tokenizer import PieceKinds

SIZE = 50
MARKS = 4
PIECES = PieceKinds(begins=np.arange(SIZE) % 2 == 0, plain=np.arange(SIZE) >= MARKS)
"""Odd ids go on with a word; the first four are marks."""


def text(rows=300, *, seed=0):
    random = np.random.default_rng(seed)
    return Ragged.from_lists(
        [random.integers(0, SIZE, size=random.integers(0, 30)).tolist() for _ in range(rows)]
    )


def masked(ids, masking=None, *, seed=1, epoch=0):
    masking = masking or Masking()
    words = words_of(ids, PIECES) if masking.whole_words else np.arange(len(ids.values))
    return mask_text(ids, masking, PIECES, words, seed=seed, epoch=epoch)


def test_the_share_is_exact_and_marks_are_never_chosen():
    ids = text()
    plain = ids.values >= MARKS
    for share in (0.15, 0.5, 0.9):
        masks = masked(ids, Masking(share=share, whole_words=False))
        assert masks.chosen.sum() == round(share * plain.sum())
        assert plain[masks.chosen].all()
    able = np.unique(words_of(ids, PIECES)[plain])
    found = np.unique(words_of(ids, PIECES)[masked(ids).chosen])
    assert len(found) == round(0.15 * len(able))


def test_what_stands_in_their_place_is_80_10_10():
    ids = text(3000)
    masks = masked(ids, Masking(share=0.3))
    same = masks.read == ids.values
    assert same[~masks.chosen].all()
    count, found = masks.chosen.sum(), masks.read[masks.chosen]
    three_sigma = 3 * np.sqrt(0.25 / count)
    assert (found == SIZE).mean() == pytest.approx(0.8, abs=three_sigma)
    # One of the tokens at random is the token itself.
    random = 0.1 * (1 - 1 / (SIZE - MARKS))
    assert ((found != SIZE) & ~same[masks.chosen]).mean() == pytest.approx(random, abs=three_sigma)
    others = np.bincount(found[found < SIZE], minlength=SIZE)
    assert not others[:MARKS].any()
    assert others[MARKS:].all()
    all_masks = masked(ids, Masking(masked=1, random=0))
    assert (all_masks.read[all_masks.chosen] == SIZE).all()
    none = masked(ids, Masking(masked=0, random=0))
    assert np.array_equal(none.read, ids.values)
    assert none.chosen.any()


def test_the_tokens_of_a_word_are_chosen_together():
    ids = text()
    chosen, words = masked(ids).chosen, words_of(ids, PIECES)
    for word in range(words[-1] + 1):
        assert len(set(chosen[words == word].tolist())) == 1
    alone = masked(ids, Masking(whole_words=False)).chosen
    assert any(len(set(alone[words == w].tolist())) == 2 for w in range(words[-1] + 1))


def test_words_are_those_of_a_plain_loop():
    ids, number, expected = text(seed=3), -1, []
    for row in ids:
        before = None
        for token in row.tolist():
            goes_on = before is not None and before >= MARKS and token >= MARKS and token % 2
            number += not goes_on
            expected.append(number)
            before = token
    assert words_of(ids, PIECES).tolist() == expected


def test_masks_are_a_function_of_seed_and_epoch():
    ids = text()
    same, again = masked(ids), masked(ids)
    assert np.array_equal(same.read, again.read)
    assert np.array_equal(same.chosen, again.chosen)
    for other in (masked(ids, seed=2), masked(ids, epoch=1)):
        assert not np.array_equal(same.chosen, other.chosen)


def test_at_least_one_word_is_chosen_and_none_there_is_an_error():
    assert masked(Ragged.from_lists([[4]])).chosen.tolist() == [True]
    with pytest.raises(DataError, match="no token that can be masked"):
        masked(Ragged.from_lists([[0, 1], [3]]))


# -- in blocks


def blocks(ids, *, train=True, masking=None, **blocking):
    blocking = Blocking(**{"length": 16, "batch_size": 4, "shuffle": train, **blocking})
    rows = [{"text": str(i)} for i in range(len(ids))]
    how = {"masking": masking or Masking(), "pieces": PIECES}
    return MaskedBlocks(ids, rows, blocking, train=train, **how)


def epochs_of(data, count):
    return [[(b.inputs.tolist(), b.counted.tolist()) for b in data] for _ in range(count)]


def test_each_token_to_be_found_is_counted_once_whatever_the_batches():
    ids = text(40)
    masks = masked(ids, seed=0)
    for length, width in [(16, 4), (7, 1), (500, 9)]:
        data, found = blocks(ids, train=False, length=length, batch_size=width), []
        for batch in data:
            found += batch.targets[batch.counted].tolist()
            real = batch.inputs[batch.counted] != SIZE
            assert batch.count == batch.counted.sum() == len(batch.row_of)
            assert (real.float().mean() < 0.5) or batch.count < 9
        assert found == ids.values[masks.chosen].tolist()


def test_training_masks_are_new_in_each_epoch_and_evaluations_alike():
    one, two = epochs_of(blocks(text(), shuffle=False), 2)
    assert one != two
    assert epochs_of(blocks(text(), shuffle=False), 2) == [one, two]
    assert epochs_of(blocks(text(), shuffle=False, seed=5), 1) != [one]
    one, two = epochs_of(blocks(text(), train=False), 2)
    assert one == two
    assert epochs_of(blocks(text(), train=False, seed=5), 1) == [one]


def test_a_batch_of_training_always_has_a_target():
    ids = Ragged.from_lists([[4, 6, 8, 10]] * 20)
    for batch in blocks(ids, length=2, batch_size=1):
        assert batch.count
    assert any(b.count == 0 for b in blocks(ids, train=False, length=2, batch_size=1))


def test_an_evaluation_says_how_much_it_is_of():
    data = blocks(text(40), train=False)
    chosen = masked(text(40), seed=0).chosen
    none = sum(not chosen[begin:end].any() for begin, end in itertools.pairwise(text(40).offsets))
    assert data.details == {
        "masked_accuracy": f"{chosen.sum()} of {len(chosen)} tokens are to be found, always the "
        f"same. {none} of 40 rows have none of them, and no prediction."
    }
    assert blocks(text(40)).details == {}


# -- in segments


def pairs(rows, *, train=True, **blocking):
    """Blocks of two segments of a text whose tokens are their own places."""
    ids = Ragged.from_lists(rows)
    size = len(ids.values)
    pieces = PieceKinds(begins=np.ones(size, bool), plain=np.ones(size, bool))
    blocking = Blocking(**{"length": 7, "batch_size": 3, "shuffle": train, **blocking})
    how = {"masking": Masking(), "pieces": pieces, "segments": True, "draws": True}
    return MaskedBlocks(ids, [{}] * len(rows), blocking, train=train, **how)


@pytest.mark.parametrize("train", [True, False])
def test_the_second_segments_of_half_of_the_blocks_change_places(train):
    rows = np.array_split(np.arange(205), 9)
    data = pairs([row.tolist() for row in rows], train=train)
    for _ in range(2):
        tokens, follows = [], []
        for batch in data:
            for targets, parts, true in zip(
                batch.targets.tolist(), batch.parts.tolist(), batch.follows.tolist(), strict=True
            ):
                assert parts == [0, 0, 0, 1, 1, 1, 1]
                for segment in (targets[:3], targets[3:]):
                    assert all((b - a) % 205 == 1 for a, b in itertools.pairwise(segment))
                assert true == ((targets[3] - targets[2]) % 205 == 1)
                tokens += targets
                follows.append(true)
        assert len(follows) == 30
        assert sum(follows) == 15
        # 30 blocks of 7, of which the last one reads 5 tokens once more.
        assert set(tokens) == {*range(205)}


@pytest.mark.parametrize("batch_size", [1, 4, 99])
def test_each_mask_is_counted_once_in_segments_too_and_draws_do_not_depend_on_batches(batch_size):
    rows = [row.tolist() for row in np.array_split(np.arange(205), 9)]
    found = []
    for data in (pairs(rows, train=False), pairs(rows, train=False, batch_size=batch_size)):
        each = [(b.targets[b.counted].tolist(), b.draws.tolist()) for b in data]
        drawn = [pair for tokens, draws in each for pair in zip(tokens, draws, strict=True)]
        assert len({token for token, _ in drawn}) == len(drawn) == round(0.15 * 205)
        found.append(sorted(drawn))
    assert found[0] == found[1]
    assert len({draw for _, draw in found[0]}) > 25


def test_segments_and_draws_are_a_function_of_seed_and_epoch_and_a_resume_has_the_same():
    def epoch(data):
        return [(b.targets.tolist(), b.follows.tolist(), b.draws.tolist()) for b in data]

    rows = [row.tolist() for row in np.array_split(np.arange(205), 9)]
    data = pairs(rows)
    one, two = epoch(data), epoch(data)
    assert one != two
    for seed, wanted in ((0, True), (1, False)):
        assert (epoch(pairs(rows, seed=seed)) == one) == wanted
    resumed = pairs(rows)
    resumed.load_state_dict({"epoch": 1, "position": 4})
    assert epoch(resumed) == two[4:]


def test_a_block_of_one_token_cannot_be_two_segments():
    with pytest.raises(DataError, match=r"task\.block"):
        pairs([[0]])
