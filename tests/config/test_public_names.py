"""Public names of packages, imported when they are first used."""

import pytest

import textmill


def test_a_name_that_is_not_there_is_refused_with_those_that_are():
    with pytest.raises(AttributeError, match=r"^module 'textmill' has no attribute 'trian'; it"):
        _ = textmill.trian
