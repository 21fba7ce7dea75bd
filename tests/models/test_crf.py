"""The conditional random field against all its sequences, one by one."""

import itertools

import pytest
import torch

from textmill.models.crf import LinearChainCrf, allowed_transitions, tag_scheme

BIO = ["O", "B-x", "I-x", "B-y", "I-y"]
BILOU = ["O", "B-x", "I-x", "L-x", "U-x", "U-y"]
LENGTHS = [4, 1, 3, 0, 2]


def made(names, *, constrained=False, seed=0, scale=1.0):
    random = torch.Generator().manual_seed(seed)
    crf = LinearChainCrf(names, constrained=constrained).double()
    crf.transitions.data = torch.randn(crf.transitions.shape, generator=random) * scale
    scores = torch.randn(len(LENGTHS), max(LENGTHS), len(names), generator=random) * scale
    real = torch.arange(max(LENGTHS)) < torch.tensor(LENGTHS)[:, None]
    return crf, scores.masked_fill(~real[..., None], 1e3), real


def every_path(crf, scores, length):
    """Each sequence of labels of a sentence, with its score, by the definition."""
    size, moves = crf.num_labels, crf.transitions
    for path in itertools.product(range(size), repeat=length):
        total = torch.zeros(())
        if path:
            total = moves[size, path[0]] + moves[path[-1], size + 1]
        total = total + sum(scores[t, label] for t, label in enumerate(path))
        total = total + sum(moves[a, b] for a, b in itertools.pairwise(path))
        yield path, total


@pytest.fixture(params=[(BIO[:3], 0, 1.0), (BIO, 1, 2.0), (["A"], 2, 1.0), (BIO[:4], 3, 9.0)])
def case(request):
    names, seed, scale = request.param
    return made(names, seed=seed, scale=scale)


def test_the_likelihood_is_that_over_all_sequences(case):
    crf, scores, real = case
    random = torch.Generator().manual_seed(5)
    labels = torch.randint(crf.num_labels, real.shape, generator=random)
    found = crf.log_likelihood(scores, labels.masked_fill(~real, -1), real)
    for row, length in enumerate(LENGTHS):
        paths = dict(every_path(crf, scores[row], length))
        expected = paths[tuple(labels[row, :length].tolist())] - torch.stack(
            [*paths.values()]
        ).logsumexp(0)
        assert found[row].item() == pytest.approx(expected.item(), abs=2e-5)


def test_the_best_sequence_is_the_best_of_all(case):
    crf, scores, real = case
    found = crf.decode(scores, real)
    for row, length in enumerate(LENGTHS):
        best, _ = max(every_path(crf, scores[row], length), key=lambda pair: pair[1].item())
        assert found[row].tolist() == [*best, *[-1] * (max(LENGTHS) - length)]


def test_marginals_are_sums_over_all_sequences(case):
    crf, scores, real = case
    found = crf.marginals(scores, real)
    for row, length in enumerate(LENGTHS):
        expected = torch.zeros(max(LENGTHS), crf.num_labels)
        paths = [*every_path(crf, scores[row], length)]
        weights = torch.stack([score for _, score in paths]).softmax(0)
        for (path, _), weight in zip(paths, weights, strict=True):
            for t, label in enumerate(path):
                expected[t, label] += weight
        assert torch.allclose(found[row], expected, atol=1e-5)


@pytest.mark.parametrize("names", [BIO, BILOU])
def test_constrained_decoding_is_the_best_of_the_allowed_sequences(names):
    crf, scores, real = made(names, constrained=True, scale=3.0)
    allowed, size = allowed_transitions(names, tag_scheme(names)), len(names)
    found, chances = crf.decode_with_chances(scores, real)
    free = LinearChainCrf(names, constrained=False)
    free.load_state_dict(crf.state_dict())
    assert not torch.equal(found, free.decode(scores, real))
    for row, length in enumerate(LENGTHS[:3]):
        paths = [
            (path, score)
            for path, score in every_path(crf, scores[row], length)
            if all(allowed[a, b] for a, b in itertools.pairwise([size, *path, size + 1]))
        ]
        best, _ = max(paths, key=lambda pair: pair[1].item())
        assert found[row, :length].tolist() == list(best)
        # The probability of each label is over the same sequences that can be answers.
        weights = torch.stack([score for _, score in paths]).softmax(0)
        for t, label in enumerate(best):
            of_label = [w for (path, _), w in zip(paths, weights, strict=True) if path[t] == label]
            assert chances[row, t].item() == pytest.approx(sum(of_label).item(), abs=1e-5)


def test_no_score_makes_an_answer_break_the_scheme():
    crf = LinearChainCrf(BIO[:3])
    scores = torch.tensor([[[0.0, 0.0, 1e20], [0.0, -1e20, 1e20]]])
    real = torch.ones(1, 2, dtype=torch.bool)
    assert crf.decode(scores, real).tolist() == [[1, 2]]
    assert crf.marginals(scores, real).tolist() == [[[0, 1, 0], [0, 0, 1]]]


def test_the_scheme_can_be_another_than_the_names_tell():
    crf, scores, real = made(BIO[:3], constrained=True, scale=3.0)
    by_names = crf.decode(scores, real)
    crf.keep_to("bilou")  # of which only the label O can be where none ends a span
    assert crf.decode(scores, real)[real].unique().tolist() == [0]
    crf.keep_to(None)
    free = LinearChainCrf(BIO[:3], constrained=False)
    free.load_state_dict(crf.state_dict())
    assert torch.equal(crf.decode(scores, real), free.decode(scores, real))
    assert torch.equal(crf.marginals(scores, real), free.marginals(scores, real))
    free.keep_to("bio")
    assert free.allowed.all()
    crf.keep_to("bio")
    assert torch.equal(crf.decode(scores, real), by_names)


def test_gradients_are_those_of_the_definition():
    crf, scores, real = made(BIO[:3])
    scores = scores.masked_fill(~real[..., None], 0.0).requires_grad_()
    labels = torch.randint(3, real.shape, generator=torch.Generator().manual_seed(1))
    (crf.log_likelihood(scores, labels, real) * real[:, 0]).sum().backward()
    hot = torch.nn.functional.one_hot(labels, 3) * real[..., None]
    # The derivative by a score is what is there less what is expected (Lafferty et al. 2001).
    assert torch.allclose(scores.grad, hot - crf.marginals(scores, real), atol=1e-5)
    plain = crf.transitions.detach().clone().requires_grad_()
    total = torch.zeros(())
    for row, length in enumerate(LENGTHS):
        copy = LinearChainCrf(BIO[:3])
        del copy.transitions
        copy.transitions = plain
        paths = dict(every_path(copy, scores.detach()[row], length))
        own = paths[tuple(labels[row, :length].tolist())]
        total = total + own - torch.stack([*paths.values()]).logsumexp(0)
    total.backward()
    assert torch.allclose(crf.transitions.grad.float(), plain.grad, atol=1e-5)
    assert crf.transitions.grad[:, 3].abs().sum() == crf.transitions.grad[4].abs().sum() == 0


def test_long_sentences_keep_their_precision():
    crf = LinearChainCrf(["a", "b"])
    scores, real = torch.full((1, 3000, 2), 50.0), torch.ones(1, 3000, dtype=torch.bool)
    value = crf.log_likelihood(scores, torch.zeros(1, 3000, dtype=torch.int64), real)
    assert value.item() == pytest.approx(-3000 * torch.log(torch.tensor(2.0)).item(), rel=1e-3)
    assert crf.marginals(scores, real).isfinite().all()


def test_sentences_without_a_word_are_certain():
    crf = LinearChainCrf(BIO)
    empty = torch.zeros(2, 0, 5), torch.zeros(2, 0, dtype=torch.bool)
    assert crf.decode(*empty).shape == (2, 0)
    assert crf.marginals(*empty).shape == (2, 0, 5)
    labels = torch.zeros(2, 0, dtype=torch.int64)
    assert crf.log_likelihood(empty[0], labels, empty[1]).tolist() == [0.0, 0.0]


@pytest.mark.parametrize(
    ("names", "scheme"),
    [
        (BIO, "bio"),
        (BILOU, "bilou"),
        (["O", "I-x"], None),  # nothing could begin
        (["B-x", "I-y"], "bio"),
        (["B", "I", "O"], "bio"),
        (["O", "B-x", "NOUN"], None),
        (["O", "B-"], None),
        (["title", "author"], None),
    ],
)
def test_schemes_are_told_by_the_names(names, scheme):
    assert tag_scheme(names) == scheme
    assert allowed_transitions(names, scheme).all().item() == (scheme is None)


def allowed_one_by_one(names, before, after):
    """The rule for two neighbours, as a sentence has it; None stands before and behind it."""
    mark, _, kind = ("O" if before is None else before).partition("-")
    next_mark, _, next_kind = ("O" if after is None else after).partition("-")
    opened = mark in ("B", "I")
    if next_mark in ("I", "L"):
        return opened and kind == next_kind
    return not (opened and tag_scheme(names) == "bilou")


@pytest.mark.parametrize(
    "names",
    [BIO, BILOU, ["B", "I", "O"], ["I-x", "B-y", "I", "U", "L-y", "B", "O"], ["B-a-b", "I-a-b"]],
)
def test_the_table_of_transitions_is_the_rule_for_each_two(names):
    every = [*names, None, None]
    rule = [[allowed_one_by_one(names, a, b) for b in every] for a in every]
    assert allowed_transitions(names, tag_scheme(names)).tolist() == rule
