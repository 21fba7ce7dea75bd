"""A page of HTML in one file: no script, no network, and all text of a run is only text.

Pages hold texts that nobody has looked at: sentences of a corpus, answers of a model, settings of a
run folder that came from elsewhere. Each goes through :func:`text`, which makes it harmless; and
the page forbids scripts and every address by its content security policy, should one be missed.
"""

import html
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from weft.metrics.reporters.html_style import STYLE

__all__ = ["LONGEST", "Markup", "cards", "details", "page", "section", "table", "text"]

LONGEST = 2_000
"""Characters of one text that are shown: more than a screenful of a phone."""

Tone = Literal["plain", "good", "bad", "dim"]

# Controls cannot be seen, and those of direction turn the text around them.
_UNSEEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069\ufeff\ud800-\udfff]"
)


@dataclass(frozen=True)
class Markup:
    """HTML that is meant as such; everything else is text."""

    html: str


def text(value: object, *, most: int = LONGEST) -> str:
    r"""A value as harmless HTML text, also inside the quotes of an attribute.

    Characters that cannot be seen are shown by their number, and what is too long is cut.

    Args:
        value: Anything.
        most: Characters that are shown.

    Example:
        >>> text('<script>alert("1")</script>')
        '&lt;script&gt;alert(&quot;1&quot;)&lt;/script&gt;'
        >>> text("a\x00b"), text("aaaaaa", most=3)
        ('a\\x00b', 'aaa… (6 characters)')
    """
    if isinstance(value, Markup):
        return value.html
    whole = str(value)
    shown = whole if len(whole) <= most else f"{whole[:most]}… ({len(whole):,} characters)"
    return html.escape(_UNSEEN.sub(_number, shown))


def _number(found: re.Match[str]) -> str:
    code = ord(found[0])
    return f"\\x{code:02x}" if code < 256 else f"\\u{code:04x}"


def table(
    header: Sequence[object],
    rows: Iterable[Sequence[object]],
    *,
    numeric: Sequence[int] = (),
    marked: Sequence[int] = (),
) -> Markup:
    """A table that scrolls on its own where the screen is narrow.

    Args:
        header: Titles of the columns; none for a table without.
        rows: Their cells.
        numeric: Columns of numbers, from 0: aligned to the right.
        marked: Rows, from 0, to be seen first.

    Example:
        >>> "<td>a &amp; b</td>" in table(["name"], [["a & b"]]).html
        True
    """
    head = "".join(f"<th{_right(i, numeric)}>{text(cell)}</th>" for i, cell in enumerate(header))
    lines = []
    for number, row in enumerate(rows):
        cells = "".join(f"<td{_right(i, numeric)}>{text(cell)}</td>" for i, cell in enumerate(row))
        lines.append(f"<tr{' class=marked' if number in marked else ''}>{cells}</tr>")
    top = f"<thead><tr>{head}</tr></thead>" if head else ""
    return Markup(f"<div class=wide><table>{top}<tbody>{''.join(lines)}</tbody></table></div>")


def _right(column: int, numeric: Sequence[int]) -> str:
    return " class=number" if column in numeric else ""


def cards(facts: Mapping[str, object]) -> Markup:
    """Facts as large words with their names above.

    Example:
        >>> cards({"steps": "4,800"}).html
        '<dl class=cards><div><dt>steps</dt><dd>4,800</dd></div></dl>'
    """
    items = (f"<div><dt>{text(n)}</dt><dd>{text(v, most=60)}</dd></div>" for n, v in facts.items())
    return Markup(f"<dl class=cards>{''.join(items)}</dl>")


def details(title: object, *content: object) -> Markup:
    """Content that is folded away until its title is chosen."""
    inner = "".join(text(item) for item in content)
    return Markup(f"<details><summary>{text(title)}</summary>{inner}</details>")


def section(title: object, *content: object) -> Markup:
    """A part of the page; one without content is left out whole.

    Example:
        >>> section("Data").html, section("Data", "12 rows").html
        ('', '<section><h2>Data</h2>12 rows</section>')
    """
    inner = "".join(text(item) for item in content)
    return Markup(f"<section><h2>{text(title)}</h2>{inner}</section>" if inner else "")


def page(title: str, state: str, *content: Markup, note: object = "") -> str:
    """The whole page.

    Args:
        title: Its heading, and its name in the browser.
        state: A word beside the heading: ``finished``, ``failed``, ...
        content: Its sections.
        note: A line below the heading.
    """
    policy = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"
    tone = {"finished": "good", "failed": "bad"}.get(state, "dim")
    return (
        "<!doctype html>\n<html lang=en><head><meta charset=utf-8>\n"
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
        '<meta name=viewport content="width=device-width, initial-scale=1">\n'
        '<meta name="color-scheme" content="light dark">\n'
        f"<title>{text(title, most=120)}</title>\n<style>{STYLE}</style></head>\n<body><main>\n"
        f"<header><h1>{text(title, most=120)} <span class={tone}>{text(state, most=40)}</span></h1>"
        f"<p>{text(note)}</p></header>\n"
        + "\n".join(part.html for part in content if part.html)
        + "\n</main></body></html>\n"
    )
