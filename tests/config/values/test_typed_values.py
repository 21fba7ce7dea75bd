"""Typed values: what words mean under a type, and plain data that reads back equal."""

import dataclasses
import enum
from datetime import timedelta
from pathlib import Path
from typing import Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from textmill.config.merge import Settings
from textmill.config.values.annotations import type_name
from textmill.config.values.typed_values import format_duration, parse_duration, plain
from textmill.config.values.yaml_files import dump_yaml, parse_word, yaml_nodes


class Color(enum.Enum):
    RED = 1
    BLUE = "b"


@dataclasses.dataclass(frozen=True)
class Every:
    """A value with a one-word form."""

    count: int
    unit: str

    @classmethod
    def parse(cls, text: str) -> "Every":
        number, _, unit = text.partition(" ")
        if not number.isdigit():
            raise ValueError(f"wanted an interval like '10 steps', found {text!r}.")
        return cls(int(number), unit)

    def __str__(self) -> str:
        return f"{self.count} {self.unit}"


@dataclasses.dataclass(frozen=True)
class Inner:
    width: int = 3
    names: tuple[str, ...] = ()


def read(text: str, kind, name="a.b"):
    values = Settings()
    found = values.read(parse_word(f"a.b={text}").node, kind, name)
    return [problem.message for problem in values.problems] or found


@pytest.mark.parametrize(
    ("text", "kind", "wanted"),
    [
        ("1e-3", float, 1e-3),
        ("3", float, 3.0),
        ("12", int, 12),
        ("12", str, "12"),
        ("no", str, "no"),
        ("null", str, "null"),
        ("no", bool, False),
        ("false", bool, False),
        ("True", bool, True),
        ("a/b.tsv", Path, Path("a/b.tsv")),
        ("'null'", Path, Path("null")),
        ("./null", Path, Path("null")),
        ("null", Path | None, None),
        ("null", int | None, None),
        ("5", int | None, 5),
        ("'null'", str | None, "null"),
        ("", str | None, ""),
        ("12", int | str, 12),
        ("'12'", int | str, "12"),
        ("x", int | str, "x"),
        ("b", Literal["a", "b"], "b"),
        ("2", Literal[1, 2], 2),
        ("RED", Color, Color.RED),
        ("b", Color, Color.BLUE),
        ("[1, 2]", list[int], [1, 2]),
        ("[1, 2]", tuple[int, ...], (1, 2)),
        ("[1, x]", tuple[int, str], (1, "x")),
        ("[1, 2]", str, "[1, 2]"),
        ("{a: 1e-3}", dict[str, float], {"a": 1e-3}),
        ("{1: x}", dict[int, str], {1: "x"}),
        ("{a: [1, no]}", dict, {"a": [1, "no"]}),
        ("20m", timedelta, timedelta(minutes=20)),
        ("1h30m", timedelta, timedelta(minutes=90)),
        ("2d", timedelta, timedelta(days=2)),
        ("15 min", timedelta, timedelta(minutes=15)),
        ("bf16: #", str, "bf16: #"),
        ("float32", "torch.dtype", "float32"),
        ("cuda:0", "torch.device", "cuda:0"),
        ("10 steps", Every, Every(10, "steps")),
        ("{width: 5}", Inner, Inner(5)),
    ],
)
def test_the_type_decides_what_a_word_means(text, kind, wanted):
    found = read(text, kind)
    assert found == wanted
    assert type(found) is type(wanted)


@pytest.mark.parametrize(
    ("text", "kind", "message"),
    [
        ("x", int, "a.b: wanted int, found 'x'."),
        ("1.5", int, "a.b: wanted int, found '1.5'."),
        ("maybe", bool, "a.b: wanted bool, found 'maybe'."),
        ("c", Literal["a", "b"], "a.b: wanted one of 'a', 'b', found 'c'."),
        ("GREEN", Color, "a.b: wanted one of RED, BLUE, found 'GREEN'."),
        ("3", list[int], "a.b: wanted list[int], found '3'; as a list it is [3]."),
        ("x", list[int], "a.b: wanted list[int], found 'x'."),
        ("encoder.*", tuple[str, ...], "a.b: wanted tuple[str, ...], found 'encoder.*'; as a list"),
        ("a, b", tuple[str, ...] | None, "a.b: wanted tuple[str, ...], found 'a, b'; as a list"),
        ("0.9,0.98", tuple[float, float], "a.b: wanted tuple[float, float], found '0.9,0.98'; as"),
        ("0.9", tuple[float, float], "a.b: wanted tuple[float, float], found '0.9'."),
        ("a,", tuple[str, ...], "a.b: wanted tuple[str, ...], found 'a,'."),
        ("[1, x]", list[int], "a.b[1]: wanted int, found 'x'."),
        ("[1]", tuple[int, int], "a.b: wanted tuple[int, int], found [1]."),
        ("{a: x}", dict[str, int], "a.b.a: wanted int, found 'x'."),
        ("soon", timedelta, "a.b: wanted a duration like '20m', '1h30m' or '2d', found 'soon'."),
        ("gpu", "torch.device", "a.b: wanted a device like 'cpu' or 'cuda:0', found 'gpu'."),
        ("often", Every, "a.b: wanted an interval like '10 steps', found 'often'."),
        ("x", int | float, "a.b: wanted int | float, found 'x'."),
        ("", Path, "a.b: wanted pathlib.Path, found ''."),
        ("null", Path, "a.b: wanted pathlib.Path, found null. For no file set the whole"),
        ("{width: x}", Inner, "a.b.width: wanted int, found 'x'."),
        ("{widht: 1}", Inner, "a.b has no setting 'widht'. Did you mean 'width'? It has: width,"),
    ],
)
def test_a_wrong_value_says_wanted_and_found(text, kind, message):
    (found,) = read(text, kind)
    assert found.startswith(message)


def test_every_wrong_item_of_a_list_is_reported():
    assert read("[x, 1, y]", list[int]) == [
        "a.b[0]: wanted int, found 'x'.",
        "a.b[2]: wanted int, found 'y'.",
    ]


TEXT = st.text(st.characters(codec="utf-8", exclude_categories=("Cs",)), max_size=12)
TYPED = st.one_of(
    st.tuples(st.just(int), st.integers()),
    st.tuples(st.just(float), st.floats(allow_nan=False)),
    st.tuples(st.just(bool), st.booleans()),
    st.tuples(st.just(str), TEXT),
    st.tuples(st.just(str | None), TEXT | st.none()),
    st.tuples(st.just(int | str), TEXT | st.integers()),
    st.tuples(st.just(Path), TEXT.filter(lambda t: t and "\0" not in t).map(Path)),
    st.tuples(st.just(Color), st.sampled_from(Color)),
    st.tuples(st.just(Literal["a", "null", 1, True]), st.sampled_from(["a", "null"])),
    st.tuples(st.just(timedelta), st.timedeltas()),
    st.tuples(st.just(list[str]), st.lists(TEXT, max_size=3)),
    st.tuples(st.just(tuple[int, ...]), st.lists(st.integers(), max_size=3).map(tuple)),
    st.tuples(
        st.just(dict[str, float]), st.dictionaries(TEXT, st.floats(allow_nan=False), max_size=3)
    ),
    st.tuples(
        st.just(dict), st.dictionaries(TEXT, st.none() | st.booleans() | st.integers() | TEXT)
    ),
    st.tuples(
        st.just(Inner), st.builds(Inner, st.integers(), st.lists(TEXT, max_size=2).map(tuple))
    ),
    st.tuples(
        st.just(Every), st.builds(Every, st.integers(0, 9), st.sampled_from(["steps", "min"]))
    ),
)


@given(TYPED)
def test_plain_data_through_yaml_reads_back_equal(pair):
    kind, value = pair
    node = yaml_nodes(dump_yaml({"x": plain(value)}), source="x.yaml").entries["x"]
    values = Settings()
    found = values.read(node, kind, "x")
    assert not values.problems
    assert found == value
    assert type(found) is type(value)


@given(st.timedeltas())
def test_durations_read_back(value):
    assert parse_duration(format_duration(value)) == value


def test_type_names():
    assert type_name(Path) == "pathlib.Path"
    assert type_name(tuple[int, ...]) == "tuple[int, ...]"
    assert type_name(Literal["a", 2]) == "'a' | 2"
    assert type_name(timedelta) == "datetime.timedelta"
    assert type_name("torch.dtype") == "torch.dtype"


COLUMNS = tuple[str, ...] | dict[str, int | str]


@pytest.mark.parametrize("text", ["{label:stars,text:review}", "{label: stars, text: review}"])
def test_braces_need_no_spaces_on_a_command_line(text):
    assert read(text, COLUMNS) == {"label": "stars", "text": "review"}
    assert read('{"a:b": ""}', COLUMNS) == {"a:b": ""}


def test_a_mapping_without_its_braces_says_what_a_shell_does():
    (problem,) = read("label:stars", COLUMNS, "columns")
    assert problem.endswith(
        "columns: wanted a mapping, found 'label:stars'. A shell takes braces away where the word "
        "is not quoted, as 'columns={a: b}'."
    )
