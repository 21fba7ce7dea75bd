"""The files that a run's key takes in: of what a recipe uses, wherever that is defined."""

import linecache
import subprocess
import sys
import textwrap

import pytest

from textmill.config.sources.own_files import own_files
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
USED = ("machinery.py", "tools/sums.py", "tools/bounds.py", "tools/__init__.py", "lazy.py")
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


def test_what_a_part_uses_is_in_the_key(machines):
    key = machines.key()
    assert machines.key("Other") != key
    assert machines.key("Base") != key
    keys = [key]
    for file in USED:
        path = machines.folder / file
        text = path.read_text()
        path.write_text(f"{text}# so\n")
        keys.append(machines.key())
        path.write_text(text)
    assert len(set(keys)) == len(keys)
    (machines.folder / "beside.py").write_text("X = 2\n")
    assert machines.key() == key


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


def test_of_a_notebook_the_cell_that_defines_a_part_counts_whole(notebook):
    (found,) = own_files([notebook["Part"]])
    assert (found.name, found.path) == ("a_notebook.Part", None)
    assert b"# Of a cell." in found.data
    assert b"RATE" not in found.data


def test_a_component_of_a_notebook_is_known_by_its_methods_and_its_bases(notebook):
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
        """,
        notebook,
    )
    cell("class Deep(Field):\n    def work(self, x):\n        return 2 * helper(x)\n", notebook)
    field = own_files([notebook["Field"].Config, notebook["Field"]])
    assert all(b"return helper(x)" in file.data for file in field)
    deep = {file.name: file.data for file in own_files([notebook["Deep"]])}
    assert sorted(deep) == ["a_notebook.Deep", "a_notebook.Field"]
    assert b"2 * helper(x)" in deep["a_notebook.Deep"]


def test_code_without_source_is_refused():
    space = {"__name__": "typed_at_a_prompt"}
    exec("class Part:\n    def work(self): return 1\n", space)
    with pytest.raises(UserError) as caught:
        own_files([space["Part"]])
    assert str(caught.value).startswith("the source of typed_at_a_prompt.Part cannot be read, so a")
