"""Names that modules and classes had before: recipes and run folders that have them still work."""

import importlib
import subprocess
import sys
from pathlib import Path

import pytest

import textmill
from textmill.config.planning.key import reached_code
from textmill.former_names import first_name
from textmill.metrics.accumulators import SquadScores
from textmill.recipes import registries
from textmill.recipes.planning import plan_recipe
from textmill.tasks.classification import DocumentClassification
from textmill.text.tokenizers.word_tokenizer import FittedWords
from textmill.training.optimizers import AdamW
from textmill.training.schedules import Cosine

TABLE = [
    line.split()
    for line in Path(textmill.__file__).with_name("former_names.txt").read_text().splitlines()
]


OWN = """
from textmill.models.classifier import Classifier
from textmill.models.encoders.lstm import LstmEncoder

class Mine(LstmEncoder):
    class Config(LstmEncoder.Config): ...

model = Classifier.Config(encoder=Mine.Config())
"""


@pytest.mark.parametrize(("former", "present"), TABLE, ids=[former for former, _ in TABLE])
def test_every_line_serves_what_is_there(former: str, present: str) -> None:
    try:
        module = importlib.import_module(present)
    except ModuleNotFoundError:
        (where, _, name), (here, _, now) = former.rpartition("."), present.rpartition(".")
        found = getattr(importlib.import_module(where), name)
        assert found is getattr(importlib.import_module(here), now)
    else:
        found = importlib.import_module(former)
        assert found.__file__ == module.__file__
        assert len(set(found.__all__)) == len(found.__all__)
        for name in found.__all__:
            assert hasattr(found, name), name


def test_a_recipe_that_imports_by_former_names_gets_the_classes_of_today() -> None:
    former = importlib.import_module("textmill.text.words")
    assert former.FittedWords is FittedWords
    assert former.__doc__ == "The former name of ``textmill.text.tokenizers.word_tokenizer``."
    assert importlib.import_module("textmill.metrics.answers").QuestionAnswering is SquadScores
    with pytest.raises(AttributeError, match="Nothing"):
        former.Nothing  # noqa: B018
    with pytest.raises(ModuleNotFoundError, match=r"^No module named 'textmill\.text\.sentences'$"):
        importlib.import_module("textmill.text.sentences")


def test_a_star_imports_what_a_former_module_has_and_had() -> None:
    found: dict[str, object] = {}
    exec("from textmill.text.words import *\nfrom textmill.metrics.answers import *", found)
    assert found["FittedWords"] is FittedWords
    assert found["QuestionAnswering"] is found["SquadScores"] is SquadScores
    assert "QuestionAnswering" in dir(importlib.import_module("textmill.metrics.answers"))


def test_a_module_that_is_still_there_has_its_former_names_beside_its_own() -> None:
    present = importlib.import_module("textmill.models.vocabulary")
    assert present.VocabInfo is present.ModelVocabInfo
    assert "VocabInfo" not in vars(present)
    message = r"^module 'textmill\.models\.vocabulary' has no attribute 'Nothing'$"
    with pytest.raises(AttributeError, match=message):
        present.Nothing  # noqa: B018


def test_no_former_module_is_imported_before_it_is_asked_for() -> None:
    code = "import sys, textmill; print('textmill.former_names' in sys.modules)"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout == "False\n"


@pytest.mark.parametrize(
    ("present", "first"),
    [
        (AdamW, "textmill.training.optimizers.adamw.AdamW"),
        (Cosine, "textmill.training.schedules.cosine.Cosine"),
        (FittedWords, "textmill.text.words.FittedWords"),
        (DocumentClassification, "textmill.tasks.classification.DocumentClassification"),
        (Path, "pathlib.Path"),
    ],
)
def test_keys_are_made_of_the_first_name(present: type, first: str) -> None:
    assert first_name(f"{present.__module__}.{present.__qualname__}") == first


def test_nothing_of_textmill_is_code_of_the_recipes_own(tmp_path: Path) -> None:
    script = tmp_path / "own.py"
    script.write_text(OWN)
    code = reached_code(plan_recipe(script, targets=["model"]).plan)
    assert [name for name in code if name.startswith("module textmill")] == []
    assert "LstmEncoder" in code


def test_every_registered_component_has_one_first_name() -> None:
    firsts = {}
    for concept, registry in registries.all_registries().items():
        for name in registry.names():
            entry = registry.get(name)
            dotted = f"{entry.__module__}.{entry.__qualname__}"
            firsts.setdefault(first_name(dotted), set()).add(dotted)
            assert concept
    assert {first: found for first, found in firsts.items() if len(found) > 1} == {}


def test_a_module_that_had_names_before_is_imported_from_its_room() -> None:
    code = "from textmill.runtime import memory; print(memory.__name__)"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout == "textmill.runtime.memory\n"


def test_a_public_name_comes_before_a_former_module_of_that_name() -> None:
    served = importlib.import_module("textmill.tasks").__getattr__("evaluate")
    assert served is importlib.import_module("textmill.tasks.evaluation").evaluate
