"""The parser against one that has a list for its stack, and its searches against all trees."""

from types import SimpleNamespace

import pytest
import torch

from tests.models.parsers.test_transitions import ACTIONS, BOUNDARY, REDUCE, SHIFT, WORDS, searched
from textmill.metrics.frames import read_tree
from textmill.models.decoding.beam import beam_search
from textmill.models.decoding.search_settings import Decoding
from textmill.models.decoding.search_state import Request
from textmill.models.encoders.lstm import LstmEncoder
from textmill.models.layers.word_embeddings import WordEmbedding
from textmill.models.parsers.rnng import Rnng
from textmill.text.features.tree_actions import actions_of_tags, tree_of_actions
from textmill.text.features.tree_tags import tags_of_tree

TOKENIZER = SimpleNamespace(vocab_info=SimpleNamespace(size=9, pad_idx=0, unk_idx=1))
LENGTHS = torch.tensor([3, 1, 0, 5])
IDS = torch.tensor([[2, 3, 4, 0, 0], [5, 0, 0, 0, 0], [0, 0, 0, 0, 0], [6, 7, 8, 2, 3]])
TREES = [
    "[IN:A x [SL:C y z ] ]",
    "[IN:B [SL:C [IN:A x ] ] ]",
    None,
    "[IN:A v [SL:C [IN:B w x ] y ] z ]",
]


def numbers(tree):
    return [ACTIONS.index(name) for name in actions_of_tags(tags_of_tree(tree)[1])] if tree else []


def padded(rows):
    longest = max(map(len, rows))
    return torch.tensor([[*row, *[0] * (longest - len(row))] for row in rows])


@pytest.fixture
def model():
    torch.manual_seed(1)
    made = Rnng.Config(
        embedding=WordEmbedding.Config(dim=6), encoder=LstmEncoder.Config(hidden_dim=5),
        dim=8, max_depth=3,
    ).build(tokenizer=TOKENIZER, labels=ACTIONS).eval()  # fmt: skip
    for table in (made.opened, made.done):
        torch.nn.init.normal_(table.weight)
    torch.nn.init.normal_(made.scores.weight)
    torch.nn.init.normal_(made.no_words)
    return made


def run(cell, vectors):
    """The state of one direction of an LSTM after some vectors, one at a time."""
    state = None
    for vector in vectors:
        _, state = cell(vector[None], state)
    return state[0][0]


def scored_slowly(model, states, tree):
    """Log-probabilities of a tree's actions, by a stack that is a Python list."""
    parts = torch.nn.LSTM(8, 8), torch.nn.LSTM(8, 8)
    layer = model.composition.layers[0]
    for lstm, suffix in zip(parts, ("", "_reverse"), strict=True):
        for name in ("weight_ih", "weight_hh", "bias_ih", "bias_hh"):
            getattr(lstm, f"{name}_l0").data = getattr(layer, f"{name}_l0{suffix}").data
    zeros = torch.zeros(1, 8)
    start = torch.full((1,), BOUNDARY)
    # Of each thing on the stack: its vector, the LSTM's state at it, and whether it is open.
    first = model.opened(start)
    stack = [(first, model.stack(first, (zeros, zeros)), False)]
    done, left, found = [model.done(start)[0]], [*states], []
    for action in numbers(tree):
        rest = left[0] if left else model.no_words
        read = torch.cat([stack[-1][1][0][0], rest, run(model.history, done)])
        scores = model.scores(model.summary(read).tanh())
        opened = [ACTIONS[n] for _, _, n in stack if n is not False]
        allowed = []
        if left and opened:
            allowed.append(SHIFT)
        if left and len(opened) < 3:
            want = "IN:" if not opened or opened[-1].startswith("SL:") else "SL:"
            allowed += [n for n, name in enumerate(ACTIONS) if name.startswith(want)]
        if opened and stack[-1][2] is False and (len(opened) > 1 or not left):
            allowed.append(REDUCE)
        found.append(scores[action] - scores[allowed].logsumexp(0))
        assert action in allowed
        number = torch.tensor([action])
        if action == SHIFT:
            vector, is_open = model.word(left.pop(0)).tanh()[None], False
        elif action == REDUCE:
            children = []
            while stack[-1][2] is False:
                children.insert(0, stack.pop()[0][0])
            label = stack.pop()[0][0]
            vectors = [label, *children]
            ends = run(parts[0], vectors), run(parts[1], vectors[::-1])
            vector, is_open = model.subtree(torch.cat(ends)).tanh()[None], False
        else:
            vector, is_open = model.opened(number), action
        stack.append((vector, model.stack(vector, stack[-1][1]), is_open))
        done.append(model.done(number)[0])
    assert len(stack) == 2
    return torch.stack(found)


def test_batches_score_as_a_stack_of_one_sentence_does(model):
    actions = [numbers(tree) for tree in TREES]
    states = model(IDS, LENGTHS)
    found = model.log_probabilities(states, LENGTHS, padded(actions))
    for row, tree in enumerate(TREES):
        if tree:
            wanted = scored_slowly(model, states[row, : LENGTHS[row]], tree)
            got = found[row, : len(wanted)]
            torch.testing.assert_close(got, wanted, atol=1e-5, rtol=0)


def test_steps_score_as_the_whole_does(model):
    kept = [0, 1, 3]
    states, lengths = model(IDS, LENGTHS)[kept], LENGTHS[kept]
    actions = padded([numbers(TREES[row]) for row in kept])
    wanted = model.log_probabilities(states, lengths, actions)
    state, before = model.start(model.encode(states, lengths)), torch.full((3,), BOUNDARY)
    order = torch.tensor([2, 0, 1])
    for step in range(actions.shape[1]):
        if step == 3:  # rows may change their places
            state.select(order)
            before, actions, wanted = before[order], actions[order], wanted[order]
        found = model.step(before, state).log_softmax(dim=1)
        before = actions[:, step]
        real = torch.tensor([step < len(numbers(TREES[row])) for row in kept])
        real = real[order] if step >= 3 else real
        got = found.gather(1, before[:, None])[:, 0]
        torch.testing.assert_close(got[real], wanted[:, step][real])


def every_tree(model, states, words):
    """All trees over words, each with its log-probability, the likeliest first."""
    trees = [*searched(words, 3)]
    actions = [numbers(tree) for tree in trees]
    rows = torch.arange(1).expand(len(trees))
    lengths = torch.full((len(trees),), len(words))
    with torch.no_grad():
        scores = model.log_probabilities(states[rows], lengths, padded(actions))
    totals = [float(row[: len(own)].sum()) for row, own in zip(scores, actions, strict=True)]
    return sorted(zip(totals, trees, strict=True), reverse=True)


def asked(model, states, lengths, beam_size, **settings):
    decoding = Decoding(
        beam_size=beam_size, length_penalty=0.0, max_length_a=7, max_length_b=1, **settings
    )
    request = Request(
        source=states,
        source_lengths=lengths,
        decoding=decoding,
        prefix=[BOUNDARY],
        eos_idx=BOUNDARY,
    )
    return beam_search(model, request)


def written(hypothesis, words):
    return tree_of_actions(words, [ACTIONS[n] for n in hypothesis.ids], root="IN:A")


def test_beams_that_hold_all_find_the_best_trees_of_all(model):
    states, words, lengths = model(IDS, LENGTHS)[:1, :3], WORDS, LENGTHS[:1]
    wanted = every_tree(model, states, words)
    assert sum(torch.tensor([total for total, _ in wanted]).exp()).item() == pytest.approx(1)
    count = len(wanted)
    assert 100 < count < 1000
    [found] = asked(model, states, lengths, count, n_best=count)
    assert [h.score for h in found] == pytest.approx([total for total, _ in wanted], abs=1e-4)
    assert [written(h, words) for h in found[:9]] == [tree for _, tree in wanted[:9]]
    [best] = model.search(states, lengths, beam_size=count)
    assert written(best, words) == wanted[0][1]


def test_one_beam_is_greedy_and_more_are_no_worse(model):
    states = model(IDS, LENGTHS)
    greedy = model.search(states, LENGTHS, beam_size=1)
    one = [best for best, *_ in asked(model, states, LENGTHS, 1)]
    assert [h.ids for h in greedy] == [h.ids for h in one]
    assert [h.score for h in greedy] == pytest.approx([h.score for h in one], abs=1e-5)
    for few, many in zip(greedy, model.search(states, LENGTHS, beam_size=300), strict=True):
        assert many.score >= few.score - 1e-5
    assert greedy[2].ids == []  # a sentence without a word


@pytest.mark.parametrize("beam_size", [1, 3])
def test_any_weights_answer_with_trees_of_all_words(model, beam_size):
    words = ["v", "w", "x", "y", "z"]
    for seed in range(8):
        torch.manual_seed(seed)
        torch.nn.init.normal_(model.scores.weight, std=4)
        found = model.search(model(IDS, LENGTHS), LENGTHS, beam_size=beam_size)
        for hypothesis, length in zip(found, LENGTHS.tolist(), strict=True):
            text = written(hypothesis, words[:length])
            read_tree(text)
            assert [w for w in text.split() if w in words] == words[:length]


def test_padding_and_other_rows_change_nothing(model):
    kept = [0, 1, 3]
    actions = [numbers(TREES[row]) for row in kept]
    whole = model.log_probabilities(model(IDS, LENGTHS)[kept], LENGTHS[kept], padded(actions))
    for row, number in enumerate(kept):
        length = LENGTHS[number : number + 1]
        states = model(IDS[number : number + 1, : int(length)], length)
        alone = model.log_probabilities(states, length, torch.tensor([actions[row]]))
        torch.testing.assert_close(alone[0], whole[row, : len(actions[row])])


def test_every_parameter_learns_and_too_deep_trees_have_a_loss(model):
    deep = "[IN:A [SL:C [IN:B [SL:C [IN:A x ] ] ] ] ]"  # five levels: answers have three
    model.train()
    actions = padded([numbers(TREES[0]), numbers(deep)])
    found = model.log_probabilities(model(IDS[:2], LENGTHS[:2]), LENGTHS[:2], actions)
    assert found[1, : len(numbers(deep))].isfinite().all()
    (-found[0].sum() - found[1].sum()).backward()
    for name, parameter in model.named_parameters():
        assert parameter.grad is not None, name
        assert parameter.grad.isfinite().all(), name
        assert parameter.grad.any(), name
