"""What textmill calls of a person's own parts: what is wrong is refused before training."""

from pathlib import Path

import pytest
import torch

from tests.runs.test_own_parts import OWN, script
from textmill.config.component import Component
from textmill.errors import SeveralError, UserError
from textmill.metrics.metric import RowMetric
from textmill.models.encoders.sequence import SequenceEncoder
from textmill.models.label_losses import LabelLoss
from textmill.models.poolings import Pooling
from textmill.preflight.check import check
from textmill.tasks.task import Loss
from textmill.training import Callback
from textmill.training.optimizers import Optimizer
from textmill.training.schedules import Schedule

TENSOR = "torch.Tensor"


def own(base: type[Component], **methods) -> type[Component]:
    """A class of one's own with a Config, as people write it."""
    config = type("Config", (base.Config,), {"__module__": __name__})
    return type("Mine", (base,), {"Config": config, "__module__": __name__, **methods})


def forward(self, scores, targets): ...


def probabilities(self, scores): ...


@pytest.mark.parametrize(
    ("base", "methods", "lacks"),
    [
        (LabelLoss, [forward], f"probabilities(self, scores: {TENSOR}) -> {TENSOR}, which every"),
        (LabelLoss, [probabilities], f"each(self, scores: {TENSOR}, targets: {TENSOR}) ->"),
        (Pooling, [], f"forward(self, states: {TENSOR}, real: {TENSOR}) -> {TENSOR}, which every"),
        (SequenceEncoder, [], f"forward(self, x: {TENSOR}, lengths: {TENSOR}) -> {TENSOR}, which"),
        (Schedule, [], "after_warmup(self, step: int, total: int | None, history:"),
    ],
)
def test_a_method_that_is_missing_is_named_with_its_signature(base, methods, lacks):
    kind = own(base, **{method.__name__: method for method in methods})
    with pytest.raises(UserError) as caught:
        kind.Config()
    assert str(caught.value).startswith(f"Mine has no {lacks}")


def test_all_methods_that_are_missing_are_named():
    with pytest.raises(SeveralError) as caught:
        own(RowMetric).Config()
    lacking = [str(error).partition("(")[0] for error in caught.value.errors]
    names = ["compute", "directions", "measure"]
    assert lacking == [f"Mine has no {name}" for name in names]
    with pytest.raises(UserError, match=r"^Config has no algorithm: name one"):
        own(Optimizer).Config().make([], torch.nn.Identity())


def test_a_method_that_only_overridden_ones_call_is_not_needed():
    own(LabelLoss, forward=forward, probabilities=probabilities).Config()


def test_a_method_that_cannot_be_called_as_textmill_calls_it_is_refused():
    with pytest.raises(UserError) as caught:
        own(LabelLoss, probabilities=lambda self, scores, targets: scores, forward=forward)
    assert str(caught.value).startswith("Mine.probabilities takes (scores, targets), and is called")
    with pytest.raises(UserError) as caught:

        class Watching(Callback):
            def evaluated(self, values): ...

    assert str(caught.value).startswith("Watching.evaluated takes (values), and is called as")

    class Fine(Callback):
        def evaluated(self, *seen): ...

        def step(self, now, more=None): ...


def test_what_a_loss_gives_is_its_sum_and_its_count():
    by, one = own(LabelLoss)(LabelLoss.Config(), names=["a"], multiple=False), 1
    loss = Loss.of((torch.ones((), requires_grad=True), torch.ones(())), by)
    assert (loss.total.item(), loss.count.requires_grad) == (1.0, False)
    wanted = (
        "; wanted two tensors of shape (): the sum of the loss over all targets, and their number."
    )
    for made, said in (
        (torch.ones(()), "a tensor of shape ()"),
        ((torch.ones(()), one), "a tensor of shape (), 1"),
        ((torch.ones(3), torch.ones(())), "a tensor of shape (3,), a tensor of shape ()"),
        (None, "None"),
    ):
        with pytest.raises(UserError) as caught:
            Loss.of(made, by)
        assert str(caught.value) == f"Mine.forward gives {said}{wanted}"


def test_an_encoder_and_a_pooling_give_what_they_say():
    x, lengths = torch.zeros(2, 3, 4), torch.tensor([3, 1])
    wide = own(SequenceEncoder, forward=lambda self, x, lengths: torch.cat([x, x], -1))
    with pytest.raises(UserError) as caught:
        wide.Config().build(dim=4)(x, lengths)
    assert str(caught.value).startswith("Mine.forward gives (2, 3, 8); wanted a tensor of (rows,")
    for pooled, found in ((None, "a NoneType"), (x, "(2, 3, 4)")):
        silent = own(Pooling, forward=lambda self, states, real, given=pooled: given)
        with pytest.raises(UserError) as caught:
            silent.Config().build(dim=4)(x, lengths)
        assert str(caught.value).startswith(f"Mine.forward gives {found}; wanted a tensor of")


def unregistered(path: Path) -> Path:
    """The script without the name that it would register in this process."""
    path.write_text(path.read_text().replace('@registries.encoders.register("tests_named")\n', ""))
    return path


def test_check_says_what_a_part_lacks_and_where_it_is_written(tmp_path):
    path = unregistered(script(tmp_path, *OWN["a loss"]))
    text = path.read_text().replace("def probabilities", "def chances")
    path.write_text(text)
    line = text.splitlines().index("task = DocumentClassification.Config(loss=Doubled.Config())")
    with pytest.raises(UserError) as caught:
        check(path)
    assert str(caught.value).startswith(f"{path}:{line + 1}: Doubled has no probabilities(self, ")
