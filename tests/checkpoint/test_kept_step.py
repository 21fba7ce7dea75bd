"""The checkpoint that a run may go back to outlives rotation, and is loaded by its step."""

import pytest
from torch import nn

from textmill.checkpoint import Checkpoints


def filled(value: float) -> nn.Linear:
    module = nn.Linear(1, 1, bias=False)
    nn.init.constant_(module.weight, value)
    return module


@pytest.fixture
def store(tmp_path):
    store = Checkpoints(tmp_path / "checkpoints", keep=1)
    store.save(1, {"model": filled(1.0)})
    store.kept_step = 1
    for step in (2, 3, 4):
        store.save(step, {"model": filled(float(step))})
        if step == 2:
            store.mark_best(2)
    return store


def folders(store):
    return sorted(path.name for path in store.folder.glob("step-*"))


def test_it_stays_beside_the_best_and_the_newest(store):
    assert folders(store) == ["step-00000001", "step-00000002", "step-00000004"]
    store.kept_step = 4
    store.save(5, {"model": filled(5.0)})
    assert folders(store) == ["step-00000002", "step-00000004", "step-00000005"]


def test_it_is_loaded_by_its_step_and_the_newest_stays_the_last(store):
    model = filled(0.0)
    assert store.restore({"model": model}, step=1) == 1
    assert model.weight.item() == 1.0
    assert store.last().name == "step-00000004"


@pytest.mark.parametrize("damage", ["gone", "manifest", "weights"])
def test_where_it_is_damaged_the_newest_good_one_is_loaded(store, damage, caplog):
    path = store.folder / "step-00000001"
    if damage == "gone":
        path.rename(store.folder.parent / "elsewhere")
    else:
        file = path / {"manifest": "manifest.json", "weights": "model.safetensors"}[damage]
        file.write_bytes(file.read_bytes()[:-1])
    model = filled(0.0)
    assert store.restore({"model": model}, step=1) == 4
    assert model.weight.item() == 4.0
    (message,) = caplog.messages
    assert message.startswith("checkpoint step-00000001 skipped: ")
