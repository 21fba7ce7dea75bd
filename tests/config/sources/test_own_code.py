"""The code that a run's key takes in: of what a recipe reaches, wherever that is defined."""

import linecache
import subprocess
import sys
import textwrap

import pytest

from textmill.config.planning.key import reached_code, run_key
from textmill.config.planning.plan import make_plan
from textmill.config.recipe import Recipe
from textmill.config.sources.own_code import own_code
from textmill.config.sources.script import table_of_recipe
from textmill.errors import UserError

MODULES = {
    "machinery.py": '''
from tools.sums import add
import tools.bounds
from textmill.config import Component, Config

UNUSED = 1
SCALE = 2

def helper(x):
    return add(x, SCALE)

class Base(Component):
    class Config(Config):
        """A base."""
    def __init__(self, config): self.config = config

class Own(Base):
    class Config(Base.Config):
        size: int = 1
    def work(self, x):
        from lazy import late
        return helper(x) + late()

class Other(Base):
    class Config(Base.Config):
        size: int = 1

class Whole(Component):
    class Config(Config):
        part: Base.Config = Base.Config()
    def __init__(self, config): self.config = config

def function(part: int = 1): return helper(part)
''',
    "tools/__init__.py": "",
    "tools/sums.py": "from tools.bounds import TOP\ndef add(a, b): return min(a + b, TOP)\n",
    "tools/bounds.py": "TOP = 9\n",
    "lazy.py": "def late(): return 1\n",
    "beside.py": "X = 1\n",
}
REACHED = {
    "machinery.py": [("return add(x, SCALE)", "return add(x, 3)"), ("SCALE = 2", "SCALE = 3"),
                     ("self.config = config\n\nclass Own", "self.c = config\n\nclass Own"),
                     ("helper(x) + late()", "late()")],
    "tools/sums.py": [("min(a + b, TOP)", "min(a - b, TOP)")],
    "tools/bounds.py": [("TOP = 9", "TOP = 8")],
    "lazy.py": [("return 1", "return 2")],
}  # fmt: skip
NOT_REACHED = {
    "machinery.py": [
        ("UNUSED = 1", "UNUSED = 2"),
        ("return helper(part)", "return  helper(part)  # so"),
    ],
    "beside.py": [("X = 1", "X = 2")],
}
CODE = """
import machinery
from textmill.config.planning.key import run_key
from textmill.config.planning.plan import make_plan
from textmill.config.recipe import Recipe
from textmill.config.sources.script import table_of_recipe
whole = machinery.Whole.Config(part=machinery.{part}.Config())
table = table_of_recipe(Recipe(whole=whole, function=machinery.function))
plan = make_plan(table, defaults=table_of_recipe(Recipe()), targets=["whole"])
print(run_key(plan))
"""


class Machines:
    """Modules in a folder, and the key of a recipe of their parts in a process of its own."""

    def __init__(self, folder):
        self.folder = folder
        for name, text in MODULES.items():
            (folder / name).parent.mkdir(exist_ok=True)
            (folder / name).write_text(text)

    def key(self, part: str = "Own") -> str:
        words = [sys.executable, "-B", "-c", CODE.format(part=part)]
        done = subprocess.run(words, cwd=self.folder, capture_output=True, text=True, check=True)
        return done.stdout


@pytest.fixture
def machines(tmp_path):
    return Machines(tmp_path)


def edits(of):
    return [(file, *edit) for file, found in of.items() for edit in found]


def test_what_a_part_reaches_is_in_the_key(machines):
    key = machines.key()
    assert machines.key("Other") != key
    assert machines.key("Base") != key
    keys = [key]
    for file, old, new in edits(REACHED):
        path = machines.folder / file
        text = path.read_text()
        assert old in text
        path.write_text(text.replace(old, new))
        keys.append(machines.key())
        path.write_text(text)
    assert len(set(keys)) == len(keys)
    for file, old, new in edits(NOT_REACHED):
        path = machines.folder / file
        text = path.read_text()
        assert old in text
        path.write_text(text.replace(old, new))
    assert machines.key() == key


def test_a_swapped_part_is_in_the_key_with_its_code(kitchen):
    script = "def box(size: int = 1): return size\n"
    keys = []
    for number in (1, 2):
        kitchen.file(f"def other(size: int = 1): return size + {number}\n", f"swap{number}.py")
        kitchen.file(f"from swap{number} import other\n", "swapped.py")
        sys.modules.pop("swapped", None)
        plan = kitchen.plan("box=@swapped.other", script=script, targets=["box"])
        keys.append(reached_code(plan))
    assert keys[0] != keys[1]
    assert "swap1.other" in keys[0]


def test_two_parts_that_change_places_are_another_run(kitchen):
    script = """
from textmill.config import Component, Config

class Part(Component):
    class Config(Config): ...
    def __init__(self, config): self.config = config

class One(Part): ...
class Two(Part): ...

class Whole(Component):
    class Config(Config):
        first: Part.Config = Part.Config()
        last: Part.Config = Part.Config()
    def __init__(self, config): self.config = config

whole = Whole.Config(first=One.Config(), last=Two.Config())
"""
    key = run_key(kitchen.plan(script=script, targets=["whole"]))
    other = script.replace("first=One.Config(), last=Two", "first=Two.Config(), last=One")
    assert run_key(kitchen.plan(script=other, targets=["whole"])) != key


def cell(text: str, space: dict) -> None:
    """Runs a cell as a notebook does: its text can be read by the name of the cell."""
    name = f"<cell {len(space)}>"
    text = textwrap.dedent(text)
    linecache.cache[name] = (len(text), None, text.splitlines(keepends=True), name)
    exec(compile(text, name, "exec"), space)


@pytest.fixture
def notebook(monkeypatch):
    space = {"__name__": "a_notebook"}
    cell("RATE = 3\n", space)
    cell(
        """
        def helper(x):
            return RATE * x
        """,
        space,
    )
    cell(
        """
        class Part:
            # Of a cell.
            def work(self, x):
                return helper(x)
        """,
        space,
    )
    return space


def test_of_a_notebook_the_cells_that_are_reached_count(notebook):
    found = own_code([notebook["Part"]])
    assert sorted(found) == ["a_notebook.Part", "a_notebook.RATE", "a_notebook.helper"]
    assert found["a_notebook.RATE"] == "3"
    assert "# Of a cell." not in found["a_notebook.Part"]
    notebook["RATE"] = 4
    assert own_code([notebook["Part"]])["a_notebook.RATE"] == "4"


def test_a_component_of_a_notebook_is_known_by_its_methods(notebook):
    cell(
        """
        import functools
        from textmill.config import Component, Config

        class Field(Component):
            class Config(Config):
                size: int = 1
            @functools.lru_cache
            def work(self, x):
                return helper(x)

        class Deep(Field):
            def work(self, x):
                return 2 * helper(x)
        """,
        notebook,
    )
    for part in (notebook["Field"], notebook["Deep"]):
        found = own_code([part.Config, part])
        assert found[f"a_notebook.{part.__name__}"].startswith(f"class {part.__name__}(")
        assert "return RATE * x" in found["a_notebook.helper"]


def test_constants_of_other_cells_count_by_what_they_hold(notebook):
    cell("TABLE = {'sizes': [1, 2], 'kinds': (object(), Part), 'rates': {0.5}}\n", notebook)
    cell(
        """
        class Whole:
            def work(self):
                return TABLE
        """,
        notebook,
    )

    def table():
        return own_code([notebook["Whole"]])["a_notebook.TABLE"]

    assert table() == "{'sizes': [1, 2], 'kinds': [object, Part], 'rates': {0.5}}"
    assert "a_notebook.Part" in own_code([notebook["Whole"]])
    notebook["TABLE"]["sizes"].append(3)
    assert "[1, 2, 3]" in table()


def test_code_without_source_is_refused():
    space = {"__name__": "typed_at_a_prompt"}
    exec("class Part:\n    def work(self): return 1\n", space)
    with pytest.raises(UserError) as caught:
        own_code([space["Part"]])
    assert str(caught.value) == (
        "the source of typed_at_a_prompt.Part cannot be read, so a run with it could not be told "
        "from a run with another. Write it into a file and import it."
    )


def test_what_is_not_a_persons_own_adds_nothing():
    import json
    from math import sqrt

    import torch

    from textmill.config.component import Component

    assert own_code([json.JSONDecoder, sqrt, torch.nn.Linear, torch.relu, Component, int]) == {}


def test_a_recipe_of_library_parts_has_no_code():
    from textmill.training.optimizers import AdamW

    table = table_of_recipe(Recipe(optimizer=AdamW.Config(lr=1.0)))
    plan = make_plan(table, defaults=table_of_recipe(Recipe()), targets=["optimizer"], draft=True)
    assert reached_code(plan) == {}
