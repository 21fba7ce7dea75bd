"""Saving, restoring, pointing, rotating; what does not fit is said before anything changes."""

import copy

import pytest
import torch
from torch import nn

from tests.checkpoint.saving import verify
from textmill.checkpoint import Checkpoints
from textmill.errors import CheckpointError

pytestmark = pytest.mark.usefixtures("waiting_for_the_disk")


class Data:
    """Anything with a state is a part."""

    def __init__(self, position=0):
        self.position = position

    def state_dict(self):
        return {"position": self.position, "history": [float("nan"), 0.1]}

    def load_state_dict(self, state):
        self.position = state["position"]


def make_parts(seed=0, steps=2):
    torch.manual_seed(seed)
    model = nn.Sequential(nn.Embedding(5, 4), nn.Linear(4, 5, bias=False))
    model[1].weight = model[0].weight
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.1)
    for _ in range(steps):
        model(torch.randint(5, (3,))).square().sum().backward()
        optimizer.step()
        optimizer.zero_grad()
    return {"model": model, "optimizer": optimizer, "data": Data(steps)}


def write_text(folder):
    (folder / "tokenizer.json").write_text('{"type": "words"}')
    (folder / "pieces").mkdir()
    (folder / "pieces" / "a.model").write_bytes(b"\0\1\2")


def weights(parts):
    return [copy.deepcopy(tensor) for tensor in parts["model"].state_dict().values()]


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def folders(store):
    return [name for name in names(store.folder) if name.startswith("step")]


@pytest.fixture
def store(tmp_path):
    return Checkpoints(tmp_path / "run" / "checkpoints", keep=2)


def test_a_saved_run_goes_on_bitwise(store):
    parts = make_parts(steps=3)
    path = store.save(1000, parts, write_text=write_text)
    assert path == store.folder / "step-00001000"
    assert names(path) == [
        "manifest.json", "model.safetensors", "optimizer.safetensors", "state.json", "text",
    ]  # fmt: skip
    assert verify(path) == []
    assert store.last() == path
    assert store.best() is None
    other = make_parts(seed=1, steps=0)
    weight = other["model"][0].weight
    assert Checkpoints(store.folder, keep=2).restore(other) == 1000
    assert other["model"][0].weight is weight  # copied into place
    assert other["data"].position == 3
    for _ in range(2):
        for each in (parts, other):
            torch.manual_seed(5)
            each["model"](torch.randint(5, (3,))).square().sum().backward()
            each["optimizer"].step()
            each["optimizer"].zero_grad()
    assert torch.equal(parts["model"][0].weight, other["model"][0].weight)


def test_the_newest_and_the_best_stay(store):
    parts = make_parts()
    for step in (10, 20):
        store.save(step, parts)
    store.mark_best(10)
    for step in (30, 40, 50):
        store.save(step, parts)
    assert names(store.folder) == [
        "best.json", "last.json", "step-00000010", "step-00000040", "step-00000050",
    ]  # fmt: skip
    assert store.best().name == "step-00000010"
    store.mark_best(50)
    assert folders(store) == ["step-00000010", "step-00000040", "step-00000050"]
    with pytest.raises(CheckpointError, match=r"step-00000007 cannot be marked as best"):
        store.mark_best(7)


def test_the_newest_save_counts_whatever_its_step_says(store):
    """A folder used again: step 5 is newer than step 900, and is not deleted as the oldest."""
    store.save(900, make_parts(seed=1))
    store.save(800, make_parts(seed=1))
    parts = make_parts(seed=2)
    store.save(5, parts)
    assert names(store.folder) == ["last.json", "step-00000005", "step-00000800"]
    other = make_parts(seed=3)
    assert Checkpoints(store.folder, keep=2).restore(other) == 5
    assert torch.equal(weights(parts)[0], weights(other)[0])


def test_a_damaged_newest_is_skipped_in_one_line(store, caplog):
    good = make_parts(seed=1)
    store.save(1000, good)
    path = store.save(2000, make_parts(seed=2))
    data = bytearray((path / "model.safetensors").read_bytes())
    data[-1] ^= 1
    (path / "model.safetensors").write_bytes(data)
    other = make_parts(seed=3)
    fresh = Checkpoints(store.folder, keep=2)
    assert fresh.restore(other) == 1000
    assert torch.equal(weights(good)[0], weights(other)[0])
    (line,) = caplog.messages
    start, _, end = line.partition(" (")
    assert start == "checkpoint step-00002000 skipped: model.safetensors: sha256 differs"
    assert end.endswith("…); using step-00001000")
    fresh.save(1500, other)  # the damaged one is the first to go, not the good one
    assert names(store.folder) == ["last.json", "step-00001000", "step-00001500"]


def test_no_good_one_is_an_error_and_never_a_fresh_start(store):
    path = store.save(1, make_parts())
    (path / "state.json").unlink()
    with pytest.raises(CheckpointError) as caught:
        Checkpoints(store.folder).restore(make_parts())
    assert str(caught.value) == (
        f"No checkpoint in {store.folder} can be used.\n"
        f"  checkpoint step-00000001 skipped: state.json: missing\n"
        f"Restore the folder from a copy, or start a new run."
    )


def test_a_lost_folder_and_a_damaged_pointer_are_said(store, tmp_path, caplog):
    store.save(1, make_parts())
    store.save(2, make_parts()).rename(tmp_path / "elsewhere")
    assert store.newest_good()[0].name == "step-00000001"
    assert "step-00000002 skipped: last.json points to it, but it is gone" in caplog.messages[-1]
    (store.folder / "last.json").write_text("{}")
    assert store.newest_good()[0].name == "step-00000001"
    assert caplog.messages[-1].startswith("last.json: its own digest does not fit its ")
    store.mark_best(1)
    (store.folder / "step-00000001").rename(tmp_path / "gone")
    with pytest.raises(CheckpointError, match=r"best\.json: it points to step-0+1, which is"):
        store.best()


def test_a_damaged_best_pointer_stops_deletion(store, caplog):
    parts = make_parts()
    store.save(1, parts)
    store.mark_best(1)
    (store.folder / "best.json").write_text("{}")
    for step in (2, 3, 4):
        store.save(step, parts)
    assert len(folders(store)) == 4
    assert "best.json: its own digest " in caplog.messages[0]
    assert "no checkpoint is deleted, since one of them is the best" in caplog.messages[0]


class Selected(Data):
    """The part that knows which step was the best."""

    def __init__(self, best):
        super().__init__()
        self.best = best

    def state_dict(self):
        return {"history": [[1, 0.5]], "best": self.best}


def saved_with(store, bests):
    """Checkpoints whose selection has these bests, by step; the pointer to the best is damaged."""
    for step, best in bests.items():
        store.save(step, {**make_parts(), "selection": Selected(best)})
        if best == step:
            store.mark_best(step)
    (store.folder / "best.json").write_text("{}")


def used(store, name="best"):
    return store.use(name, lambda path: path.name)


def test_where_the_pointer_is_damaged_the_newest_selection_knows_the_best(store, caplog):
    saved_with(store, {10: 10, 20: 20, 30: 20, 40: 20, 50: 20})
    assert used(store) == "step-00000020"
    assert "best by the evaluations in step-00000050; using step-00000020" in caplog.messages[-1]
    caplog.clear()
    assert used(store, "last") == "step-00000050"
    assert caplog.messages == []


def test_a_selection_of_a_damaged_state_is_not_believed(store, caplog):
    saved_with(store, {1: 1, 2: 1, 3: 1})
    state = store.folder / "step-00000003" / "state.json"
    state.write_text(state.read_text().replace('"best":1', '"best":2'))
    assert used(store) == "step-00000001"
    assert "by the evaluations in step-00000002; using step-00000001" in caplog.messages[-1]
    for path in store.folder.glob("step-*/state.json"):
        path.unlink()
    assert used(store) == "step-00000003"
    assert caplog.messages[-1].endswith("does not fit its content; using step-00000003")


def test_all_that_does_not_fit_is_said_and_nothing_changes(store):
    path = store.save(3, make_parts())
    model = nn.Sequential(nn.Embedding(5, 3), nn.Linear(3, 5))
    optimizer = torch.optim.AdamW(list(model.parameters())[:1], lr=0.1, weight_decay=0)
    parts = {"model": model, "optimizer": optimizer, "selection": Data(8)}
    before = weights(parts)
    optimizer.add_param_group({"params": [nn.Parameter(torch.ones(1))]})
    with pytest.raises(CheckpointError) as caught:
        store.restore(parts)
    assert str(caught.value) == (
        f"{path} does not fit; nothing was changed.\n"
        f"  part 'data' is in the checkpoint, but nothing here takes it\n"
        f"  part 'model': missing key '1.bias'\n"
        f"  part 'model': '0.weight' wants float32[5, 3], found float32[5, 4]\n"
        f"  part 'model': '1.weight' wants float32[5, 3], found float32[5, 4]\n"
        f"  part 'optimizer': 'param_groups' wants 2 groups, found 1\n"
        f"  part 'selection' is not in the checkpoint, which has 'data', 'model', 'optimizer'"
    )
    assert all(map(torch.equal, before, weights(parts)))


def test_a_part_that_refuses_is_named(store):
    store.save(1, {"data": Data()})

    class Other(Data):
        def load_state_dict(self, state):
            raise KeyError("epoch")

    with pytest.raises(
        CheckpointError, match=r"'data' \(.*Other\) refused its state: KeyError: 'epoch'"
    ):
        store.restore({"data": Other()})


def test_what_cannot_be_saved_names_the_part_and_writes_nothing(store):
    class Bad(Data):
        def state_dict(self):
            return {"a": object()}

    with pytest.raises(CheckpointError, match=r"^Part 'data': The state at 'a' is a object"):
        store.save(1, {"data": Bad()})
    with pytest.raises(CheckpointError, match=r"A part cannot be called '\.\./x'"):
        store.save(1, {"../x": Data()})
    assert not store.folder.exists()


# --- the checkpoint that a run may go back to -----------------------------------------------------


def filled(value):
    module = nn.Linear(1, 1, bias=False)
    nn.init.constant_(module.weight, value)
    return module


@pytest.fixture
def kept(tmp_path):
    store = Checkpoints(tmp_path / "checkpoints", keep=1)
    store.save(1, {"model": filled(1.0)})
    store.kept_steps = [1]
    for step in (2, 3, 4):
        store.save(step, {"model": filled(float(step))})
        if step == 2:
            store.mark_best(2)
    return store


def test_it_stays_beside_the_best_and_the_newest(kept):
    assert folders(kept) == ["step-00000001", "step-00000002", "step-00000004"]
    kept.kept_steps = [4]
    kept.save(5, {"model": filled(5.0)})
    assert folders(kept) == ["step-00000002", "step-00000004", "step-00000005"]


def test_it_is_loaded_by_its_step_and_the_newest_stays_the_last(kept):
    model = filled(0.0)
    assert kept.restore({"model": model}, step=1) == 1
    assert model.weight.item() == 1.0
    assert kept.last().name == "step-00000004"


@pytest.mark.parametrize("damage", ["gone", "manifest", "weights"])
def test_where_it_is_damaged_the_newest_good_one_is_loaded(kept, damage, caplog):
    path = kept.folder / "step-00000001"
    if damage == "gone":
        path.rename(kept.folder.parent / "elsewhere")
    else:
        file = path / {"manifest": "manifest.json", "weights": "model.safetensors"}[damage]
        file.write_bytes(file.read_bytes()[:-1])
    model = filled(0.0)
    assert kept.restore({"model": model}, step=1) == 4
    assert model.weight.item() == 4.0
    (message,) = caplog.messages
    assert message.startswith("checkpoint step-00000001 skipped: ")
