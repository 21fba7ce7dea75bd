"""Weights from another run: what is taken, what is reported, what is refused, and only once."""

import shutil

import pytest
import torch
from torch import nn

from tests.training.bench import KillAt, Killed, differences, outcome, sentences, undisturbed
from textmill.checkpoint import Checkpoints
from textmill.errors import CheckpointError, UserError
from textmill.models.transformer import Transformer
from textmill.tasks import Translation
from textmill.text.tokenizers.sentencepiece import MultilingualTokenizer, train_sentencepiece
from textmill.training import Callback
from textmill.training import initial_weights as initial
from textmill.training.checkpoints import check_modules
from textmill.training.initial_weights import Initial


@pytest.fixture
def source(bench):
    """A finished run, which saved its encoder apart."""
    trainer = bench.but(folder=bench.folder.parent / "source").make(
        max_steps=5, save_modules=("encoder",)
    )
    trainer.fit()
    return trainer


def state(trainer):
    return {name: value.clone() for name, value in trainer.task.module.state_dict().items()}


def test_a_fresh_run_begins_with_the_best_weights_of_the_other(bench, source, caplog, monkeypatch):
    read, real = [], initial.load_part
    monkeypatch.setattr(initial, "load_part", lambda *args: read.append(args) or real(*args))
    trainer = bench.make(initialize=str(source.xp.folder))
    trainer.start()
    assert len(read) == 1
    assert differences(state(source), state(trainer)) == []
    count = len(state(source))
    best = f"{source.xp.folder}/checkpoints/step-{source.selection.best[0]:08d}"
    assert f"Initialized from {best}: {count} of {count} tensors." in caplog.messages
    assert not any("left as" in line or "Not used" in line for line in caplog.messages)


@pytest.mark.parametrize("kept", ["run", "modules", "checkpoint"])
def test_a_part_is_taken_from_a_run_or_from_saved_modules(bench, source, kept, caplog):
    folder = source.xp.folder
    place = {
        "run": folder,
        "modules": folder / "modules",
        "checkpoint": folder / "checkpoints" / f"step-{source.selection.best[0]:08d}",
    }[kept]
    before = state(bench.make())
    trainer = bench.make(initialize=str(place), initialize_from={"encoder": "encoder"})
    trainer.start()
    after, wanted = state(trainer), state(source)
    for name, value in after.items():
        expected = wanted if name.startswith("encoder.") else before
        assert torch.equal(value, expected[name]), name
    taken = sum(name.startswith("encoder.") for name in after)
    said = "\n".join(caplog.messages)
    assert f": {taken} of {len(after)} tensors." in said
    assert "Not taken from it, so left as they were: " in said
    assert ("Not used of it: " in said) == (kept != "modules")


def test_the_longest_name_says_what_a_part_is_taken_from(bench, source):
    here, there = "decoder.layers.0.feed_forward.", "encoder.layers.0.feed_forward."
    names = {here[:-1]: there[:-1], "": ""}
    trainer = bench.make(initialize=str(source.xp.folder), initialize_from=names)
    trainer.start()
    after, wanted = state(trainer), state(source)
    assert any(name.startswith(here) for name in after)
    for name, value in after.items():
        assert torch.equal(value, wanted[name.replace(here, there)]), name


def test_saved_modules_are_whole_and_verified(source):
    folder = source.xp.folder / "modules"
    names = {path.name for path in folder.iterdir()}
    assert names == {"encoder.safetensors", "manifest.json", "state.json", "text"}
    saved = Checkpoints.load_part(folder, "encoder")
    assert differences(dict(source.task.module.encoder.state_dict()), dict(saved)) == []
    assert Checkpoints(folder.parent).verify(folder) == []


def test_names_may_differ_and_a_whole_may_become_a_part(bench, source):
    task = bench.make().task
    task.module = torch.nn.ModuleDict({"old": task.module, "head": torch.nn.Linear(2, 2)})
    before = task.module["head"].weight.clone()
    Initial(str(source.xp.folder), {"old.encoder": "encoder"}, task=task).load()
    name = next(name for name in state(source) if name.startswith("encoder."))
    assert torch.equal(task.module["old"].state_dict()[name], state(source)[name])
    lines = Initial(str(source.xp.folder), {"old": ""}, task=task).load()
    assert differences(state(source), dict(task.module["old"].state_dict())) == []
    assert torch.equal(before, task.module["head"].weight)
    assert lines[1] == "Not taken from it, so left as they were: head.weight, head.bias."


def test_a_resumed_run_never_begins_again_and_needs_no_source(bench, source):
    here = bench.but(trainer={"initialize": str(source.xp.folder)})
    wanted = outcome(undisturbed(here))
    with pytest.raises(Killed):
        here.make(KillAt(7)).fit()
    shutil.rmtree(source.xp.folder)
    resumed = here.make()
    resumed.fit()
    assert differences(wanted, outcome(resumed)) == []


def test_another_vocabulary_and_other_shapes_are_named(bench, source, tmp_path):
    path = tmp_path / "other.model"
    texts = [text for row in sentences() for text in row.values()]
    train_sentencepiece(texts, path, vocab_size=40)
    tokenizer = MultilingualTokenizer.from_file(path, source_langs=("eng",), target_langs=("fra",))
    module = Transformer.Config(
        dim=16, ffn_dim=32, num_heads=2, num_encoder_layers=1, num_decoder_layers=1
    ).build(tokenizer=tokenizer)
    task = Translation.Config().build(module=module, tokenizer=tokenizer)
    folder = str(source.xp.folder)
    best = f"{folder}/checkpoints/step-{source.selection.best[0]:08d}"
    for names in ({}, {"encoder": "encoder", "source": "source"}):
        with pytest.raises(UserError) as caught:
            Initial(folder, names, task=task).check()
        assert "source.tokens.weight has a vector for each token" in str(caught.value)
        assert "another vocabulary (40 ids here, 44 there; id " in str(caught.value)
        assert f"tokenizer.type=of_run tokenizer.path={folder}" in str(caught.value)
    outputs = {"encoder": "encoder", "output_weight": "output_weight"}
    with pytest.raises(UserError, match=r"initialize: output_weight has a vector for each token"):
        Initial(folder, outputs, task=task).check()
    lines = Initial(folder, {"encoder": "encoder"}, task=task).load()
    assert lines[0].startswith(f"Initialized from {best}: ")


def test_other_languages_of_the_same_pieces_are_no_other_vocabulary(bench, source):
    given = source.task.text.tokenizer
    here = bench.make().task
    here.text.tokenizer = MultilingualTokenizer.from_file(
        given.config.model, source_langs=("eng",), target_langs=("deu",)
    )
    lines = Initial(str(source.xp.folder), {}, task=here).load()
    assert len(lines) == 1


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"initialize": "none"}, "trainer.initialize is 'none', where no checkpoint is"),
        ({"initialize_from": {"encodr": "encoder"}}, "'encodr', which the module here does not"),
        ({"initialize_from": {"encoder": "encodr"}}, "'encodr', which .* Did you mean 'encoder'"),
        ({"initialize_from": {"encoder.layers": "decoder"}}, "trainer.initialize: nothing in "),
        ({"initialize": None, "initialize_from": {"a": "b"}}, "no run to take it from"),
        ({"save_modules": ("encodr",)}, "trainer.save_modules names 'encodr'.* mean 'encoder'"),
    ],
)
def test_what_cannot_be_taken_is_refused_before_the_run_starts(bench, source, settings, said):
    with pytest.raises(UserError, match=said):
        bench.make(**{"initialize": str(source.xp.folder), **settings})
    assert not bench.folder.joinpath("checkpoints").exists()


def test_damaged_modules_are_refused(bench, source):
    model = source.xp.folder / "modules" / "encoder.safetensors"
    model.write_bytes(model.read_bytes()[:-1] + b"x")
    with pytest.raises(CheckpointError, match=r"encoder\.safetensors"):
        bench.make(initialize=str(source.xp.folder / "modules"))


def test_all_submodules_learn_though_initialize_left_one_evaluating(bench):
    class Leaves(Translation):
        def initialize(self):
            self.module.encoder.eval()
            return []

    seen = []

    class Looks(Callback):
        def step(self, progress):
            seen.append(all(module.training for module in trainer.task.module.modules()))

    trainer = bench.but(task_class=Leaves).make(Looks(), max_steps=1)
    trainer.fit()
    assert seen == [True]


@pytest.mark.parametrize("name", ["LayerNorm", "model"])
def test_a_name_no_saved_part_can_have_is_refused_before_the_run(name):
    with pytest.raises(
        UserError, match=f"names '{name}', which cannot be the name of a saved part"
    ):
        check_modules(nn.ModuleDict({name: nn.Linear(1, 1)}), [name])
