"""Windows: every place is in one, and a word's score is that of the window that sees most of it."""

import pytest
import torch

from textmill.models.readers.answer_spans import windows_of


@pytest.mark.parametrize(("size", "stride"), [(1, 1), (4, 1), (4, 2), (4, 4), (7, 3), (50, 20)])
def test_windows_cover_all_places_and_are_joined_by_the_most_context(size, stride):
    lengths = torch.tensor([0, 1, 4, 5, 11, 24])
    windows = windows_of(lengths, size=size, stride=stride)
    places = torch.arange(24).expand(6, 24) + 100 * torch.arange(6)[:, None]
    cut = windows.cut(places, pad=-1)
    assert windows.lengths.max() <= size
    seen = {}  # the windows of each place by what is on its shorter side
    for number, (row, begin, length) in enumerate(
        zip(
            *(part.tolist() for part in (windows.rows, windows.begins, windows.lengths)),
            strict=True,
        )
    ):
        wanted = [100 * row + begin + i for i in range(length)]
        assert cut[number].tolist() == wanted + [-1] * (cut.shape[1] - length)
        for i in range(length):
            seen.setdefault((row, begin + i), []).append((-min(i, length - 1 - i), number, i))
    assert set(seen) == {(row, i) for row, n in enumerate(lengths.tolist()) for i in range(n)}
    scores = torch.randn(cut.shape, generator=torch.Generator().manual_seed(1))
    joined = windows.joined(scores, 24)
    assert joined.shape == (6, 24)
    for (row, place), found in seen.items():
        _, number, i = min(found)
        assert joined[row, place] == scores[number, i]
    assert not joined[torch.arange(24) >= lengths[:, None]].any()


def test_gradients_go_to_the_windows_that_were_taken():
    windows = windows_of(torch.tensor([6]), size=4, stride=2)
    scores = torch.zeros(2, 4, requires_grad=True)
    windows.joined(scores, 6).sum().backward()
    assert scores.grad.tolist() == [[1, 1, 1, 0], [0, 1, 1, 1]]


def test_least_is_by_row_and_features_are_cut_too():
    windows = windows_of(torch.tensor([6, 2]), size=4, stride=2)
    assert windows.least(torch.tensor([3.0, -1.0, 2.0])).tolist() == [-1.0, 2.0]
    spelled = torch.arange(2 * 6 * 3).view(2, 6, 3)
    cut = windows.cut(spelled, pad=0)
    assert cut.shape == (3, 4, 3)
    assert torch.equal(cut[1], spelled[0, 2:6])
    assert torch.equal(cut[2, :2], spelled[1, :2])
    assert not cut[2, 2:].any()
