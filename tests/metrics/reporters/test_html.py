"""Pages and curves: what is text stays text, and what is drawn is where it belongs."""

import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tests.metrics.reporters.pages_of_html import HOSTILE, Page
from textmill.metrics.reporters.html_page import (
    BOTTOM,
    HEIGHT,
    LEFT,
    LONGEST,
    RIGHT,
    TOP,
    WIDTH,
    Curve,
    cards,
    details,
    figure,
    page,
    section,
    table,
    thinned,
    ticks,
)


@pytest.mark.parametrize("hostile", HOSTILE)
def test_a_hostile_text_is_text_wherever_it_stands(hostile):
    whole = page(
        hostile,
        hostile,
        section(hostile, table([hostile], [[hostile], [hostile]], numeric=(0,), marked=(1,))),
        section("facts", cards({hostile: hostile}), details(hostile, hostile)),
        section("curves", figure(hostile, [Curve(hostile, [(1, 2.0)], dots=True)])),
        note=hostile,
    )
    seen = Page(whole)
    assert {"script", "img", "iframe"}.isdisjoint(seen.counts)
    whole.encode("utf-8")
    assert len(whole) < 100_000 + 12 * 6 * LONGEST
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


def test_the_page_asks_for_nothing_from_anywhere():
    whole = page("t", "finished", section("s", "x"))
    assert not re.search(r"https?:|//|url\(|@import|<script|<link|\bsrc=|\bhref=", whole)
    assert "default-src 'none'" in whole


def places(drawn):
    """The points of each path, in the drawing's own measure."""
    paths = re.findall(r' d="M([^"]*)"', drawn.html)
    return [[tuple(map(float, p.split())) for p in path.split("L")] for path in paths]


def value_at(drawn, y):
    """The value at a height, told by two lines of the grid alone."""
    marks = re.findall(r"y1=([\d.]+) y2.*?<text [^>]*>([^<]*)</text>", drawn.html)
    (y0, v0), (y1, v1) = ((float(a), float(b.replace(",", ""))) for a, b in (marks[0], marks[-1]))
    return v0 + (v1 - v0) * (y - y0) / (y1 - y0)


@pytest.mark.parametrize(
    "values",
    [
        [7.5, 6.0, 5.5, 5.25], [-3.0, 2.0, 1.0, 0.5], [0.0, 10.0, 20.0, 5.0],
        [1000.0, 3000.0, 2000.0, 1500.0],
    ],
)  # fmt: skip
def test_points_stand_where_the_grid_says(values):
    points = [(100 * (i + 1), v) for i, v in enumerate(values)]
    drawn = figure("loss", [Curve("train", points)])
    (path,) = places(drawn)
    width = WIDTH - LEFT - RIGHT
    assert [x for x, _ in path] == pytest.approx(
        [LEFT + width * i / 4 for i in (1, 2, 3, 4)], abs=0.1
    )
    span = max(values) - min(values)
    assert [value_at(drawn, y) for _, y in path] == pytest.approx(values, abs=0.01 * span)


@example([0.0, 5e-324], "loss", True)
@example([5e-324], "loss", True)
@example([1e306], "loss", True)
@example([1.0, 1.0 + 2**-52], "loss", True)
@example([1e-14, 3e-14, 5e-14], "lr", False)
@given(
    st.lists(st.floats(), min_size=1, max_size=40),
    st.sampled_from(["loss", "accuracy", "<b>"]),
    st.booleans(),
)
def test_any_values_are_drawn_inside_or_not_at_all(values, title, dots):
    drawn = figure(title, [Curve("a", list(enumerate(values)), dots=dots)])
    if not any(abs(value) < 1e150 for value in values):
        assert drawn.html == ""
        return
    Page(drawn.html)
    for path in places(drawn):
        for x, y in path:
            assert LEFT - 0.1 <= x <= WIDTH - RIGHT + 0.1
            assert TOP - 0.1 <= y <= HEIGHT - BOTTOM + 0.1


def test_a_fall_over_decades_is_drawn_in_decades():
    drawn = figure("perplexity", [Curve("valid", [(1, 10_000.0), (2, 100.0), (3, 1.0)])])
    ((_, top), (_, middle), (_, bottom)) = places(drawn)[0]
    assert middle - top == pytest.approx(bottom - middle, abs=0.2)
    share = figure("accuracy", [Curve("valid", [(1, 0.9), (2, 0.01)])])
    assert "40 %" in share.html
    assert "valid 1.0 %" in share.html


@given(st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=300), st.integers(2, 50))
def test_thinning_keeps_the_order_the_peaks_and_the_end(values, most):
    points = list(enumerate(values))
    kept = thinned(points, most)
    assert len(kept) <= max(most, 2) + 1
    assert [step for step, _ in kept] == sorted({step for step, _ in kept})
    assert kept[-1] == points[-1]
    assert set(kept) <= set(points)
    body = [value for _, value in kept]
    assert (min(body), max(body)) == (min(values), max(values))


@pytest.mark.parametrize("span", [1e-9, 0.3, 1.0, 7.0, 480.0, 1e12])
@pytest.mark.parametrize("low", [0.0, -5.0, 123.456])
def test_ticks_are_round_few_and_inside(low, span):
    high = low + span
    found = ticks(low, high)
    assert len(found) <= 6
    if span > 1e-6:
        assert len(found) >= 2
        assert all(low - 1e-9 * span <= value <= high + 1e-9 * span for value in found)
