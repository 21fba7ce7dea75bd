"""Models with weights that differ in every number, on the tokenizer of the tiny run."""

import pytest
import torch

import textmill
from tests.trained_run import library_run
from textmill.inference import Predictor
from textmill.models.transformer import Transformer
from textmill.tasks import Translation


@pytest.fixture(scope="session")
def translator():
    """Makes a predictor of a model and a task with these settings."""
    tokenizer = textmill.load(library_run()).task.text.tokenizer

    def make(*, seed=0, task=None, **model):
        torch.manual_seed(seed)
        settings = {"dim": 16, "ffn_dim": 32, "num_heads": 2, "max_length": 48}
        layers = {"num_encoder_layers": 2, "num_decoder_layers": 2}
        module = Transformer.Config(**{**settings, **layers, **model}).build(tokenizer=tokenizer)
        with torch.no_grad():
            for parameter in module.parameters():
                parameter.add_(0.2 * torch.randn_like(parameter))
        config = task or Translation.Config()
        return Predictor(config.build(module=module, tokenizer=tokenizer), checkpoint="made")

    return make
