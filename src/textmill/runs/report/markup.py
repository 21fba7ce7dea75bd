"""A page of HTML in one file: no network, no script but the page's own, and all text is only text.

Pages hold texts that nobody has looked at: sentences of a corpus, answers of a model, settings of a
run folder that came from elsewhere. Each goes through :func:`text`, which makes it harmless; and
the page's content security policy, should one be missed, allows no address at all, and scripts and
style by their digests: what draws, parts of D3 with their licence, and what the page adds to it.
"""

import base64
import hashlib
import html
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources

LONGEST = 2_000
"""Characters of one text that are shown: more than a screenful of a phone."""

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

    Characters that cannot be seen are shown by their number, and of a long text ``most`` of them.

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


def tag(name: str, *content: object, **attributes: object) -> Markup:
    """An element; an attribute whose value is None or False is left out, ``cls`` is its class."""
    given = "".join(
        f" {key.replace('cls', 'class').replace('_', '-')}"
        + ("" if value is True else f'="{text(value)}"')
        for key, value in attributes.items()
        if value is not None and value is not False
    )
    return Markup(f"<{name}{given}>{''.join(text(part) for part in content)}</{name}>")


def table(
    header: Sequence[object],
    rows: Iterable[Sequence[object]],
    *,
    numeric: Sequence[int] = (),
    marked: Sequence[int] = (),
) -> Markup:
    """A table that scrolls on its own where the screen is narrow; its header may be empty.

    Columns of numbers, counted from 0, are aligned to the right; marked rows are to be seen first.
    """

    def cells(name: str, row: Sequence[object]) -> str:
        kinds = [" class=number" if i in numeric else "" for i in range(len(row))]
        scope = " scope=col" if name == "th" else ""
        both = zip(kinds, row, strict=True)
        return "".join(f"<{name}{kind}{scope}>{text(cell)}</{name}>" for kind, cell in both)

    lines = [
        f"<tr{' class=marked' if number in marked else ''}>{cells('td', row)}</tr>"
        for number, row in enumerate(rows)
    ]
    top = f"<thead><tr>{cells('th', header)}</tr></thead>" if header else ""
    whole = f"<table>{top}<tbody>{''.join(lines)}</tbody></table>"
    return Markup(f"<div class=wide tabindex=0>{whole}</div>")


def cards(facts: Mapping[str, object]) -> Markup:
    items = (f"<div><dt>{text(n)}</dt><dd>{text(v, most=60)}</dd></div>" for n, v in facts.items())
    return Markup(f"<dl class=cards>{''.join(items)}</dl>")


def bar(share: float) -> Markup:
    """A bar as wide as its share of the cell, without a style that the policy would refuse."""
    width = 100 * min(1.0, max(0.0, share))
    return Markup(
        '<svg class="bar" viewBox="0 0 100 1" preserveAspectRatio="none" aria-hidden="true">'
        f'<rect width="{width:.1f}" height="1"></rect></svg>'
    )


def details(title: object, *content: object) -> Markup:
    """Content that is folded away until its title is chosen."""
    inner = "".join(text(item) for item in content)
    return Markup(f"<details><summary>{text(title)}</summary>{inner}</details>")


def section(title: object, *content: object, cls: str | None = None) -> Markup:
    """A part of the page; one without content is left out whole."""
    inner = Markup("".join(text(item) for item in content))
    return tag("section", tag("h2", title), inner, cls=cls) if inner.html else inner


@cache
def _asset(room: str, *path: str) -> str:
    return resources.files(room).joinpath(*path).read_text("utf-8")


def _digest(content: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()}'"


@cache
def _frame() -> tuple[str, tuple[str, ...]]:
    """The style, which begins as the served page's, and the scripts: parts of D3, then ours."""
    mine = "textmill.runs.report", "assets"
    style = _asset("textmill.serving", "page", "page.css") + _asset(*mine, "report.css")
    library = f"/*\n{_asset(*mine, 'd3.LICENSE')}*/\n{_asset(*mine, 'd3.min.js')}"
    return style, (library, _asset(*mine, "report.js"))


def page(
    title: str,
    state: str,
    *content: Markup,
    note: object = "",
    lead: object = "",
    bare: bool = True,
) -> str:
    """The whole page: a heading with the run's state and a lead, sections, and a note at the end.

    A ``bare`` page draws nothing, so it has no script at all.
    """
    style, scripts = _frame()
    scripts = () if bare else scripts
    allowed = " ".join(map(_digest, scripts)) or "'none'"
    policy = (
        f"default-src 'none'; style-src {_digest(style)}; script-src {allowed}; "
        "base-uri 'none'; form-action 'none'"
    )
    tone = {"finished": "good", "failed": "bad"}.get(state, "dim")
    badge = tag("span", Markup(text(state, most=40)), cls=f"state {tone}") if state else ""
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="color-scheme" content="light dark">\n'
        f"<title>{text(title, most=120)}</title>\n<style>{style}</style></head>\n<body><main>\n"
        f"<header><h1>{text(title, most=120)} {text(badge)}</h1><p>{text(lead)}</p></header>\n"
        + "\n".join(part.html for part in content if part.html)
        + f"\n<footer>{text(note)}</footer></main>\n"
        + "".join(f"<script>{script}</script>\n" for script in scripts)
        + "</body></html>\n"
    )
