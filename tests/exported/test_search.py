"""Limits of an exported search are those of textmill's own."""

import pytest
import torch

from textmill.exported.seq2seq import Search
from textmill.models.decoding import Decoding


@pytest.mark.parametrize(
    ("a", "b", "longest"), [(2.0, 10, 64), (0.3, 1, 5), (1e9, 7, 30), (0, 99, 9)]
)
def test_limits_are_as_in_decoding(a, b, longest):
    ours = Search(max_length=longest, max_length_a=a, max_length_b=b)
    lengths = torch.arange(1, 200)
    theirs = Decoding(max_length_a=a, max_length_b=b).limits(
        torch.zeros(199, 1), lengths, longest=longest
    )
    assert [ours.limit(n) for n in lengths.tolist()] == theirs.tolist()


def test_a_search_comes_back_from_json():
    search = Search(max_length=64, beam_size=4, n_best=2)
    assert Search.from_json(search.to_json()) == search
