"""The Transformer's decoder laid out for one position at a time, for inference on CPU."""

from textmill.models.decoding.fast.decoder import FastDecoder as FastDecoder
from textmill.models.decoding.fast.decoder import fastest as fastest
