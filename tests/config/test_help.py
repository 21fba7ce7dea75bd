"""The help, whole: of a complete recipe, of a docstring alone, of recipes with holes."""

import pytest

from textmill.config.component import Component
from textmill.config.component import Config as BaseConfig
from textmill.config.help import recipe_help, setting_lines
from textmill.config.parameters import settings_of
from textmill.training.optimizers import AdamW, Optimizer
from textmill.training.schedules import Linear


def test_the_whole_help(kitchen):
    text, _ = recipe_help(kitchen.table(), kitchen.defaults, usage={"train": "train it"})
    assert text == (
        """A tiny recipe.

  textmill train recipe.py [name.setting=value ...]  train it

**tokenizer** (list): Splits text.
  tokenizer.tsv_file (pathlib.Path): What it is fitted on. (default=rows.tsv)
  tokenizer.vocab_size (int): Number of pieces. (default=5)

**model** (Net.Config, type tiny_model): A model of the tests.
  model.dim (int): Width. (default=4)
  model.size (int | None): (default=null)

**module** (Net, built from model)

**optimizer** (Adam, type tiny_adam): Adam of the tests.
  optimizer.lr (float): Step size. (default=0.001)
  optimizer.betas (tuple[float, float]): (default=[0.9, 0.98])

**trainer** (Trainer): Trains.
  trainer.steps (int): Optimizer steps. (default=10)
  trainer.selection (Selection.Config): Which checkpoint is the best.
  trainer.selection.metric (str): (default=loss)

**train_data** (list): Rows.
  train_data.path (pathlib.Path): (default=rows.tsv)
  train_data.shuffle (bool): (default=true)

**valid_data** (list): Rows.
  valid_data.path (pathlib.Path): (default=dev.tsv)
  valid_data.shuffle (bool): (default=false)

**test_data**: none; test_data.path=... is read as train_data is

**env** (given by the run): where it computes: device, rank, world_size
**xp** (given by the run): the run: its folder, recipe, key and overrides
**entry_point** (given by the run): the command: train, check, test, prepare, evaluate or predict
"""
    )


@pytest.mark.parametrize(
    "script",
    [
        "", "def module(model_cfg): ...\n", "def tokenizer(x: int): ...\n",
        "def module(a): ...\ndef a(module): ...\n",
        "from textmill.config.recipe import like\nvalid_data = like('train_data')\n",
        "def train_data(tokenizer: 'Unknown', x=object): ...\n", "def model(): ...\n",
    ],
)  # fmt: skip
def test_help_never_fails_for_what_is_missing(kitchen, script):
    assert "!!!" in recipe_help(kitchen.table(script), kitchen.defaults, usage={})[0]


def test_problems_stand_below_the_help(kitchen):
    text, _ = recipe_help(kitchen.table(), kitchen.defaults, usage={}, words=["vocab_size=x"])
    assert text.endswith(
        "\n!!! overrides: vocab_size=x: tokenizer.vocab_size: wanted int, found 'x'. !!!\n"
    )


class Chooses(Component):
    class Config(BaseConfig):
        first: Optimizer.Config = AdamW.Config()
        maybe: AdamW.Config | Optimizer.Config | None = None
        other: Linear.Config | int | None = None
        number: int | None = None


def test_components_have_the_word_of_their_registry():
    lines = [line for s in settings_of(Chooses.Config) for line in setting_lines("x", s, None)]
    assert [line for line in lines if line.count(".") == 1] == [
        "  x.first (optimizer):",
        "  x.maybe (optimizer or null): (default=null)",
        "  x.other (lr_scheduler or int or null): (default=null)",
        "  x.number (int | None): (default=null)",
    ]


class Own(AdamW):
    class Config(AdamW.Config):
        warm: bool = False


def test_what_people_change_first_is_shown_and_the_rest_on_all(kitchen):
    text = (
        "from textmill.training import AdamW\n"
        "optimizer = AdamW.Config(rates={'a': 2.0})\n"  # what the recipe sets is shown, too
    )
    table = kitchen.table(text)
    shown = recipe_help(table, kitchen.defaults, usage={})[0]
    every = recipe_help(table, kitchen.defaults, usage={}, everything=True)[0]
    found = [line.split()[0] for line in shown.splitlines() if line.startswith("  optimizer.")]
    assert found == [
        "optimizer.lr", "optimizer.freeze", "optimizer.rates", "optimizer.weight_decay",
    ]  # fmt: skip
    assert "optimizer.eps" in every
    left_out = every.count("\n  optimizer.") - len(found)
    assert f"{left_out} more settings: textmill help" in shown
    assert "--all" not in every
    assert Own.Config.shown_first == {"lr", "freeze", "weight_decay", "warm"}
