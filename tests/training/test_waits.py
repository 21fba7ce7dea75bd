"""How often a training step waits for its device, counted on torch's device without numbers.

What has to know a number there (an item, an index by a mask, a copy to the host) is what waits for
a GPU; copies to it wait where they are not asked not to.
"""

import pytest
import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from tests.recipes.local_data import write_data
from textmill.recipes.planning import plan_recipe
from textmill.runtime.seeds import seed_everything
from textmill.tasks.batches.device import at_places, real_places
from textmill.training.progress import Progress
from textmill.training.schedules import rates_by

WORDS = ["trainer.max_steps=3", "reporters.console=false", "reporters.html=false"]
LSTM = ["to the host", "back", "to the host"]
"""torch packs rows by lengths on the host, and unpacks them by those."""
aten = torch.ops.aten


def is_away(value):
    return isinstance(value, Tensor) and value.device.type == "meta"


class Waits(TorchDispatchMode):
    """Notes each, and answers with numbers that a batch without padding would have."""

    def __init__(self):
        super().__init__()
        self.found = []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        kwargs, op = kwargs or {}, func.overloadpacket
        if op is aten._to_copy:
            return self.copied(func, args, kwargs)
        if not is_away(args[0] if args else None):
            return func(*args, **kwargs)
        if op is aten._local_scalar_dense or op is aten.equal:
            self.found.append("a number")
            return 1
        if op is aten.nonzero:
            self.found.append("nonzero")
            return args[0].new_empty((args[0].numel(), args[0].ndim), dtype=torch.int64)
        if op in (aten.index, aten.index_put, aten.index_put_, aten._index_put_impl_):
            masks = [i for i in args[1] if i is not None and i.dtype == torch.bool]
            if masks:
                self.found.append("a mask")
                if op is not aten.index:
                    return torch.empty_like(args[0])
                return args[0].new_empty((masks[0].numel(), *args[0].shape[masks[0].ndim :]))
        return func(*args, **kwargs)

    def copied(self, func, args, kwargs):
        there = torch.device(kwargs.get("device") or args[0].device).type == "meta"
        if is_away(args[0]) and not there:
            self.found.append("to the host")
            return torch.ones(args[0].shape, dtype=kwargs.get("dtype") or args[0].dtype)
        if there and not is_away(args[0]) and not kwargs.get("non_blocking"):
            self.found.append("back")
        return func(*args, **kwargs)


def waits(name, folder):
    """Those of a training step of an experiment, from its loss to the update of the weights."""
    planned = plan_recipe(name, WORDS, targets=["trainer"])
    session = planned.start(folder, "train", "cpu")
    seed_everything(1)
    trainer = session.get("trainer")
    groups = trainer.data.groups(1, None)
    updates, module = trainer.updates, trainer.task.module.to("meta")
    updates.zero = updates.zero.to("meta")
    updates.parameters = [*module.parameters()]  # others, which the optimizer then has
    # torch has no fused kernel for this device.
    settings = {"params": updates.parameters, "fused": False}
    trainer.optimizer.param_groups[:] = [{**trainer.optimizer.param_groups[0], **settings}]
    updates.rates = rates_by(trainer.schedule, trainer.optimizer)
    updates.weights.begin()
    with Waits() as counted:
        gradient = updates.gradient(groups, step=1)
        updates.apply(gradient, Progress(), Progress(steps=1), total=3, history=())
    return counted.found


@pytest.mark.parametrize(
    ("name", "beside"),
    [
        ("translation/tatoeba/local", []), ("classification/docnn/local", []),
        ("embedding/pairs/local", []), ("question/transformer/local", []),
        ("tagging/transformer/local", []), ("language/lstm/local", []),
        ("bert/pretraining/local", []), ("classification/bilstm/local", LSTM),
        ("question/drqa/local", [*LSTM, *LSTM]),
    ],
)  # fmt: skip
def test_a_step_waits_once(name, beside, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_data(name)
    found = waits(name, tmp_path / "run")
    assert found[: len(beside)] == beside
    assert found[len(beside) :] == ["to the host"]


def test_what_waits_is_seen():
    module = torch.nn.Linear(3, 2, device="meta")
    x = torch.ones(4, 3)
    with Waits() as counted:
        y = module(x.to("meta"))
        y[torch.ones(4, dtype=torch.bool, device="meta")].sum().item()
        bool((y > 0).any())
        y.cpu()
        x.to("meta", non_blocking=True)
    assert counted.found == ["back", "a mask", "a number", "a number", "to the host"]


def test_places_are_those_of_the_mask():
    torch.manual_seed(1)
    x, real = torch.rand(5, 7, 3), torch.rand(5, 7) < 0.6
    count = int(real.sum())
    assert real_places(real, count) is real
    away = real_places(real.to("meta"), count)
    assert away.shape == (count,)
    assert away.dtype == torch.int64
    places = real.flatten().to(torch.uint8).argsort(descending=True, stable=True)[:count]
    assert torch.equal(at_places(x, places), x[real])
    assert torch.equal(at_places(x, real), x[real])
