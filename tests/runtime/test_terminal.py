import pytest

from textmill.runtime.logging import printable


@pytest.mark.parametrize("code", [*range(32), *range(127, 160), 0x2028, 0x2029, 0xD800, 0xDFFF])
def test_what_a_terminal_obeys_is_shown(code):
    shown = printable(f"a{chr(code)}b")
    assert shown == (f"a{chr(code)}b" if chr(code) in "\t\n" else f"a{ascii(chr(code))[1:-1]}b")


def test_any_other_text_is_as_it_is():
    text = "Élan vital · 漢字 🙂 naïve\n\tdone \\x1b"
    assert printable(text) == text
