"""Parts of a person's own in settings: how a file names them, and what it may have found."""

import math
import sys
from pathlib import Path

import pytest

from textmill.config.code_names import CodeNames, UnknownCodeError, code_name, is_component
from textmill.config.planning.plan import make_plan
from textmill.config.values.yaml_files import dump_yaml, yaml_nodes
from textmill.errors import Place, PlanError

PARTS = '''
from collections.abc import Callable
from typing import Any
from textmill.config import Component, Config, setting

class Part(Component):
    class Config(Config):
        """A base."""
    def __init__(self, config): self.config = config

class Long(Part):
    class Config(Part.Config):
        size: int = 1
        inner: Part.Config | None = None

class Outer:
    class Deep(Part):
        class Config(Part.Config):
            """Nested in a class."""

def twice(x: float) -> float:
    return 2 * x

def half(x: float) -> float:
    return x / 2

class Whole(Component):
    class Config(Config):
        part: Part.Config = Part.Config()
        several: tuple[Part.Config, ...] = ()
        named: dict[str, Part.Config] = setting(factory=dict)
        anything: Any = None
        function: Callable[[float], float] | None = None
        kind: type[Part] = Part
    def __init__(self, config): self.config = config
'''


def long(**given):
    return {"type": "@{}Long", "size": 1, "inner": None, **given}


DEEP = {"type": "@{}Outer.Deep"}
VALUES = {
    "part=Long.Config(size=3)": {"part": long(size=3)},
    "part=Long.Config(inner=Long.Config(size=2))": {"part": long(inner=long(size=2))},
    "part=Outer.Deep.Config()": {"part": DEEP},
    "several=(Part.Config(), Outer.Deep.Config())": {"several": [{"type": "@{}Part"}, DEEP]},
    "named={'a': Long.Config(size=4)}": {"named": {"a": long(size=4)}},
    "anything=Long.Config()": {"anything": long()},
    "anything=[{'b': Outer.Deep.Config()}]": {"anything": [{"b": DEEP}]},
    "function=twice": {"function": "@{}twice"},
    "function=math.sqrt": {"function": "@math.sqrt"},
    "kind=Long": {"kind": "@{}Long"},
}


def named(data, prefix: str):
    if isinstance(data, dict):
        return {key: named(item, prefix) for key, item in data.items()}
    if isinstance(data, list):
        return [named(item, prefix) for item in data]
    return data.format(prefix) if isinstance(data, str) else data


@pytest.mark.parametrize("home", ["script", "module"])
@pytest.mark.parametrize("value", VALUES)
def test_every_part_at_any_depth_is_written_with_its_type_and_read_back(kitchen, value, home):
    script = f"import math\n{PARTS}\nwhole = Whole.Config({value})\n"
    prefix = ""
    if home == "module":
        kitchen.file(PARTS, "machinery.py")
        script = f"import math\nfrom machinery import *\nwhole = Whole.Config({value})\n"
        prefix = "machinery."
    plan = kitchen.plan(script=script, targets=["whole"])
    wanted = named(VALUES[value], prefix)
    assert plan.settings["whole"]["type"] == f"@{prefix}Whole"
    assert {name: plan.settings["whole"][name] for name in wanted} == wanted
    # Over another recipe's values, as where a run is gone on with whose script was edited.
    bare = script.replace(f"Whole.Config({value})", "Whole.Config()")
    again = kitchen.plan(script=bare, yaml=[dump_yaml(plan.settings)], targets=["whole"])
    assert again.settings == plan.settings
    made = again.nodes["whole"].config
    assert [type(item).__qualname__ for item in vars(made).values()] == [
        type(item).__qualname__ for item in vars(plan.nodes["whole"].config).values()
    ]


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("function=lambda x: x", "whole.function: '@<lambda>' names nothing in the recipe's"),
        ("several=(local(),)", "whole.several[0].type: '@local.<locals>.Inner' cannot be"),
        ("anything=object()", "whole.anything: '<object object at"),
        ("anything=twice", "whole.anything: wanted function, found '@twice'."),
    ],
)
def test_what_could_not_be_read_back_is_refused_by_its_name(kitchen, value, message):
    more = "def local():\n    class Inner(Part): ...\n    return Inner.Config()\n"
    script = f"{PARTS}\n{more}\nwhole = Whole.Config({value})\n"
    with pytest.raises(PlanError) as caught:
        kitchen.plan(script=script, targets=["whole"])
    (problem,) = caught.value.problems
    assert message in problem.message
    assert problem.message.endswith(
        " A run with it could not be loaded: define what is your own at the top of a module, and "
        "annotate the setting with what it takes."
    )


def closed_plan(kitchen, text: str):
    """A plan of what a run's file says, of which nothing is imported."""
    kitchen.file(PARTS, "machinery.py")
    table = kitchen.table("from machinery import *\nwhole = Whole.Config()\n")
    return make_plan(
        table, defaults=kitchen.defaults, layers=[yaml_nodes(text, source="run/config.yaml")],
        targets=["whole"], closed=["run/config.yaml"], draft=True,
    )  # fmt: skip


def test_a_closed_file_names_components_that_are_imported_already(kitchen):
    plan = closed_plan(kitchen, "whole: {part: {type: '@machinery.Long', size: 4}}")
    assert not plan.problems
    assert plan.settings["whole"]["part"]["size"] == 4


@pytest.mark.parametrize(
    "text",
    [
        "whole: {part: {type: '@elsewhere.Long'}}", "whole: {part: {type: '@os.system'}}",
        "whole: {part: {type: '@machinery.twice'}}", "whole: {function: '@os.system'}",
        "whole: {function: '@machinery.half'}", "whole: {kind: '@machinery.Long'}",
        "whole: {anything: {type: '@elsewhere.Long'}}", "whole: {type: '@elsewhere.Long'}",
        "whole: {part: {type: unknown}}",
    ],
)  # fmt: skip
def test_a_closed_file_has_nothing_imported_and_names_no_function(kitchen, text):
    kitchen.file("raise RuntimeError('executed')\n", "elsewhere.py")
    plan = closed_plan(kitchen, text)
    assert plan.unknown
    assert plan.problems
    assert "elsewhere" not in sys.modules


def test_names_of_classes_and_functions():
    assert code_name(Path) == "@pathlib.Path"
    assert code_name(math.sqrt) == "@math.sqrt"
    assert CodeNames().find("@pathlib.Path", None) is Path
    import torch

    assert CodeNames().find(code_name(torch.relu), None) is torch.relu
    assert not is_component(Path)


@pytest.mark.parametrize(
    ("word", "message"),
    [
        ("@nope.X", "'@nope.X' cannot be imported: ModuleNotFoundError: No module named 'nope'."),
        ("@math.nope", "'@math.nope' cannot be imported: math has no 'nope'."),
        ("@nope", "'@nope' names no module; wanted @module.name."),
        ("@__main__.Nope", "'@__main__.Nope' cannot be imported: it was defined in the program"),
    ],
)
def test_a_name_that_leads_nowhere(word, message):
    with pytest.raises(UnknownCodeError) as caught:
        CodeNames().find(word, Place("x"))
    assert str(caught.value).startswith(message)
