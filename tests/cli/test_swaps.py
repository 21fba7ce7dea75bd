"""A part that was swapped by an import path is code, which a run folder may not name unasked."""

import pytest

from textmill.inference.load import NeedsCodeError, saved_plan


def test_the_error_names_the_swap(tmp_path):
    text = "settings:\n  module: {dim: 3}\nswaps: {module: '@nope.deep'}\nbuilt: {}\n"
    (tmp_path / "config.yaml").write_text(text)
    with pytest.raises(NeedsCodeError) as caught:
        saved_plan(tmp_path, "built", ("module",), provided=())
    assert str(caught.value).startswith(f"The module of {tmp_path} is made by code of the recipe's")
