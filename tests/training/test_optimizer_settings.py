"""Settings with which an optimizer takes no sensible step are refused, with the number found."""

import pytest

from textmill.errors import UserError
from textmill.training import SGD, Adafactor, Adam, AdamW, Muon

REFUSED = [
    (lambda: Adam.Config(lr=float("nan")), "optimizer.lr must be positive, but is nan."),
    (lambda: Adam.Config(eps=0.0), "optimizer.eps must be positive, but is 0.0."),
    (lambda: AdamW.Config(layer_decay=0.0), "optimizer.layer_decay must be positive, but is 0.0."),
    (
        lambda: AdamW.Config(rates={"encoder.*": 0.0}),
        "optimizer.rates['encoder.*'] must be positive, but is 0.0; "
        'optimizer.freeze=["encoder.*"] holds parameters still.',
    ),
    (lambda: SGD.Config(momentum=1.0), "optimizer.momentum must be from 0 to below 1, but is 1.0."),
    (
        lambda: SGD.Config(nesterov=True),
        "optimizer.nesterov needs a momentum, but optimizer.momentum is 0; 0.9 is usual.",
    ),
    (lambda: Adafactor.Config(clip=0.5), "optimizer.clip must be at least 1, but is 0.5."),
    (
        lambda: Adafactor.Config(beta2_decay=0.8),
        "optimizer.beta2_decay must be at most 0, but is 0.8.",
    ),
    (
        lambda: Muon.Config(betas=(1.0, 0.9)),
        "optimizer.betas must be from 0 to below 1, but is (1.0, 0.9).",
    ),
    (
        lambda: AdamW.Config(weight_decay=-1.0),
        "optimizer.weight_decay must be at least 0, but is -1.0.",
    ),
    (
        lambda: Muon.Config(momentum=-0.1),
        "optimizer.momentum must be from 0 to below 1, but is -0.1.",
    ),
]


@pytest.mark.parametrize(("make", "says"), REFUSED)
def test_a_number_with_which_nothing_is_learned_is_refused(make, says):
    with pytest.raises(UserError) as caught:
        make()
    assert str(caught.value) == says
