"""YAML with places; what it refuses."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from textmill.config.values.raw_values import Scalar
from textmill.config.values.yaml_files import parse_word, read_yaml, yaml_nodes
from textmill.errors import Place, UserError


def test_places_are_file_line_and_column(tmp_path):
    path = tmp_path / "a.yaml"
    path.write_text("a:\n  b: 1\n  c: [x, 'y']\n")
    node = read_yaml(path)
    inner = node.entries["a"]
    assert inner.entries["b"] == Scalar("1", Place(str(path), 2, 6))
    assert inner.place_of("c") == Place(str(path), 3, 3)
    assert inner.entries["c"].items[1] == Scalar("y", Place(str(path), 3, 10), quoted=True)


def test_an_empty_file_is_an_empty_mapping(tmp_path):
    path = tmp_path / "a.yaml"
    for text in ("", "# only a comment\n", "---\n"):
        path.write_text(text)
        assert dict(read_yaml(path).entries) == {}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a: &x 1\nb: *x\n", "f:1:4: '&x': anchors and aliases are not read here."),
        ("b: *x\n", "f:1:4: '*x': anchors and aliases are not read here."),
        (
            "a: !!python/object:os.system {}\n",
            "f:1:4: the tag 'tag:yaml.org,2002:python/object:os.system' is not read here; "
            "write the plain value.",
        ),
        ("a: 1\nb: 2\na: 3\n", "f:3:1: 'a' is written twice, first at f:1:1."),
        ("a: 1\n---\nb: 2\n", "f:2:1: a second document; a file holds one."),
        ("[a]: 1\n", "f:1:1: a key must be a word."),
        ("a: [1\n", "f:2:1: not YAML: did not find expected ',' or ']'."),
        ("[" * 60, "f:1:51: nested more than 50 levels deep."),
    ],
)
def test_what_a_file_may_not_hold(text, message):
    with pytest.raises(UserError) as caught:
        yaml_nodes(text, source="f")
    assert str(caught.value) == message


@pytest.mark.parametrize("word", ["a", "=1", "a..b=1", ".=x"])
def test_a_word_is_a_name_and_a_value(word):
    with pytest.raises(UserError) as caught:
        parse_word(word)
    assert str(caught.value) == f"overrides: {word}: wanted name.setting=value."


@given(st.text(max_size=20))
def test_any_text_is_a_word_or_an_error_of_ours(text):
    try:
        parse_word(f"a.b={text}")
    except UserError as error:
        assert str(error).startswith("overrides: ")  # noqa: PT017 - most texts are fine


def test_a_setting_that_cannot_be_written_to_a_file_is_refused():
    with pytest.raises(UserError) as caught:
        parse_word("train_data.path=d\udcff.tsv")
    assert str(caught.value).startswith("overrides: train_data.path=d\udcff.tsv: not UTF-8 text,")


def test_a_missing_file_is_told_where_its_folder_may_not_be_listed(tmp_path, monkeypatch):
    def refused(path):
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr("pathlib.Path.iterdir", refused)
    with pytest.raises(UserError, match=r"cannot be read: No such file or directory\.$"):
        read_yaml(tmp_path / "config.yaml")
