"""Every problem a plan reports, by its whole text."""

import pytest

from textmill.errors import PlanError
from textmill.recipes import registries

TINY = ("tiny_adam", "tiny_lion")
"""The optimizers of the tests' own library."""


def problems(kitchen, *words, **options):
    with pytest.raises(PlanError) as caught:
        kitchen.plan(*words, **options)
    return [str(problem) for problem in caught.value.problems]


def test_all_problems_are_reported_at_once_each_with_its_place(kitchen):
    found = problems(
        kitchen,
        "trainer.steps=many",
        "optimizer.lrr=1",
        "shuffle=no",
        "vocabsize=3",
        "modle.dim=2",
        "oops",
        yaml=["train_data:\n  shuffle: 3\nmodels:\n  dim: 3\n"],
    )
    assert found == [
        "overrides: oops: wanted name.setting=value.",
        "overrides: shuffle=no: 'shuffle' can mean more than one setting: train_data.shuffle, "
        "valid_data.shuffle. Write one of them.",
        "overrides: vocabsize=3: no setting is named 'vocabsize'. Did you mean 'vocab_size'?",
        "overrides: modle.dim=2: 'modle' is no ingredient of this recipe. Did you mean 'model'?",
        "overrides: trainer.steps=many: trainer.steps: wanted int, found 'many'.",
        "overrides: optimizer.lrr=1: optimizer has no setting 'lrr'. Did you mean 'lr'? "
        "It has: lr, betas.",
        "0.yaml:2:12: train_data.shuffle: wanted bool, found '3'.",
        "0.yaml:3:1: 'models' is no ingredient of this recipe. Did you mean 'model'?",
    ]


def test_the_error_counts_and_lists(kitchen):
    with pytest.raises(PlanError) as caught:
        kitchen.plan("lr=x")
    assert str(caught.value) == (
        "1 problem in the recipe; nothing was run.\n"
        "  overrides: lr=x: optimizer.lr: wanted float, found 'x'."
    )
    assert caught.value.exit_code == 2


@pytest.mark.parametrize(
    ("script", "message"),
    [
        (
            "def a(b): ...\ndef b(c): ...\ndef c(a): ...\n",
            "recipe.py:1:1: ingredients need each other in a circle: a -> b -> c -> a.",
        ),
        (
            "def b() -> str: ...\ndef a(b: list[int] | None): ...\n",
            "recipe.py:2:1: the parameter 'b' of a is both: its type makes it a setting and its "
            "name an ingredient. Rename one of the two.",
        ),
        (
            "class B: ...\nclass C: ...\ndef b() -> B: ...\ndef a(b: C): ...\n",
            "recipe.py:4:1: a wants 'b' to be C, but b (recipe.py:3:1) is B.",
        ),
        (
            "def a(b): ...\n",
            "recipe.py:1:1: the parameter 'b' of a needs an annotation to be a setting, or an "
            "ingredient of its name.",
        ),
        (
            "def a(b: int): ...\n",
            "recipe.py:1:1: a.b: wanted int, and no value is given. Set a.b=...",
        ),
        (
            "class B: ...\ndef a(b: B): ...\n",
            "recipe.py:2:1: no 'b' is specified, and a needs it. Define b in the recipe.",
        ),
        (
            "def tokeniser(): ...\ndef a(tokenizer): ...\n",
            "recipe.py:2:1: no 'tokenizer' is specified, and a needs it. Did you mean 'tokeniser'? "
            "Define tokenizer in the recipe.",
        ),
        (
            "from textmill.config.recipe import like\ndef train(): ...\na = like('trian')\n",
            "recipe.py:3:1: a is like 'trian', which is no ingredient. Did you mean 'train'?",
        ),
        (
            "from textmill.config.recipe import like\na = like('b')\nb = like('a')\n",
            "recipe.py:3:1: b is like 'a', which follows it in a circle or is not known.",
        ),
        (
            "from textmill.config.recipe import like\ndef b(n: int = 1): ...\n"
            "a = like('b', n='x')\n",
            "recipe.py:3:1: a.n: wanted int, found 'x'.",
        ),
        (
            "from textmill.config.recipe import like\ndef b(n: int = 1): ...\na = like('b', m=2)\n",
            "recipe.py:3:1: a has no setting 'm'. It has: n.",
        ),
        ("def a(n: int = 'x'): ...\n", "recipe.py:1:1: a.n: wanted int, found 'x'."),
        (
            "from textmill.config import Component, Config\nclass A(Component):\n"
            "    class Config(Config):\n        n: int | None = 1.5\na = A.Config()\n",
            "recipe.py:5:1: a.n: wanted int, found 1.5.",
        ),
        (
            "from textmill.config import Component, Config\ndef b(): ...\nclass A(Component):\n"
            "    class Config(Config):\n        b: int = 1\n"
            "    def __init__(self, config, *, b): ...\na = A.Config()\n",
            "recipe.py:7:1: 'b' is a setting of a and also an ingredient that A is built from: a "
            "run with it could be trained, but not loaded. Rename the field of A.Config.",
        ),
        ("", "no 'a' is specified. Define a in the recipe."),
        (
            "def model(): ...\ndef a(module): ...\n",
            "defaults.py:64:1: module is built from model, whose type is not known: annotate what "
            "model returns with a component's Config, or define module.",
        ),
    ],
)
def test_a_script_with_one_mistake(kitchen, script, message):
    assert problems(kitchen, script=script, targets=["a"])[0] == message


@pytest.mark.parametrize(
    ("word", "message"),
    [
        (
            "optimizer.type=tiny_lino",
            "optimizer.type: Unknown optimizer 'tiny_lino'. Did you mean 'tiny_lion'? "
            f"Known: {', '.join(sorted({*registries.optimizers.names(), *TINY}))}.",
        ),
        (
            "optimizer=tiny_lion",
            "optimizer is an ingredient: wanted its settings, found 'tiny_lion'. Another one is "
            "chosen with optimizer.type=tiny_lion.",
        ),
        ("optimizer.betas=[1]", "optimizer.betas: wanted tuple[float, float], found [1]."),
        (
            "optimizer.type=@os.system",
            "optimizer.type: '@os.system' is no component; wanted a class with a Config.",
        ),
        (
            "module=@no_such_package.x",
            "module: '@no_such_package.x' cannot be imported: ModuleNotFoundError: No module named "
            "'no_such_package'.",
        ),
        (
            "module=@string.digits",
            "module: '@string.digits' is a str; wanted a function, a class, a component or a "
            "Config.",
        ),
        ("trainer.selection.metric=", "trainer.selection: the metric needs a name."),
        (
            "trainer.selection=best",
            "trainer.selection: wanted settings, found 'best'. Another type is chosen with "
            "trainer.selection.type=best.",
        ),
        (
            "trainer.selection.type=best",
            "trainer.selection.type: no Selection.Config is named 'best'. Known: none.",
        ),
        (
            "train_data.tokenizer=x",
            "train_data.tokenizer is the ingredient 'tokenizer', no setting of train_data; its "
            "settings are written tokenizer.name=value.",
        ),
        ("env.device=cpu", "'env' is provided by the run and has no settings."),
        (
            "train_data.type=x",
            f"train_data.type: Unknown data 'x'. Known: {', '.join(registries.datasets.names())}.",
        ),
    ],
)
def test_a_word_with_one_mistake(kitchen, word, message):
    assert problems(kitchen, word) == [f"overrides: {word}: {message}"]


def test_an_import_path_in_a_file_is_refused(kitchen):
    assert problems(kitchen, yaml=["module: '@my_package.deep'\n"]) == [
        "0.yaml:1:9: module: the import path '@my_package.deep' is not read from a file. Give it "
        "in the overrides, or write it in the recipe: module=@my_package.deep"
    ]
