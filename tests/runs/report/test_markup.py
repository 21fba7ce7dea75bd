"""Pages: what is text stays text, and a page allows nothing but its own."""

import base64
import hashlib
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.runs.report.pages_of_html import HOSTILE, Page
from textmill.runs.report.markup import LONGEST, cards, details, page, section, table
from textmill.runs.report.page import figure_markup
from textmill.runs.report.summary import Figure, Point, Series, thinned


def drawing(word):
    return Figure(word, word, "line", word, word, (Series(word, (Point(1, 2.0),)),), note=word)


@pytest.mark.parametrize("hostile", HOSTILE)
def test_a_hostile_text_is_text_wherever_it_stands(hostile):
    whole = page(
        hostile,
        hostile,
        section(hostile, table([hostile], [[hostile], [hostile]], numeric=(0,), marked=(1,))),
        section("facts", cards({hostile: hostile}), details(hostile, hostile)),
        section("curves", figure_markup(drawing(hostile))),
        note=hostile,
    )
    seen = Page(whole)
    assert {"script", "img", "iframe"}.isdisjoint(seen.counts)
    whole.encode("utf-8")
    assert len(whole) < 100_000 + 16 * 6 * LONGEST
    if len(hostile) < 40 and hostile.isprintable():
        assert seen.texts.count(hostile) >= 5


@given(st.text(max_size=200))
def test_any_text_is_read_back_as_it_was_where_it_can_be_seen(value):
    read = Page(section("t", value).html if value else "").text
    unseen = re.search(
        "[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069\ufeff\ud800-\udfff]",
        value,
    )
    assert unseen or read == ("t\n" + value if value else "")


def test_the_page_asks_for_nothing_and_allows_only_its_own_scripts_and_style():
    whole = page("t", "finished", section("s", "x"), bare=False)
    read = Page(whole)
    assert read.counts["script"] == 2
    assert not re.search(r"url\(|@import|<link|\bsrc=|\bhref=", whole)
    policy = re.search('Security-Policy" content="([^"]*)"', whole)[1].replace("&#x27;", "'")
    digests = [base64.b64encode(hashlib.sha256(a.encode()).digest()).decode() for a in read.assets]
    style, *scripts = (f"'sha256-{digest}'" for digest in digests)
    assert policy == (
        f"default-src 'none'; style-src {style}; script-src {' '.join(scripts)}; "
        "base-uri 'none'; form-action 'none'"
    )
    bare = page("t", "finished", section("s", "x"))
    assert "script-src 'none'" in bare
    assert "script" not in Page(bare).counts


@given(st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=300), st.integers(2, 50))
def test_thinning_keeps_the_order_the_peaks_and_the_end(values, most):
    points = [Point(*each) for each in enumerate(values)]
    kept = thinned(points, most)
    assert len(kept) <= max(most, 2) + 1
    assert [point.x for point in kept] == sorted({point.x for point in kept})
    assert kept[-1] == points[-1]
    assert set(kept) <= set(points)
    body = [point.y for point in kept]
    assert (min(body), max(body)) == (min(values), max(values))
