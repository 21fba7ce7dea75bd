"""Losses of vectors: those of sentence-transformers, sums with a count, and equal texts."""

import pytest
import torch
from torch import nn

from textmill.models.embedding_losses import CoSent, CosineSimilarity, MultipleNegativesRanking

losses = pytest.importorskip("sentence_transformers.sentence_transformer.losses")

ROWS, FEATURES = 6, 5
SCORES = torch.tensor([0.1, 0.9, 0.4, 0.4, 1.0, 0.0])


def vectors(texts):
    torch.manual_seed(texts)
    return torch.randn(ROWS, texts, FEATURES, requires_grad=True)


def names(texts):
    return torch.arange(ROWS * texts).view(ROWS, texts)


class Given(nn.Module):
    """A model of theirs, whose vectors are what it is given."""

    def forward(self, features):
        return {"sentence_embedding": features["vectors"]}


def theirs(loss, made, targets=None):
    return loss([{"vectors": made[:, k]} for k in range(made.shape[1])], targets)


BOTH = {"directions": ("query_to_doc", "doc_to_query"), "partition_mode": "per_direction"}
CASES = {
    "pairs": (2, {}, {}),
    "wrong texts": (3, {}, {}),
    "scale": (3, {"scale": 5.0}, {"scale": 5.0}),
    "symmetric": (2, {"symmetric": True}, BOTH),
    "symmetric with wrong texts": (3, {"symmetric": True}, BOTH),
}


def compare(ours, their, texts):
    (total, count), wanted = ours, their
    assert count == ROWS
    torch.testing.assert_close(total / count, wanted)
    one, two = (torch.autograd.grad(x, texts)[0] for x in (total / count, wanted))
    torch.testing.assert_close(one, two, atol=1e-6, rtol=1e-4)


@pytest.mark.parametrize("case", CASES)
def test_negatives_of_a_batch_are_theirs(case):
    texts, mine, other = CASES[case]
    made = vectors(texts)
    loss = losses.MultipleNegativesRankingLoss(Given(), **other)
    ours = MultipleNegativesRanking.Config(**mine).build()(made, names(texts))
    compare(ours, theirs(loss, made), made)


def test_the_squared_difference_of_cosines_and_scores_is_theirs():
    made = vectors(2)
    ours = CosineSimilarity.Config().build()(made, SCORES)
    compare(ours, theirs(losses.CosineSimilarityLoss(Given()), made, SCORES), made)


@pytest.mark.parametrize("scale", [20.0, 3.0])
def test_the_order_of_cosines_is_theirs(scale):
    made = vectors(2)
    ours = CoSent.Config(scale=scale).build()(made, SCORES)
    compare(ours, theirs(losses.CoSENTLoss(Given(), scale=scale), made, SCORES), made)


@pytest.mark.parametrize("symmetric", [False, True])
def test_a_text_that_equals_the_right_one_is_no_negative(symmetric):
    made, known = vectors(3), names(3)
    known[4, 1] = known[1, 1]  # one answer of two questions, and a wrong text that is right
    known[2, 2] = known[0, 1]
    loss = MultipleNegativesRanking.Config(symmetric=symmetric).build()
    total, _ = loss(made, known)
    units = nn.functional.normalize(made, dim=-1)
    wanted = 0.0
    for row in range(ROWS):
        texts = [
            (known[i, k], units[i, k], (i, k) == (row, 1)) for i in range(ROWS) for k in (1, 2)
        ]
        kept = [v for name, v, own in texts if own or name != known[row, 1]]
        scores = 20 * torch.stack([units[row, 0] @ v for v in kept])
        wanted -= 20 * units[row, 0] @ units[row, 1] - scores.logsumexp(0)
    if symmetric:
        back = 20 * units[:, 1] @ units[:, 0].T
        wanted = (
            wanted + nn.functional.cross_entropy(back, torch.arange(ROWS), reduction="sum")
        ) / 2
    torch.testing.assert_close(total, wanted)


def test_under_autocast_the_loss_is_of_whole_precision():
    made = vectors(2)
    exact = MultipleNegativesRanking.Config().build()(made, names(2))[0]
    with torch.autocast("cpu", torch.bfloat16):
        half = MultipleNegativesRanking.Config().build()(made, names(2))[0]
    assert half.dtype == torch.float32
    torch.testing.assert_close(half, exact)
