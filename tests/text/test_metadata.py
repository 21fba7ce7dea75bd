"""The JSON file beside saved text objects: what is written can be read, and no more than that."""

import re

import pytest

from textmill.config.registry import Registry
from textmill.errors import UserError
from textmill.text import metadata as description
from textmill.text.features.labels import Labels
from textmill.text.metadata import (
    SavedFolder,
    SavedTextError,
    read_description,
    write_description,
)


def test_many_labels_are_read_again(tmp_path):
    labels = Labels([f"a label of thirty letters {i:05}" for i in range(35_000)])
    path = tmp_path / "text.json"
    write_description(path, "labels", {"labels": list(labels.names)})
    assert path.stat().st_size > 1 << 20
    assert read_description(path) == ("labels", {"labels": list(labels.names)})


def test_the_same_limit_holds_for_writing_and_reading(tmp_path, monkeypatch):
    path = tmp_path / "text.json"
    settings = {"labels": ["\N{LATIN SMALL LETTER E WITH ACUTE}" * 50]}  # two bytes each
    write_description(path, "labels", settings)
    size = path.stat().st_size
    monkeypatch.setattr(description, "LARGEST_DESCRIPTION", size)
    write_description(path, "labels", settings)
    assert read_description(path) == ("labels", settings)
    monkeypatch.setattr(description, "LARGEST_DESCRIPTION", size - 1)
    message = f"{path} is larger than {size - 1} bytes, the most that is read from it."
    with pytest.raises(SavedTextError, match=f"^{re.escape(message)}$"):
        read_description(path)
    message = (
        f"The settings of 'labels' take {size} bytes in other.json, but at most {size - 1} are "
        "read again: nothing is saved. Use fewer or shorter labels or words."
    )
    with pytest.raises(UserError, match=f"^{re.escape(message)}$"):
        write_description(tmp_path / "other.json", "labels", settings)
    assert not (tmp_path / "other.json").exists()


def test_what_nothing_registers_is_refused_and_what_something_does_is_found(tmp_path):
    class Shape(SavedFolder):
        registry, description = Registry("shape"), "shape.json"

    @Shape.registry.register("square")
    class Square(Shape):
        kind = "square"

        def __init__(self, side: int) -> None:
            self.side = side

    path = tmp_path / "shape.json"
    Square(2).save(tmp_path)
    assert read_description(path) == ("square", {"side": 2})
    assert Shape.load(tmp_path).side == 2
    write_description(path, "squaer", {"side": 2})
    with pytest.raises(SavedTextError) as error:
        Shape.load(tmp_path)
    assert str(error.value).startswith(f"{path}: Unknown shape 'squaer'. Did you mean 'square'?")
