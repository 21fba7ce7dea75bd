"""The rate of adapters: higher than the recipe's for all weights, where none is set."""

from pathlib import Path
from typing import Any

import pytest

from textmill.recipes.planning import plan_recipe

ENCODER = "model.encoder.lora.rank=8"


def rate(experiment: str, *words: str, configs: tuple[Path, ...] = ()) -> Any:
    plan = plan_recipe(experiment, words, configs=configs, targets=["trainer"]).plan
    return plan.settings["optimizer"]["lr"], plan.notes


@pytest.mark.parametrize(
    ("experiment", "lora", "plain", "adapters"),
    [
        ("classification/pretrained", ENCODER, 2e-4, 1e-3),
        ("language/pretrained", "model.lora.rank=8", 5e-5, 2.5e-4),
        ("translation/pretrained", "model.lora.rank=8", 1e-4, 5e-4),
    ],
)
def test_adapters_learn_faster(experiment: str, lora: str, plain: float, adapters: float) -> None:
    assert rate(experiment) == (plain, [])
    said = f"Adapters (lora) learn faster than all weights: optimizer.lr={adapters}."
    assert rate(experiment, lora) == (adapters, [said])


@pytest.mark.parametrize("word", ["optimizer.lr=2e-4", "lr=2e-4"])
def test_a_rate_that_is_set_is_taken(word: str) -> None:
    assert rate("classification/pretrained", ENCODER, word)[0] == 2e-4


def test_a_rate_of_a_file_is_taken(tmp_path: Path) -> None:
    file = tmp_path / "rate.yaml"
    file.write_text("optimizer: {lr: 0.0002}\n")
    assert rate("classification/pretrained", ENCODER, configs=(file,))[0] == 2e-4
    file.write_text("model: {encoder: {lora: {rank: 4}}}\n")
    assert rate("classification/pretrained", configs=(file,))[0] == 1e-3


def test_another_optimizer_has_its_own_rate() -> None:
    assert rate("classification/pretrained", ENCODER, "optimizer.type=sgd")[0] == 0.1
