"""Every problem a plan reports: where it is, and what is wrong there."""

import pytest

from textmill.errors import PlanError

LIKE = "from textmill.config.recipe import like\n"


def problems(kitchen, *words, **options):
    with pytest.raises(PlanError) as caught:
        kitchen.plan(*words, **options)
    return [str(problem) for problem in caught.value.problems]


def test_all_problems_are_reported_at_once_each_with_its_place(kitchen):
    found = problems(
        kitchen, "trainer.steps=many", "optimizer.lrr=1", "shuffle=no", "vocabsize=3",
        "modle.dim=2", "oops", yaml=["train_data:\n  shuffle: 3\nmodels:\n  dim: 3\n"],
    )  # fmt: skip
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


@pytest.mark.parametrize(
    ("script", "message"),
    [
        ("def a(b): ...\ndef b(c): ...\ndef c(a): ...\n", "recipe.py:1:1: ingredients need each"),
        ("def b() -> str: ...\ndef a(b: list[int] | None): ...\n", "recipe.py:2:1: the parameter"),
        (
            "class B: ...\nclass C: ...\ndef b() -> B: ...\ndef a(b: C): ...\n",
            "recipe.py:4:1: a wants 'b' to be C, but b (recipe.py:3:1) is B.",
        ),
        ("def a(b): ...\n", "recipe.py:1:1: the parameter 'b' of a needs an annotation to be a"),
        ("def a(b: int): ...\n", "recipe.py:1:1: a.b: wanted int, and no value is given. Set"),
        ("def tokeniser(): ...\ndef a(tokenizer): ...\n", "recipe.py:2:1: no 'tokenizer' is"),
        (f"{LIKE}def train(): ...\na = like('trian')\n", "recipe.py:3:1: a is like 'trian', which"),
        (f"{LIKE}a = like('b')\nb = like('a')\n", "recipe.py:3:1: b is like 'a', which follows"),
        (f"{LIKE}def b(n: int = 1): ...\na = like('b', n='x')\n", "recipe.py:3:1: a.n: wanted int"),
        (
            f"{LIKE}def b(n: int = 1): ...\na = like('b', m=2)\n",
            "recipe.py:3:1: a has no setting 'm'",
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
        ("def model(): ...\ndef a(module): ...\n", "defaults.py:64:1: module is built from model,"),
    ],
)
def test_a_script_with_one_mistake(kitchen, script, message):
    assert problems(kitchen, script=script, targets=["a"])[0].startswith(message)


@pytest.mark.parametrize(
    ("word", "message"),
    [
        ("optimizer.type=tiny_lino", "optimizer.type: Unknown optimizer 'tiny_lino'. Did you mean"),
        ("optimizer=tiny_lion", "optimizer is an ingredient: wanted its settings"),
        ("optimizer.betas=[1]", "optimizer.betas: wanted tuple[float, float], found [1]."),
        ("optimizer.type=@os.system", "optimizer.type: '@os.system' is no component; wanted a"),
        ("module=@no_such_package.x", "module: '@no_such_package.x' cannot be imported:"),
        ("module=@string.digits", "module: '@string.digits' is a str; wanted a function, a class,"),
        ("trainer.selection.metric=", "trainer.selection: the metric needs a name."),
        ("trainer.selection=best", "trainer.selection: wanted settings, found 'best'. Another"),
        ("trainer.selection.type=best", "trainer.selection.type: no Selection.Config is named"),
        ("train_data.tokenizer=x", "train_data.tokenizer is the ingredient 'tokenizer', no"),
        ("env.device=cpu", "'env' is provided by the run and has no settings."),
        ("train_data.type=x", "train_data.type: Unknown data 'x'. Known:"),
    ],
)
def test_a_word_with_one_mistake(kitchen, word, message):
    (found,) = problems(kitchen, word)
    assert found.startswith(f"overrides: {word}: {message}")


def test_an_import_path_in_a_file_is_refused(kitchen):
    assert problems(kitchen, yaml=["module: '@my_package.deep'\n"]) == [
        "0.yaml:1:9: module: the import path '@my_package.deep' is not read from a file. Give it "
        "in the overrides, or write it in the recipe: module=@my_package.deep"
    ]
