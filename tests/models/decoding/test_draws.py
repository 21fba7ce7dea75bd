"""Random numbers of sources: even, independent, and the same wherever a source stands."""

import numpy as np
import torch

from textmill.models.decoding.sampling import source_keys, uniforms

GOLDEN = 0x9E3779B97F4A7C15


def splitmix64(x):
    """The generator's step in Python's integers."""
    mask = (1 << 64) - 1
    x = (x + GOLDEN) & mask
    x = ((x ^ (x >> 30)) * 0xBF58476D1CE4E5B9) & mask
    x = ((x ^ (x >> 27)) * 0x94D049BB133111EB) & mask
    return x ^ (x >> 31)


def test_they_are_those_of_splitmix64():
    # Its published first number from seed 0.
    assert splitmix64(0) == 0xE220A8397B1DCDAF
    keys = torch.tensor([0, 1, -5, 2**62, -(2**63)])
    for number in (0, 1, 2**32 + 7, 999):
        wanted = [
            (splitmix64(splitmix64(key % 2**64) ^ number) >> 24) / 2**40 for key in keys.tolist()
        ]
        assert uniforms(keys, number).tolist() == wanted


def test_they_are_even_and_do_not_hang_together():
    source = torch.arange(20_000)[:, None].repeat(1, 3)
    keys = source_keys(source, None, seed=0)
    one, two = uniforms(keys, 0), uniforms(keys, 1)
    other = uniforms(source_keys(source, None, seed=1), 0)
    for numbers in (one, two, other, torch.stack([uniforms(keys[:1], n)[0] for n in range(4000)])):
        counts = np.histogram(numbers.numpy(), bins=20, range=(0, 1))[0]
        mean = len(numbers) / 20
        # Over 43.8 in one of a thousand histograms (19 degrees of freedom).
        assert ((counts - mean) ** 2 / mean).sum() < 43.8
    for pair in ((one, two), (one, other), (one[1:], one[:-1])):
        assert abs(np.corrcoef(*pair)[0, 1]) < 0.03


def test_a_source_has_its_key_whatever_its_padding_and_place():
    source = torch.tensor([[7, 8, 0, 0], [7, 8, 9, 9], [7, 8, 0, 1]])
    keys = source_keys(source, torch.tensor([2, 4, 2]), seed=-3)
    alone = source_keys(torch.tensor([[7, 8]]), None, seed=-3)
    assert keys[0] == keys[2] == alone[0]
    assert keys[0] != keys[1]
    assert source_keys(torch.tensor([[8, 7]]), None, seed=-3) != alone
    huge = source_keys(torch.tensor([[7, 8]]), None, seed=2**70 + 1)
    assert huge == source_keys(torch.tensor([[7, 8]]), None, seed=1)
