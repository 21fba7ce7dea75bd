"""Searches without torch find what the searches of training find, of one and the same model."""

from dataclasses import fields, replace

import numpy as np
import pytest
import torch

from textmill.exported.seq2seq import Search
from textmill.exported.target_search import Target, search
from textmill.models.decoding import Decoding
from textmill.models.decoding.decode import decode
from textmill.models.transformer import Transformer

EOS, UNK, PREFIX = 2, 3, [1, 4]

SEARCHES = {
    "greedy": Decoding(),
    "beams": Decoding(beam_size=4, n_best=3),
    "first": Decoding(beam_size=3, early_stopping="first"),
    "never": Decoding(beam_size=3, early_stopping="never", length_penalty=0.6),
    "no penalty": Decoding(beam_size=5, n_best=5, length_penalty=0.0),
    "bans": Decoding(no_repeat_ngram=2, min_length=3),
    "bans of beams": Decoding(beam_size=3, no_repeat_ngram=2, min_length=2),
    "punished": Decoding(beam_size=2, repetition_penalty=1.3, unknown_penalty=0.7),
    "punished greedy": Decoding(repetition_penalty=1.3, unknown_penalty=0.7),
    "no unknown": Decoding(unknown_penalty=float("inf")),
    "draws": Decoding(sample=True, n_best=3, seed=5, temperature=0.8),
    "few": Decoding(sample=True, top_k=3, seed=-9),
    "nucleus": Decoding(sample=True, top_p=0.7, seed=2**62),
}


class TorchDecoder:
    """The model itself as what the search asks."""

    def __init__(self, model):
        self.model, self.state = model, None

    @torch.inference_mode()
    def begin(self, sources):
        self.state = self.model.start(self.model.encode(torch.from_numpy(sources), None))

    @torch.inference_mode()
    def step(self, tokens):
        return self.model.step(torch.from_numpy(tokens), self.state).numpy().copy()

    @torch.inference_mode()
    def select(self, rows, *, same_sources=False):
        self.state.select(torch.from_numpy(np.ascontiguousarray(rows)))


@pytest.fixture(scope="module")
def model():
    torch.manual_seed(7)

    class Vocabulary:
        size, pad_idx = 23, 0

    class Tokenizer:
        vocab_info = Vocabulary

    config = Transformer.Config(dim=16, num_heads=2, ffn_dim=24, max_length=40, output_bias=True)
    model = config.build(tokenizer=Tokenizer).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.ndim > 1:
                parameter.mul_(3.0)
        model.output_bias[EOS] = -1.0
    return model


def exported(decoding, longest):
    names = [each.name for each in fields(Search) if each.name != "max_length"]
    return Search(**{name: getattr(decoding, name) for name in names}, max_length=longest)


@pytest.mark.parametrize("name", SEARCHES)
@pytest.mark.parametrize("forced", [False, True])
@pytest.mark.parametrize(("rows", "length"), [(1, 1), (2, 5), (7, 9)])
def test_they_find_the_same(model, name, rows, length, forced):
    random = torch.Generator().manual_seed(rows)
    source = torch.randint(4, 23, (rows, length), generator=random)
    begun = [list(range(5, 5 + row % 3)) for row in range(rows)] if forced else None
    decoding = replace(SEARCHES[name], max_length_b=7)
    expected = decode(
        model, source, None, decoding, prefix=PREFIX, eos_idx=EOS, unk_idx=UNK, forced=begun
    )
    target = Target(
        search=exported(decoding, model.max_length - len(PREFIX) + 1),
        prefix=PREFIX,
        eos_idx=EOS,
        unk_idx=UNK,
        forced=begun,
    )
    found = search(TorchDecoder(model), source.numpy(), target)
    assert [[h.ids for h in row] for row in found] == [[h.ids for h in row] for row in expected]
    for ours, theirs in zip(found, expected, strict=True):
        scores = [h.score for h in theirs]
        assert [h.score for h in ours] == pytest.approx(scores, abs=2e-5)


def test_a_target_without_an_end_mark_ends_by_its_limit(model):
    source = torch.tensor([[5, 6, 7]])
    decoding = Decoding(max_length_a=0, max_length_b=6)
    expected = decode(model, source, None, decoding, prefix=PREFIX, eos_idx=-1)
    target = Target(search=exported(decoding, 39), prefix=PREFIX, eos_idx=-1)
    (found,) = search(TorchDecoder(model), source.numpy(), target)
    assert [found[0].ids] == [expected[0][0].ids]
    assert len(found[0].ids) == 6
