"""Settings given in Python: read as a file's, kept as they are, or refused by their names."""

import sys
from collections.abc import Collection, Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any, Literal, TypedDict, Unpack

import pytest

from textmill.config import Component, Config, setting
from textmill.config.ingredient import dependencies_of
from textmill.errors import UserError
from textmill.models.classifier import Classifier
from textmill.models.decoding import Decoding
from textmill.models.encoders.lstm import LstmEncoder
from textmill.models.encoders.sequence import CnnEncoder, SequenceEncoder
from textmill.training import AdamW, Every, Trainer


def refused(make) -> str:
    with pytest.raises(UserError) as caught:
        make()
    return str(caught.value)


class Part(Component):
    class Config(Config):
        size: int = 2
        rate: float = 0.5


class Whole(Component):
    class Config(Config):
        path: Path
        part: Part.Config = Part.Config(size=3)
        parts: tuple[Part.Config, ...] = ()
        named: Mapping[str, Part.Config] = setting(factory=dict)
        sizes: tuple[int, ...] = ()
        names: Collection[str] = ()
        wide: Literal["yes", "no"] | None = None
        anything: Any = None


def test_what_a_file_may_say_may_be_said_in_python():
    trainer = Trainer.Config(max_time="15m", evaluate_every="2 epochs", selection={"patience": 3})
    assert (trainer.max_time, trainer.evaluate_every) == (timedelta(minutes=15), Every(2, "epochs"))
    assert trainer.selection.patience == 3
    assert Trainer.Config(max_steps="100", compile="true").max_steps == 100
    model = Classifier.Config(embedding={"dim": 8}, encoder={"type": "lstm", "hidden_dim": 6})
    assert model.embedding.dim == 8
    assert model.encoder == LstmEncoder.Config(hidden_dim=6)


def test_a_dictionary_changes_the_default_and_only_what_it_names():
    assert Whole.Config(path="x", part={"rate": 1.0}).part == Part.Config(size=3, rate=1.0)
    whole = Whole.Config(path="x", parts=[{"size": 1}, Part.Config()], named={"a": {"size": 9}})
    assert whole.path == Path("x")
    assert whole.parts == (Part.Config(size=1), Part.Config())
    assert whole.named == {"a": Part.Config(size=9)}


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda: Trainer.Config(max_steps="10k"), "max_steps: wanted int, found '10k'."),
        (lambda: Trainer.Config(max_steps=2.5), "max_steps: wanted int, found 2.5."),
        (lambda: Trainer.Config(seed=True), "seed: wanted int, found True."),
        (lambda: Trainer.Config(evaluate_every="often"), "evaluate_every: an interval is a"),
        (lambda: Trainer.Config(max_time=15), "max_time: wanted datetime.timedelta, found 15."),
        (lambda: Classifier.Config(embedding={"dim": "x"}), "embedding.dim: wanted int, found"),
        (lambda: Classifier.Config(embedding={"dims": 8}), "embedding has no setting 'dims'."),
        (lambda: Classifier.Config(encoder={"type": "cn"}), "type: no encoder is named 'cn'."),
        (lambda: Classifier.Config(encoder="cnn"), "encoder: wanted the settings of Sequen"),
        (lambda: Classifier.Config(encoder=AdamW.Config()), "found those of the optimizer adamw."),
        (lambda: Classifier.Config(hidden="ab"), "hidden: wanted tuple[int, ...], found 'ab'."),
        (lambda: Whole.Config(path="x", sizes=[1, "two"]), "sizes[1]: wanted int, found 'two'."),
        (lambda: Whole.Config(path="x", named={"a": {"size": None}}), "named.a.size: wanted int"),
        (lambda: Whole.Config(path="x", wide="maybe"), "wide: wanted one of 'yes', 'no', found"),
        (Whole.Config, "Whole.Config.path: wanted pathlib.Path, and no value is given."),
        (lambda: Decoding(beam_size="x", n_bst=2), "\nDecoding.beam_size: wanted int, found 'x'."),
        (lambda: Decoding(beam_size="x", n_bst=2), "Decoding has no setting 'n_bst'. Did you mean"),
    ],
)
def test_what_cannot_be_read_is_refused_by_its_name(make, text):
    assert text in refused(make)


def test_a_config_goes_to_a_dictionary_and_back():
    model = Classifier.Config(embedding={"dim": 8}, encoder={"type": "lstm"}, hidden=(4,))
    data = model.to_dict()
    assert data["type"] == "classifier"
    assert data["encoder"]["type"] == "lstm"
    assert data["hidden"] == [4]
    assert Classifier.Config.from_dict(data) == model
    trainer = Trainer.Config(max_time="15m", keep=5)
    assert trainer.to_dict()["max_time"] == "15m"
    assert Trainer.Config.from_dict(trainer.to_dict()) == trainer


class Mine(CnnEncoder):
    """An encoder that no registry has."""


def test_a_class_of_ones_own_goes_to_a_dictionary_and_back_where_it_is_imported(tmp_path):
    model = Classifier.Config(encoder=Mine.Config(filters=7))
    data = model.to_dict()
    assert data["encoder"]["type"] == f"@{__name__}.Mine"
    assert Classifier.Config.from_dict(data) == model
    data["encoder"]["type"] = "@xdrlib_of_nobody.Mine"
    assert "xdrlib_of_nobody" in refused(lambda: Classifier.Config.from_dict(data))
    data["encoder"]["type"] = "@this.Mine"  # importing it prints
    assert "@this.Mine" in refused(lambda: Classifier.Config.from_dict(data))
    assert "this" not in sys.modules


def test_the_type_of_a_dictionary_may_name_a_subclass_and_nothing_else():
    encoder = SequenceEncoder.Config
    assert encoder.from_dict({"type": "cnn", "filters": 7}) == CnnEncoder.Config(filters=7)
    assert refused(lambda: CnnEncoder.Config.from_dict({"type": "lstm"})) == (
        "CnnEncoder.Config.type: no encoder is named 'lstm'. Known: cnn."
    )
    assert refused(lambda: AdamW.Config.from_dict({"lr": "fast", "beta": 1})) == (
        "AdamW.Config has no setting 'beta'. Did you mean 'betas'? It has: lr, freeze, "
        "layer_decay, rates, lr_width, betas, eps, weight_decay.\n"
        "AdamW.Config.lr: wanted float, found 'fast'."
    )


class Seasoning(TypedDict, total=False):
    salt: int | None
    pepper: str | None


class Dish(Component):
    class Config(Config):
        size: int = 2

    def __init__(self, config: Config, *, plate: str, **beside: Unpack[Seasoning]) -> None:
        self.plate, self.beside = plate, beside


def test_what_a_constructor_takes_by_a_typed_dict_may_be_left_out():
    wanted = {p.name: (p.annotation, p.required) for p in dependencies_of(Dish.Config)}
    assert wanted == {
        "plate": (str, True), "salt": (int | None, False), "pepper": (str | None, False),
    }  # fmt: skip
    assert Dish.Config().given(salt="sea").names == {"salt": "sea"}
    assert Dish.Config().build(plate="p", salt=3).beside == {"salt": 3}
