"""A model that ends often, and sources for it."""

import pytest
import torch

EOS = 2


@pytest.fixture
def make_model(build):
    """A model with scores far from uniform, that ends often: ``make_model(size=5)``."""

    def make(size=5, ends=-1.0, **settings):
        model = build(size=size, output_bias=True, **settings)
        with torch.no_grad():
            for parameter in model.parameters():
                if parameter.ndim > 1:
                    parameter.mul_(3.0)
            model.output_bias[EOS] = ends
        return model

    return make
