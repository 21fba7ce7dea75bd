"""Planning and building: wiring by name, layers of settings, types, like, given, bare names."""

import inspect
from pathlib import Path

import pytest

from textmill.config import merge
from textmill.config.ingredient import IngredientTable
from textmill.config.planning.plan import make_plan
from textmill.config.values import typed_values
from textmill.config.values.yaml_files import dump_yaml
from textmill.errors import PlanError


def test_only_what_targets_reach_is_planned_dependencies_first(kitchen):
    plan = kitchen.plan(targets=["train_data"])
    assert plan.order == ("tokenizer", "train_data")
    assert plan.settings == {
        "tokenizer": {"tsv_file": "rows.tsv", "vocab_size": 5},
        "train_data": {"path": "rows.tsv", "shuffle": True},
    }
    assert kitchen.plan().order == (
        "model", "tokenizer", "module", "optimizer", "train_data", "valid_data", "trainer",
    )  # fmt: skip


def test_building_gives_each_ingredient_once_and_records_filled_configs(kitchen):
    session = kitchen.plan("vocab_size=3").start({"env": "the env"})
    trainer = session.get("trainer")
    assert trainer.module is session.get("module")
    assert trainer.optimizer.module is trainer.module
    assert trainer.valid_data == [["rows.tsv"] * 3, Path("dev.tsv"), False]
    assert session.has("env")
    assert not session.has("labels")
    assert session.built["module"] == {"type": "tiny_model", "dim": 4, "size": 3}
    assert session.built["optimizer"] == {"type": "tiny_adam", "lr": 1e-3, "betas": [0.9, 0.98]}
    selection = {"type": "@Selection", "metric": "loss"}
    assert session.built["trainer"] == {"type": "@Trainer", "steps": 10, "selection": selection}


def test_the_last_layer_wins_and_siblings_stay(kitchen):
    plan = kitchen.plan(
        "optimizer.lr=3e-4",
        yaml=["optimizer: {lr: 1, betas: [0.5, 0.6]}\n", "optimizer: {lr: 2}\n"],
    )
    assert plan.settings["optimizer"] == {"type": "tiny_adam", "lr": 3e-4, "betas": [0.5, 0.6]}
    assert plan.notes == []


@pytest.mark.parametrize(
    "words",
    [
        ("optimizer.type=tiny_lion", "optimizer.decay=0.1"),
        ("optimizer.decay=0.1", "optimizer.type=tiny_lion"),
    ],
)
def test_type_is_resolved_first_and_discards_what_earlier_layers_set(kitchen, words):
    plan = kitchen.plan(*words, yaml=["optimizer:\n  lr: 1\n  betas: [0.5, 0.6]\n"])
    assert plan.settings["optimizer"] == {"type": "tiny_lion", "lr": 1e-4, "decay": 0.1}
    assert plan.notes == [
        "optimizer.type=tiny_lion (overrides: optimizer.type=tiny_lion) discards "
        "optimizer.lr (0.yaml:2:7), optimizer.betas (0.yaml:3:10)."
    ]


def test_a_nested_config_changes_its_type_among_the_subclasses_of_its_field(kitchen):
    script = """
from textmill.config import Component, Config
from textmill.recipes import registries

class Encoder(Component):
    class Config(Config):
        pass

@registries.models.register("tiny_cnn")
class Cnn(Encoder):
    class Config(Encoder.Config):
        width: int = 3

@registries.models.register("tiny_rnn")
class Rnn(Encoder):
    class Config(Encoder.Config):
        cell: str = "lstm"

class Net(Component):
    class Config(Config):
        encoder: Encoder.Config = Cnn.Config(width=5)
    def __init__(self, config):
        self.config = config

net = Net.Config()
"""
    plan = kitchen.plan("net.encoder.type=tiny_rnn", "cell=gru", script=script, targets=["net"])
    encoder = {"type": "tiny_rnn", "cell": "gru"}
    assert plan.settings == {"net": {"type": "@Net", "encoder": encoder}}
    again = kitchen.plan(script=script, yaml=[dump_yaml(plan.settings)], targets=["net"])
    assert again.settings == plan.settings
    with pytest.raises(PlanError) as caught:
        kitchen.plan("net.encoder.type=tiny_adam", script=script, targets=["net"])
    assert "net.encoder.type: no model is named 'tiny_adam'. Known: tiny_cnn," in str(caught.value)


def test_like_follows_its_model_wherever_that_was_set(kitchen):
    plan = kitchen.plan("valid_data.path=x.tsv", yaml=["train_data: {path: y.tsv}\n"])
    assert plan.settings["valid_data"] == {"path": "x.tsv", "shuffle": False}
    plan = kitchen.plan("train_data.shuffle=no", script=kitchen_script("like('train_data')"))
    assert plan.settings["valid_data"] == {"path": "rows.tsv", "shuffle": False}


def test_what_a_follower_sets_and_another_type_of_its_model_lacks_is_discarded(kitchen):
    script = """
from textmill.config import Component, Config, like
from textmill.recipes import registries

@registries.datasets.register("tiny_files")
class Files(Component):
    class Config(Config):
        path: str = "a"
        shuffle: bool = True
    def __init__(self, config): ...

@registries.datasets.register("tiny_made")
class Made(Component):
    class Config(Config):
        path: str = "m"
        size: int = 3
    def __init__(self, config): ...

train_data = Files.Config()
valid_data = like("train_data", path="b", shuffle=False)
"""
    targets = ["train_data", "valid_data"]
    plan = kitchen.plan("train_data.type=tiny_made", script=script, targets=targets)
    assert plan.settings["valid_data"] == {"type": "tiny_made", "path": "b", "size": 3}
    assert plan.notes == [
        "valid_data.shuffle=False (recipe.py:20:1) is discarded: valid_data is like train_data, "
        "which is of another type now and has no 'shuffle'."
    ]
    wrong = script.replace("shuffle=False)", "shufle=False)")
    with pytest.raises(PlanError):  # a mistake of the script's own stays one
        kitchen.plan(script=wrong, targets=["valid_data"])


def kitchen_script(valid: str) -> str:
    from tests.config.conftest import SCRIPT

    return SCRIPT.replace('like("train_data", path=Path("dev.tsv"), shuffle=False)', valid)


def test_given_rebinds_what_build_needs(kitchen):
    script = """
from textmill.config import Component, Config

class Reader(Component):
    class Config(Config):
        size: int = 1
    def __init__(self, config, *, vocabulary):
        self.config, self.vocabulary = config, vocabulary

def vocabulary(): return "source"
def target_vocabulary(): return "target"
source = Reader.Config()
target = Reader.Config().given(vocabulary="target_vocabulary")
"""
    session = kitchen.plan(script=script, targets=["source", "target"]).start()
    assert session.get("source").vocabulary == "source"
    assert session.get("target").vocabulary == "target"


def test_a_bare_name_sets_the_one_setting_that_ends_in_it(kitchen):
    plan = kitchen.plan("lr=1e-5", "selection.metric=bleu")
    assert plan.settings["optimizer"]["lr"] == 1e-5
    assert plan.settings["trainer"]["selection"]["metric"] == "bleu"
    assert plan.notes == [
        "lr=1e-5 sets optimizer.lr",
        "selection.metric=bleu sets trainer.selection.metric",
    ]


def test_an_import_path_swaps_an_ingredient_at_the_command_line(kitchen):
    kitchen.file("def deep(width: int = 2):\n    return width\n", "my_deep.py")
    plan = kitchen.plan("module=@my_deep.deep", "module.width=7", targets=["optimizer"])
    assert plan.swaps == {"module": "@my_deep.deep"}
    assert plan.start().get("optimizer").module == 7


def test_an_ingredient_is_switched_off_by_null(kitchen):
    plan = kitchen.plan("valid_data=null")
    assert "valid_data" not in plan.order
    assert plan.start({"env": None}).get("trainer").valid_data is None
    again = kitchen.plan(yaml=[dump_yaml(plan.settings)])
    assert again.settings == plan.settings


def test_a_parameter_of_a_plain_type_is_a_setting_whatever_its_name(kitchen):
    script = "def size(): return 3\ndef box(size: int = 4): return size\n"
    plan = kitchen.plan(script=script, targets=["box"])
    assert plan.order == ("box",)
    assert plan.settings == {"box": {"size": 4}}


def test_dtypes_and_devices_are_names_until_the_ingredient_is_called(kitchen):
    script = """
from __future__ import annotations
from typing import TYPE_CHECKING
if TYPE_CHECKING:
    import torch
def box(dtype: torch.dtype, device: torch.device = "cpu"): return dtype, device
"""
    plan = kitchen.plan("box.dtype=bfloat16", script=script, targets=["box"])
    assert plan.settings == {"box": {"dtype": "bfloat16", "device": "cpu"}}
    assert [str(v) for v in plan.start().get("box")] == ["torch.bfloat16", "cpu"]


def test_an_empty_recipe_misses_everything_at_once(kitchen):
    with pytest.raises(PlanError) as caught:
        make_plan(IngredientTable("empty", {}), defaults=kitchen.defaults, targets=["trainer"])
    assert [problem.message for problem in caught.value.problems] == [
        "no 'module' is specified, and optimizer, trainer need it. Define module in the recipe.",
        "no 'train_data' is specified, and trainer needs it. Define train_data in the recipe.",
    ]


def test_a_bare_name_may_be_a_setting_that_the_targets_do_not_reach(kitchen):
    plan = kitchen.plan("lr=0.5", targets=["tokenizer"])
    assert "optimizer" not in plan.settings
    assert plan.notes == [
        "lr=0.5 sets optimizer.lr",
        "optimizer is not used here; its settings (overrides: lr=0.5) change nothing.",
    ]


TAKING = """
from textmill.config import Component, Config

class Trainer(Component):
    class Config(Config):
        pass

    def __init__(self, config, *, slots=None, scorer): ...

def scorer(words: list | None = None, cache: object = None): ...

trainer = Trainer.Config()
"""


@pytest.mark.parametrize(
    ("name", "value"), [("slots", "object()"), ("cache", "{1: 2}"), ("scorer", "[1]")]
)
def test_an_object_in_the_place_of_what_is_taken_is_refused(kitchen, name, value):
    with pytest.raises(PlanError) as caught:
        kitchen.plan(script=f"{TAKING}\n{name} = {value}\n")
    (problem,) = caught.value.problems
    assert str(problem).startswith(f"recipe.py:14:1: the ingredient '{name}' is a ")
    assert str(problem).endswith(f"An object is given by a function: def {name}(): return ...")


def test_an_object_in_the_place_of_a_default_is_refused_where_the_default_is_used(kitchen):
    script = "def trainer(optimizer): ...\nhelpful = [1]\n"
    defaults = kitchen.table("def optimizer(helpful): ...\ndef helpful(): ...\n", "defaults.py")
    with pytest.raises(PlanError, match="the ingredient 'helpful' is a list"):
        make_plan(kitchen.table(script), defaults=defaults, targets=["trainer"])


def test_a_config_that_nothing_takes_is_noted(kitchen):
    script = f"{TAKING}\nsmall = Trainer.Config()\nslot = Trainer.Config()\nkept = [small]\n"
    plan = kitchen.plan(script=script)
    assert plan.notes == ["slot (recipe.py:15:1) is taken by nothing here. Did you mean 'slots'?"]
    assert kitchen.plan("slot=null", script=script).notes == []
    assert kitchen.plan(script=script, targets=["scorer"]).notes == []  # asked for a part alone


def test_what_is_needed_cannot_be_switched_off(kitchen):
    needed = (
        "'train_data' is switched off by train_data=null, and trainer needs it. Leave that out."
    )
    followed = "recipe.py:43:1: valid_data is like 'train_data', which is switched off: "
    for words, problems in (
        (["trainer=null"], ["'trainer' is switched off by trainer=null. Leave that out."]),
        (["train_data=null", "valid_data=null"], [needed]),
        (["train_data=null"], [f"{followed}valid_data=null too.", needed]),
    ):
        with pytest.raises(PlanError) as caught:
            kitchen.plan(*words)
        assert [str(problem) for problem in caught.value.problems] == problems


DATA = """
from textmill.config import Component, Config
from textmill.config.recipe import like
from pathlib import Path
class Rows(Component):
    class Config(Config):
        path: Path = Path("train.tsv")
        size: int = 3
        shuffle: bool = True
    def __init__(self, config): self.config = config
train_data = Rows.Config()
def work(train_data, valid_data=None, test_data=None): return test_data
"""


@pytest.mark.parametrize("name", ["test_data", "valid_data"])
def test_data_that_no_recipe_names_are_read_as_those_it_has(kitchen, name):
    plan = kitchen.plan(f"{name}.path=x.tsv", "train_data.size=5", script=DATA, targets=["work"])
    wanted = {"type": "@Rows", "path": "x.tsv", "size": 5, "shuffle": False}
    assert plan.settings[name] == wanted
    assert plan.start().get(name).config.size == 5
    saved = kitchen.plan(script=DATA, yaml=[dump_yaml(plan.settings)], targets=["work"])
    assert saved.settings == plan.settings
    assert name not in kitchen.plan(script=DATA, targets=["work"]).settings


def test_a_bare_word_is_read_once_and_near_the_command(kitchen, monkeypatch):
    frames = []

    def read(node, kind):
        if getattr(node, "text", "") == "3.5e-3":
            frames.append([frame.function for frame in inspect.stack()[1:4]])
        return original(node, kind)

    original = typed_values._number
    monkeypatch.setattr(merge, "SCALARS", ((float, read), *merge.SCALARS))
    plan = kitchen.plan("lr=3.5e-3")
    assert plan.settings["optimizer"]["lr"] == 3.5e-3
    assert frames == [["read", "fields", "make_plan"]]
