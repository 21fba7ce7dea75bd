"""Parts of a recipe's own, at any depth of it: trained, written down, found again or refused."""

import json
import os
import random
import subprocess
import sys
from pathlib import Path

import pytest

import textmill
from tests.warm_textmill import warm_programs
from textmill.data.text_rows import TextRows
from textmill.errors import PlanError
from textmill.models.classifier import Classifier
from textmill.models.encoders.sequence import SequenceEncoder
from textmill.tasks.classification import DocumentClassification
from textmill.text.features.labels import FittedLabels
from textmill.text.tokenizers.word_tokenizer import FittedWords

WORDS = ["the", "a", "soup", "film", "book", "day", "was", "is", "very", "so", "it", "this"]
SOUNDS = {"pos": ["good", "great", "fine", "nice"], "neg": ["bad", "awful", "poor", "sad"]}

PARTS = '''"""Parts of one's own."""
import torch
from torch import nn
from textmill.recipes import registries
from textmill.models.encoders.sequence import SequenceEncoder
from textmill.models.label_losses import LabelLoss
from textmill.models.poolings import Pooling

class Turned(SequenceEncoder):
    """The vectors, turned: of the sizes that the default has, so only its answers can tell."""

    class Config(SequenceEncoder.Config):
        """No settings."""

    def __init__(self, config, *, dim):
        super().__init__(config, dim=dim)
        self.filters = nn.ModuleList([nn.Conv1d(dim, 100, w) for w in (2, 3)])
        self.out_dim = 200

    def forward(self, x, lengths):
        return torch.sin(torch.cat([x, x, x], dim=-1)[..., :200] * 9)

class Wide(SequenceEncoder):
    """With settings of its own."""

    class Config(SequenceEncoder.Config):
        width: int = 3

    def __init__(self, config, *, dim):
        super().__init__()
        self.conv = nn.Conv1d(dim, dim, config.width, padding="same")

    def forward(self, x, lengths):
        return self.conv(x.transpose(1, 2)).transpose(1, 2)

@registries.encoders.register("tests_named")
class Named(Wide):
    """Registered."""

    class Config(Wide.Config):
        """The same."""

class First(Pooling):
    """The first token's vector."""

    class Config(Pooling.Config):
        """No settings."""

    def forward(self, states, real):
        return states[:, 0] * 2

class Doubled(LabelLoss):
    """Twice the cross-entropy."""

    class Config(LabelLoss.Config):
        """No settings of its own."""

    def forward(self, scores, targets):
        loss = nn.functional.cross_entropy(scores, targets, reduction="sum")
        return 2 * loss, torch.tensor(float(len(targets)))

    def probabilities(self, scores):
        return scores.softmax(dim=-1)
'''
RECIPE = """
from pathlib import Path
from textmill import like
from textmill.data.text_rows import TextRows
from textmill.models.classifier import Classifier
from textmill.models.layers.word_embeddings import WordEmbedding
from textmill.tasks.classification import DocumentClassification
from textmill.text.features.labels import FittedLabels
from textmill.text.tokenizers.word_tokenizer import FittedWords
from textmill.training import Adam, Trainer

train_data = TextRows.Config(path=Path(r"{folder}") / "train.tsv")
valid_data = like("train_data", path=Path(r"{folder}") / "valid.tsv", shuffle=False)
tokenizer = FittedWords.Config()
labels = FittedLabels.Config()
model = Classifier.Config(embedding=WordEmbedding.Config(dim=100), {model})
task = DocumentClassification.Config({task})
optimizer = Adam.Config(lr=1e-3)
trainer = Trainer.Config(max_epochs=1)
"""
OWN = {
    "an encoder without settings": ("encoder=Turned.Config()", ""),
    "an encoder with settings": ("encoder=Wide.Config(width=5)", ""),
    "an encoder that the script registers": ("encoder=Named.Config(width=5)", ""),
    "a pooling": ("pooling=First.Config()", ""),
    "a loss": ("", "loss=Doubled.Config()"),
}
QUIET = ["reporters.console=false", "reporters.html=false"]


def data_in(folder: Path) -> None:
    made = random.Random(1)
    for name, count in (("train.tsv", 120), ("valid.tsv", 60)):
        rows = []
        for _ in range(count):
            label = made.choice(list(SOUNDS))
            words = [*made.choices(WORDS, k=5), made.choice(SOUNDS[label])]
            rows.append(f"{label}\t{' '.join(made.sample(words, 6))}\n")
        (folder / name).write_text("".join(rows))


def script(folder: Path, model: str, task: str = "") -> Path:
    data_in(folder)
    path = folder / "own.py"
    path.write_text(PARTS + RECIPE.format(folder=folder, model=model, task=task))
    return path


def loss_in_training(run: Path) -> float:
    lines = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    return [line["loss"] for line in lines if line.get("split") == "valid"][-1]


def in_new_process(code: str, *folders: Path, cwd: Path) -> str:
    places = [*map(str, folders), *[path for path in sys.path if path]]
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(places)}
    words = [warm_programs() / "warm-python", "-c", code]
    done = subprocess.run(words, env=env, cwd=cwd, capture_output=True, text=True, check=True)
    return done.stdout


QUICK = ("an encoder with settings", "a loss")


@pytest.mark.parametrize(
    "own", [name if name in QUICK else pytest.param(name, marks=pytest.mark.slow) for name in OWN]
)
def test_a_part_of_the_scripts_own_is_found_again(tmp_path, own):
    run = textmill.train(script(tmp_path, *OWN[own]), QUIET, run_dir=tmp_path / "run").folder
    values = textmill.evaluate(run, allow_code=True)["valid_data"].values
    assert values["loss"] == pytest.approx(loss_in_training(run), rel=1e-5)
    code = (
        "import textmill\n"
        "from textmill.errors import CodeNotAllowedError\n"
        "try:\n"
        "    textmill.load('run')\n"
        "except CodeNotAllowedError as error:\n"
        "    print(error)\n"
        "print(textmill.evaluate('run', allow_code=True)['valid_data'].values['loss'])\n"
    )
    refused, loss = in_new_process(code, cwd=tmp_path).splitlines()
    assert refused.startswith("The ")
    assert "(run/recipe.py)" in refused
    assert refused.endswith("--allow-code on the command line, allow_code=True in Python.")
    assert float(loss) == pytest.approx(loss_in_training(run), rel=1e-5)


def test_two_recipes_that_differ_by_a_class_alone_are_two_runs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    path = script(tmp_path, "encoder=Turned.Config()")
    first = textmill.train(path, QUIET).folder
    path.write_text(path.read_text().replace("* 9", "* 8"))
    assert textmill.train(path, QUIET).folder != first


RECIPE_IN_PYTHON = """
import parts_of_mine as parts
import textmill
from textmill.models.classifier import Classifier

def recipe(**model):
    from pathlib import Path
    from textmill.data.text_rows import TextRows
    from textmill.tasks.classification import DocumentClassification
    from textmill.text.features.labels import FittedLabels
    from textmill.text.tokenizers.word_tokenizer import FittedWords
    from textmill.training import Adam, Trainer

    return textmill.Recipe(
        train_data=TextRows.Config(path=Path("train.tsv")),
        valid_data=textmill.like("train_data", path=Path("valid.tsv"), shuffle=False),
        tokenizer=FittedWords.Config(),
        labels=FittedLabels.Config(),
        model=Classifier.Config(**model),
        task=DocumentClassification.Config(),
        optimizer=Adam.Config(lr=1e-3),
        trainer=Trainer.Config(max_epochs=1),
    )
"""


def test_a_recipe_in_python_of_an_importable_modules_classes(tmp_path):
    """In another process: the module is imported already, or the caller allows it."""
    data_in(tmp_path)
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib" / "parts_of_mine.py").write_text(PARTS)
    (tmp_path / "lib" / "recipes_of_mine.py").write_text(RECIPE_IN_PYTHON)
    train = (
        "from recipes_of_mine import *\n"
        f"words = {QUIET!r}\n"
        "wide = textmill.train(recipe(encoder=parts.Wide.Config(width=5)), words, run_dir='run')\n"
        "turned = textmill.train(recipe(encoder=parts.Turned.Config()), words).folder\n"
        "cnn = textmill.train(recipe(), words).folder\n"
        "print(turned != cnn)\n"
        "print(textmill.evaluate('run')['valid_data'].values['loss'])\n"
    )
    differ, loss = in_new_process(train, tmp_path / "lib", cwd=tmp_path).splitlines()
    assert differ == "True"
    assert float(loss) == pytest.approx(loss_in_training(tmp_path / "run"), rel=1e-5)
    load = (
        "import textmill\n"
        "from textmill.errors import CodeNotAllowedError\n"
        "try:\n"
        "    textmill.load('run')\n"
        "except CodeNotAllowedError as error:\n"
        "    print(error)\n"
        "{more}"
        "print(textmill.evaluate('run'{allow})['valid_data'].values['loss'])\n"
    )
    allowed = load.format(more="", allow=", allow_code=True")
    imported = load.format(more="import parts_of_mine\n", allow="")
    for code in (allowed, imported):
        refused, found = in_new_process(code, tmp_path / "lib", cwd=tmp_path).splitlines()
        assert refused.startswith("The module.encoder of run is of type '@parts_of_mine.Wide',")
        assert found == loss


def test_a_part_that_no_run_could_find_is_refused_before_training(tmp_path):
    class Inner(SequenceEncoder):
        class Config(SequenceEncoder.Config): ...

        def forward(self, x, lengths): ...

    recipe = textmill.Recipe(
        train_data=TextRows.Config(path=tmp_path / "train.tsv"), tokenizer=FittedWords.Config(),
        labels=FittedLabels.Config(), model=Classifier.Config(encoder=Inner.Config()),
        task=DocumentClassification.Config(),
    )  # fmt: skip
    with pytest.raises(PlanError) as caught:
        textmill.train(recipe, run_dir=tmp_path / "run")
    name = "test_a_part_that_no_run_could_find_is_refused_before_training.<locals>.Inner"
    assert f"model.encoder.type: '@{__name__}.{name}' cannot be imported" in str(caught.value)
    assert not (tmp_path / "run").exists()
