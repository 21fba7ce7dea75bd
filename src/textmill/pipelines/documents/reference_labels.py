"""Numbered lists of references: the lines whose labels count, of whatever form."""

import re
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence

from textmill.pipelines.documents.document import Line

FORMS: Mapping[str, re.Pattern[str]] = {
    "bracket": re.compile(r"(\[ ?(\d{1,4}) ?\])\s*"),
    "parenthesis": re.compile(r"(\( ?(\d{1,4}) ?\))\s*"),
    "dot": re.compile(r"((\d{1,4}) ?\.)(?!\d)\s*"),
    "half": re.compile(r"((\d{1,4}) ?\))\s*"),
    "bare": re.compile(r"((\d{1,4}))(?=\s+\S)\s*"),
}
"""How a number is written before a reference; group 1 is the label, group 2 its number."""
NAMED = re.compile(r"(\[[^\W\d_][^\[\]]{0,40}\])\s*")
"""A label of letters, as ``[Knu84]`` or ``[Smith et al., 2004]``."""
UNCONFIRMED = re.compile(
    r"\s*(?:(\[ ?(?!1[5-9]\d\d|20\d\d)\d{1,4} ?\]|\[[^\W\d_](?=[^\[\]]*\d)[^\[\]]{1,40}\]"
    r"|\( ?\d{1,3} ?\))\s*|(\d{1,3}[.)])\s+(?=\D))(?=\S)"
)
"""A label that no list confirms: no year, and no number without a sign behind it. Of AnyStyle's
1,514 references 186 begin with a label; 176 of them so, and no other."""
ALIGNED = 2.0
"""Points by which labels of one list, or what follows them, differ in where they begin."""
NOT_ALIGNED, MISSING = 0.3, 0.6
"""What a label counts that stands elsewhere, and by how much less where one before it lacks."""
MOST_MISSING = 2

Starts = list[tuple[int, str, int]]
"""Of each reference: its first line, its label, and where the text behind the label begins."""


def labelled_starts(lines: Sequence[Line], edges: Sequence[float]) -> Starts:
    """Where labelled references begin; none where the first line has no label that others follow.

    Args:
        lines: Of the list of references.
        edges: The left edge of the column of each line.

    Example:
        >>> lines = [Line("[1] Knuth. In vol. 3,"), Line("[5] of it, 1984."), Line("[2] Gries.")]
        >>> labelled_starts(lines, [0.0, 0.0, 0.0])
        [(0, '[1]', 4), (2, '[2]', 4)]
    """
    best: Starts = []
    for form in FORMS.values():
        found = _counted(lines, edges, form)
        if len(found) > len(best):
            best = found
    named = [(n, m[1], m.end()) for n, line in enumerate(lines) if (m := NAMED.match(line.text))]
    if len(named) > max(1, len(best)) and named[0][0] == 0:
        return named
    return best if len(best) > 1 else []


def leading_label(text: str) -> tuple[str | None, int]:
    """The label that a reference begins with, if it does, and where the text behind it begins.

    Example:
        >>> leading_label("[12] D. Knuth. 1984."), leading_label("1984. G. Orwell.")
        (('[12]', 5), (None, 0))
    """
    found = UNCONFIRMED.match(text)
    return (None, 0) if found is None else (found[1] or found[2], found.end())


def _counted(lines: Sequence[Line], edges: Sequence[float], form: re.Pattern[str]) -> Starts:
    """The longest run of labels that count on from the first line, aligned ones before others."""
    found = [(n, m) for n, line in enumerate(lines) if (m := form.match(line.text))]
    if not found or found[0][0] > 0:
        return []
    aligned = _aligned(lines, edges, [n for n, _ in found])
    chains = defaultdict[int, list[tuple[float, int, int]]](list)
    before = dict[int, int]()
    first, last = int(found[0][1][2]), (0.0, 0, found[0][0])
    for n, match in found:
        number = int(match[2])
        own = 1.0 if n in aligned else NOT_ALIGNED
        if n == found[0][0]:
            chains[first].append((own, 0, n))
            continue
        options = [
            (score + own - MISSING * missing, number, n, at)
            for missing in range(MOST_MISSING + 1)
            for score, _, at in chains[number - 1 - missing]
            if number - 1 - missing >= first
        ]
        if options:
            score, _, _, before[n] = max(options)
            chains[number] = sorted([*chains[number], (score, number, n)])[-4:]
            last = max(last, (score, number, n))
    run, at = [last[2]], last[2]
    while at in before:
        at = before[at]
        run.append(at)
    matches = dict(found)
    return [(n, matches[n][1], matches[n].end()) for n in reversed(run)]


def _aligned(lines: Sequence[Line], edges: Sequence[float], which: Sequence[int]) -> set[int]:
    """Lines whose label, or whose text behind it, begins where it does in most."""
    found = set[int]()
    for place in ("x0", "second"):
        at = {n: getattr(lines[n], place) - edges[n] for n in which}
        common = Counter(round(x) for x in at.values()).most_common(1)[0][0]
        found |= {n for n, x in at.items() if abs(x - common) <= ALIGNED}
    return found
