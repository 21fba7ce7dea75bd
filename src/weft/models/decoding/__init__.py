"""Decoding: from a source to the best target sequences a model knows, by greedy or beam search."""

from weft.models.decoding.beam import beam_search as beam_search
from weft.models.decoding.decode import decode as decode
from weft.models.decoding.greedy import greedy as greedy
from weft.models.decoding.hypothesis import Hypothesis as Hypothesis
from weft.models.decoding.settings import Decoding as Decoding
