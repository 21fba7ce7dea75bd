"""Decoding: from a source to the best targets a model knows, or to draws of them."""

from textmill.models.decoding.beam import beam_search as beam_search
from textmill.models.decoding.decode import decode as decode
from textmill.models.decoding.sampling import greedy as greedy
from textmill.models.decoding.sampling import sample as sample
from textmill.models.decoding.search_settings import Decoding as Decoding
from textmill.models.decoding.search_state import Hypothesis as Hypothesis
from textmill.models.decoding.search_state import Request as Request
