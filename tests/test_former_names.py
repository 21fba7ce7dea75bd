"""Names that modules and classes had before: recipes and run folders that have them still work."""

import importlib
import subprocess
import sys
from pathlib import Path

import pytest

import weft
from weft.config import registries
from weft.config.planning.key import reached_code
from weft.former_names import first_name
from weft.metrics.squad import SquadScores
from weft.recipes.planning import plan_recipe
from weft.tasks.classification import DocumentClassification
from weft.text.tokenizers.word_tokenizer import FittedWords
from weft.training.optimizers import AdamW
from weft.training.schedules import Cosine

TABLE = [
    line.split()
    for line in Path(weft.__file__).with_name("former_names.txt").read_text().splitlines()
]


OWN = """
from weft.models.classifier import Classifier
from weft.models.encoders.lstm import LstmEncoder

class Mine(LstmEncoder):
    class Config(LstmEncoder.Config): ...

model = Classifier.Config(encoder=Mine.Config())
"""


def test_every_line_leads_to_what_is_there() -> None:
    for _, present in TABLE:
        try:
            importlib.import_module(present)
        except ModuleNotFoundError:
            module, _, name = present.rpartition(".")
            assert hasattr(importlib.import_module(module), name), present


def test_a_recipe_that_imports_by_former_names_gets_the_classes_of_today() -> None:
    former = importlib.import_module("weft.text.words")
    assert former.FittedWords is FittedWords
    assert importlib.import_module("weft.metrics.answers").QuestionAnswering is SquadScores
    with pytest.raises(AttributeError, match="Nothing"):
        former.Nothing  # noqa: B018
    with pytest.raises(ModuleNotFoundError, match=r"^No module named 'weft\.text\.sentences'$"):
        importlib.import_module("weft.text.sentences")


def test_no_former_module_is_imported_before_it_is_asked_for() -> None:
    code = "import sys, weft; print('weft.former_names' in sys.modules)"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout == "False\n"


@pytest.mark.parametrize(
    ("present", "first"),
    [
        (AdamW, "weft.training.optimizers.adamw.AdamW"),
        (Cosine, "weft.training.schedules.cosine.Cosine"),
        (FittedWords, "weft.text.words.FittedWords"),
        (DocumentClassification, "weft.tasks.classification.DocumentClassification"),
        (Path, "pathlib.Path"),
    ],
)
def test_keys_are_made_of_the_first_name(present: type, first: str) -> None:
    assert first_name(f"{present.__module__}.{present.__qualname__}") == first


def test_nothing_of_weft_is_code_of_the_recipes_own(tmp_path: Path) -> None:
    script = tmp_path / "own.py"
    script.write_text(OWN)
    code = reached_code(plan_recipe(script, targets=["model"]).plan)
    assert [name for name in code if name.startswith("module weft")] == []
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
