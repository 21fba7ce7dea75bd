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

STYLE = """
:root{color-scheme:light dark;--page:#f6f7f9;--card:#fff;--text:#1c2128;--dim:#626c78;
  --line:#dfe3e8;
--mark:#fff6d6;--good:#1a7f4b;--bad:#c0362c;--c0:#2563b8;--c1:#d9730d;--c2:#1a7f4b;--c3:#8b4fc0;
  --c4:#b8336a}
@media (prefers-color-scheme:dark){:root{--page:#14171b;--card:#1d2127;--text:#e4e8ed;
  --dim:#97a1ad;
--line:#343b44;--mark:#3a3420;--good:#4cc38a;--bad:#ff7b6e;--c0:#6ea8fe;--c1:#ffa657;--c2:#4cc38a;
  --c3:#c297f0;--c4:#ff85b3}}
*{box-sizing:border-box}
body{margin:0;background:var(--page);color:var(--text);
  font:15px/1.5 system-ui,-apple-system,"Segoe UI",Roboto,sans-serif}
main{max-width:1120px;margin:0 auto;padding:20px 16px 60px}
h1{font-size:24px;line-height:1.25;margin:8px 0;overflow-wrap:anywhere}
h1 span{font-size:13px;font-weight:600;vertical-align:middle;padding:2px 10px;border-radius:99px;
  border:1px solid;white-space:nowrap}
h1 .good{color:var(--good)}h1 .bad{color:var(--bad)}h1 .dim{color:var(--dim)}
h2{font-size:17px;margin:0 0 12px}
header p,.note{color:var(--dim);margin:4px 0;overflow-wrap:anywhere}
section{background:var(--card);border:1px solid var(--line);border-radius:10px;padding:16px;
  margin:16px 0}
.cards{display:grid;grid-template-columns:repeat(auto-fill,minmax(132px,1fr));gap:14px 20px;
  margin:0}
.cards dt{color:var(--dim);font-size:12.5px}
.cards dd{margin:0;font-size:19px;font-weight:600;font-variant-numeric:tabular-nums;
  overflow-wrap:anywhere}
.curves{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(100%,420px),1fr));
  gap:20px 24px}
figure{margin:0;min-width:0}
figcaption{display:flex;flex-wrap:wrap;gap:0 14px;align-items:baseline;margin-bottom:4px}
figcaption b{font-size:14px}
figcaption span{color:var(--dim);font-size:13px;white-space:nowrap}
figcaption i{display:inline-block;width:14px;height:3px;border-radius:2px;margin-right:5px;
  vertical-align:middle;background:currentColor}
svg{display:block;width:100%;height:auto}
svg text{fill:var(--dim);font-size:12px;font-variant-numeric:tabular-nums}
svg .grid{stroke:var(--line);stroke-width:1}
svg path{fill:none;stroke:currentColor;stroke-width:2;stroke-linejoin:round;stroke-linecap:round}
svg circle{fill:currentColor}
.c0{color:var(--c0)}.c1{color:var(--c1)}.c2{color:var(--c2)}.c3{color:var(--c3)}
  .c4{color:var(--c4)}
.wide{overflow-x:auto}
.wide+.wide{margin-top:18px}
table{border-collapse:collapse;width:100%;font-size:14px}
th{text-align:left;font-weight:600;color:var(--dim);font-size:12.5px}
th,td{padding:5px 12px 5px 0;border-bottom:1px solid var(--line);vertical-align:top}
td{overflow-wrap:anywhere;min-width:70px;white-space:pre-wrap;unicode-bidi:plaintext}
tr:last-child td{border-bottom:0}
.number{text-align:right;font-variant-numeric:tabular-nums;white-space:nowrap;padding-right:20px}
.marked td{background:var(--mark)}
details{margin-top:10px}
summary{cursor:pointer;color:var(--dim)}
.sample{padding:10px 0;border-bottom:1px solid var(--line)}
.sample:last-of-type{border-bottom:0}
.sample p{margin:1px 0;display:grid;grid-template-columns:86px 1fr;gap:10px;white-space:pre-wrap;
  overflow-wrap:anywhere}
.sample p>span{color:var(--dim);font-size:12.5px;padding-top:2px}
.sample p>bdi{min-width:0;unicode-bidi:plaintext}
.sample .answer bdi{font-weight:600}
.sample i{font-weight:400;color:var(--dim)}
.sample .head{display:block;color:var(--dim);font-size:12.5px}
@media (max-width:520px){main{padding:12px 10px 40px}section{padding:12px}
  .sample p{grid-template-columns:1fr;gap:0}
svg text{font-size:15px}.sample p>span{padding-top:4px}.cards dd{font-size:17px}}
@media print{body{background:#fff}section{break-inside:avoid}}
""".strip()
"""The style sheet; no address in it, and no font but those of the reader's machine."""


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


def table(
    header: Sequence[object],
    rows: Iterable[Sequence[object]],
    *,
    numeric: Sequence[int] = (),
    marked: Sequence[int] = (),
) -> Markup:
    """A table that scrolls on its own where the screen is narrow; its header may be empty.

    Columns of numbers, counted from 0, are aligned to the right; marked rows are to be seen first.

    Example:
        >>> "<td>a &amp; b</td>" in table(["name"], [["a & b"]]).html
        True
    """

    def cells(tag: str, row: Sequence[object]) -> str:
        kinds = [" class=number" if i in numeric else "" for i in range(len(row))]
        both = zip(kinds, row, strict=True)
        return "".join(f"<{tag}{kind}>{text(cell)}</{tag}>" for kind, cell in both)

    lines = [
        f"<tr{' class=marked' if number in marked else ''}>{cells('td', row)}</tr>"
        for number, row in enumerate(rows)
    ]
    top = f"<thead><tr>{cells('th', header)}</tr></thead>" if header else ""
    return Markup(f"<div class=wide><table>{top}<tbody>{''.join(lines)}</tbody></table></div>")


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
    """The whole page: a heading, a word of the run's state beside it, a note below, sections."""
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
