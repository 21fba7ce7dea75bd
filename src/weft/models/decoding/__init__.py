"""Decoding: from a source to the best targets a model knows, or to draws of them."""

from weft.models.decoding.beam import beam_search as beam_search
from weft.models.decoding.decode import decode as decode
from weft.models.decoding.sampling import sample as sample
from weft.models.decoding.search_settings import Decoding as Decoding
from weft.models.decoding.search_state import Hypothesis as Hypothesis
from weft.models.decoding.search_state import Request as Request
from weft.models.decoding.token_loop import greedy as greedy
