"""The key of a run: what changes it, and what does not."""

from tests.config.conftest import SCRIPT
from textmill.config.planning.key import key_settings, plan_files, run_key
from textmill.config.sources.script import load_script


def test_the_key_is_the_settings_and_the_code(kitchen):
    key = run_key(kitchen.plan())
    assert len(key) == 12
    assert run_key(kitchen.plan("optimizer.lr=1e-3")) == key
    assert run_key(kitchen.plan("optimizer.lr=2e-3")) != key
    assert run_key(kitchen.plan("optimizer.type=tiny_lion")) != key
    assert run_key(kitchen.plan("trainer.steps=99")) == key


def test_the_script_is_in_it_byte_for_byte(kitchen):
    """So is what it does to a class after its definition, and where its name is not."""
    key = run_key(kitchen.plan())
    path = kitchen.file(SCRIPT, "other.py")
    assert run_key(kitchen.plan(script=load_script(path))) == key
    assert run_key(kitchen.plan(script=SCRIPT + "# so\n")) != key
    late = SCRIPT + "\ndef other(self): return 3\n"
    patched = late + "for kind in (Net,): setattr(kind, 'forward', other)\n"
    keys = {run_key(kitchen.plan(script=text)) for text in (SCRIPT, late, patched)}
    assert len(keys) == 3


def test_local_modules_are_in_it(kitchen):
    script = "from neighbour import size\ndef box(): return size()\n"
    kitchen.file("def size(): return 1\n", "neighbour.py")
    plan = kitchen.plan(script=script, targets=["box"])
    assert [path.name for path in plan.table.files] == ["recipe.py", "neighbour.py"]
    assert [file.name for file in plan_files(plan)] == ["", "neighbour"]
    key = run_key(plan)
    assert run_key(kitchen.plan(script=script, targets=["box"])) == key
    kitchen.file("def size(): return 22\n", "neighbour.py")
    assert run_key(kitchen.plan(script=script, targets=["box"])) != key


CONFIGS = """
from textmill.config import Component, Config, like, setting

class Part(Component):
    class Config(Config):
        size: int = 1
    def __init__(self, config): self.size = config.size

class Loop(Component):
    class Config(Config):
        steps: int = setting(10, in_key=False)
        rate: float = 0.1
        part: Part.Config = Part.Config()
    def __init__(self, config): self.config = config

loop = Loop.Config(steps=20)
other = like("loop", steps=30)
"""


def test_a_config_whose_class_comes_from_a_module_is_named_by_it(kitchen):
    kitchen.file(CONFIGS, "machines.py")
    script = "from machines import {0}\nloop = {0}.Config()\n"
    found = [
        key_settings(kitchen.plan(script=script.format(name), targets=["loop"]))["loop"]["type"]
        for name in ("Loop", "Part")
    ]
    assert found == ["@machines.Loop", "@machines.Part"]


REBOUND = """
from textmill.config import Component, Config

class Part(Component):
    class Config(Config): ...
    def __init__(self, config, *, a: str, b: str): self.ab = a, b

def one() -> str: return "one"
def two() -> str: return "two"
part = Part.Config().given(a="one", b="two")
"""


def test_what_an_ingredient_is_rebound_to_is_in_it(kitchen):
    key = run_key(kitchen.plan(script=REBOUND, targets=["part"]))
    other = REBOUND.replace('given(a="one", b="two")', 'given(a="two", b="one")')
    assert run_key(kitchen.plan(script=other, targets=["part"])) != key


OBSERVED = """
class Sink:
    def __init__(self, path: str = "a") -> None: ...
def sink(path: str = "a") -> Sink: return Sink(path)
def train_data(size: int = 3) -> list: return [0] * size
def reporters(sink: Sink, console: bool = True) -> list: return [sink]
def callbacks(quiet: bool = False) -> list: return []
def work(train_data: list, reporters: list, callbacks: list) -> int: return len(train_data)
"""


def test_reporters_callbacks_and_what_only_they_need_are_not_in_it(kitchen):
    def plan(*words, script=OBSERVED):
        return kitchen.plan(*words, script=script, targets=["work"])

    key = run_key(plan())
    assert key_settings(plan()) == {"train_data": {"size": 3}}
    words = ("reporters.console=no", "callbacks.quiet=yes", "sink.path=b")
    assert run_key(plan(*words)) == key
    assert plan(*words).settings["reporters"] == {"console": False}
    assert run_key(plan("train_data.size=4")) != key
