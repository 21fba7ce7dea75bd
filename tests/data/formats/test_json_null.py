"""What a JSON line says where a text is wanted: nothing at all, or null."""

import pytest

from textmill.data import json_lines_format
from textmill.data.formats.json_lines import pick_row

NULL = "'fr.text': wanted text, a number or a list of them, found null"


@pytest.mark.parametrize(
    ("found", "row"),
    [
        ({"fr": {"text": "Salut."}}, ("Salut.",)),
        ({"fr.text": "Salut."}, ("Salut.",)),
        ({"fr": [{"text": 3}]}, "no key 'fr.text'; the keys are 'fr'"),
        ({"fr": {"text": None}}, NULL),
        ({"fr": None}, NULL),
        ({"fr.text": None}, NULL),
        ({"fr": {}}, "no key 'fr.text'; the keys are 'fr'"),
        ({"fr": "text"}, "no key 'fr.text'; the keys are 'fr'"),
        ({"en": "Hi."}, "no key 'fr.text'; the keys are 'en'"),
        ({}, "no key 'fr.text'; the keys are none"),
    ],
)
def test_null_is_a_value_and_no_missing_key(found, row):
    assert pick_row(found, json_lines_format({"target": "fr.text"})) == row
