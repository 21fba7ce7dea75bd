"""Where references begin: by labels that count, else by indents, gaps, authors, years.

Without labels each line gets evidence for a beginning, in about the units of a log-odds, from where
it stands and from what it says; a dynamic program takes the cut of the whole list that has most.
"""

import re
import unicodedata
from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from itertools import pairwise

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

    ``edges`` are the left edges of the lines' columns.
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
    """The label that a reference begins with, if it does, and where the text behind it begins."""
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
    run.reverse()
    matches = dict(found)
    starts = [(n, matches[n][1], matches[n].end()) for n in run]
    for a, b in pairwise(run):
        starts += _misread(lines, edges, matches[a], range(a, b), int(matches[b][2]), run)
    return sorted(starts)


def _misread(
    lines: Sequence[Line],
    edges: Sequence[float],
    before: re.Match[str],
    between: range,
    number: int,
    run: Sequence[int],
) -> Starts:
    """Labels that a scan has misread, as ``[l2]``: those that lack before a label with a number.

    They are the lines that begin where labels do, if these are just as many as lack.
    """
    lacking = range(int(before[2]) + 1, number)
    begins = _usual([lines[n].x0 - edges[n] for n in run])
    texts = _usual([lines[n].second - edges[n] for n in run])
    own = [n for n in between[1:] if abs(lines[n].x0 - edges[n] - begins) <= ALIGNED]
    if len(own) != len(lacking):
        return []
    return [
        (
            n,
            before[1].replace(before[2], str(lack)),
            # Where the text does not stand where others do, the label is lost.
            lines[n].text.find(" ") + 1
            if abs(lines[n].second - edges[n] - texts) <= ALIGNED
            else 0,
        )
        for n, lack in zip(own, lacking, strict=True)
    ]


def _usual(places: Sequence[float]) -> int:
    return Counter(round(x) for x in places).most_common(1)[0][0]


def _aligned(lines: Sequence[Line], edges: Sequence[float], which: Sequence[int]) -> set[int]:
    """Lines whose label, or whose text behind it, begins where it does in most."""
    found = set[int]()
    for place in ("x0", "second"):
        at = {n: getattr(lines[n], place) - edges[n] for n in which}
        common = _usual([*at.values()])
        found |= {n for n, x in at.items() if abs(x - common) <= ALIGNED}
    return found


FLUSH = 0.3
"""Of the size: what begins farther from the edge of its column is indented."""
INDENT_SHARE, SAME_INDENT = 0.6, 2.0
"""Of the indented lines that have one indent, within points, where it says something."""
GAP = 0.18
"""Of the usual distance of lines: what is farther below has a gap before it."""
FEW_LINES = 8
"""Of a column; where it has fewer, its edge is that of others like it."""
FARTHEST = 50.0
"""Points from the edge of a column that its lines may all be indented by."""
LONGEST = 14
"""Lines of a reference."""
BY_PLACE = 6.0
"""What an indent or a gap says, where the list has them."""
ALPHABET = 2.0
ALIKE, UNLIKE = 0.7, 2.0
"""Share of references that begin with a surname and initials, from which on others say less."""
SORTED = 0.8
"""Share of neighbours in the order of the alphabet from which on it says something."""

PARTICLE = (
    r"(?:(?:van|von|de|der|den|des|del|della|di|da|do|dos|du|la|le|el|al|bin|ibn|ten|ter|zu|af|av)"
    r"[ -]|[dDlLO]['’]|Mc|Mac|St\. ){0,4}"
)
NAME = rf"{PARTICLE}[^\W\d_a-zà-ÿ][^\W\d_]+(?:[-'’][^\W\d_]+)*"
INITIALS = r"(?:[^\W\d_a-zà-ÿ]\.?(?:[ -]?[^\W\d_a-zà-ÿ]\.)*|[^\W\d_a-zà-ÿ]{1,3}\b)"
YEAR = re.compile(
    r"\b(?:1[6-9]|20)\d\d[a-z]?\b"
    r"|\b(?:in press|forthcoming|to appear|n\. ?d\.|submitted|under review)",
    re.IGNORECASE,
)
STRONG = re.compile(
    rf"{NAME}(?: {NAME}){{0,2}},? {INITIALS}(?:[,.;:& ]|$)"  # Smith, J. A.; van der Berg J
    rf"|(?:[^\W\d_a-zà-ÿ]\.[ -]?){{1,4}}{NAME}"  # J. A. Smith
)
FULL = re.compile(  # Jane A. Smith, John Doe and ...; Smith, Jane
    rf"{NAME}(?: [^\W\d_a-zà-ÿ]\.)*(?: {NAME}){{1,2}}(?:,| and | & |\.| et al|;)"
    rf"|{NAME}, [^\W\d_a-zà-ÿ][^\W\d_]+(?: [^\W\d_a-zà-ÿ]\.)*(?:,|\.| and | & |;)"
)
BODY = re.compile(r"[^\W\d_a-zà-ÿ][^.]{2,80}\.? \(?(?:19|20)\d\d[a-z]?\)?[.,:]")
"""An organization, or a title, with the year behind it."""
ENDED = re.compile(r"(?:[\w)\]”\"'’?!/]\.|\b\d+|/\S+|[\])”])$")
ABBREVIATED = re.compile(
    r"(?:\b[^\W\d_]|\b(?:al|pp?|vols?|nos?|eds?|proc|conf|int|trans|j|univ|dept|inc|jr|sr|st|ph|st|vs|cf"
    r"|symp|res|sci|math|phys|lett|rev|natl|acad|soc|am|amer|comput|assoc|eng|ann|bull|chem|biol))\.$",
    re.IGNORECASE,
)
GOES_ON = re.compile(
    r"(?:[,&:;–—(-]|\b(?:and|und|et|y|of|the|in|on|for|a|an|to|with|by|from|In|de|van|von))$"
)
NO_AUTHOR = re.compile(
    r"(?:In\b|Springer|ACM\b|IEEE\b|MIT Press|Elsevier|Wiley|Kluwer|Morgan Kaufmann|Academic Press"
    r"|Cambridge,? (?:U|MA)|Oxford Univ|North-Holland|Addison|Prentice|Proceedings|Proc\.|Journal"
    r"|J\. (?:of|[A-Z][a-z]+\. )|Trans(?:actions|\.)|Communications of|Comm\.|Advances in"
    r"|International (?:Conf|J)|Int\.|Conference|Symposium|Workshop|Lecture Notes|Annals of"
    r"|Annual|Technical [Rr]eport|Tech\.|Ph\.? ?D|Master|Vol(?:ume|\.)|Pages?\b|pp?\."
    r"|University|Department|Available|Accessed|Retrieved|URL|https?:|www\.|doi|DOI|arXiv)"
)
"""Where references go on: publishers, journals, addresses."""
QUOTES = "“‘\"'«„"
STARRED = re.compile(r"(?:[-–—_]{2,}|[—―]|″|\")\W*")
"""A dash for the authors of the reference before."""


def column_edges(lines: Sequence[Line]) -> list[float]:
    """The left edge of the column of each line; of few lines, that of a column like theirs."""
    columns = dict[tuple[int, int], list[float]]()
    for line in lines:
        columns.setdefault(line.where, []).append(line.x0)
    edges = {where: min(begins) for where, begins in columns.items()}
    wide = [where for where, begins in columns.items() if len(begins) >= FEW_LINES]
    of_facing = [sorted({edges[o] for o in wide if o[0] % 2 == side}) for side in (0, 1)]
    of_any = sorted({*of_facing[0], *of_facing[1]})
    for where in columns.keys() - wide:
        for like in (of_facing[where[0] % 2], of_any):
            place = bisect_right(like, edges[where])
            if place and edges[where] - like[place - 1] <= FARTHEST:
                edges[where] = like[place - 1]
                break
    return [edges[line.where] for line in lines]


def unlabelled_starts(lines: Sequence[Line], edges: Sequence[float]) -> list[int]:
    """The lines at which references begin; the first is one."""
    places = [a + b for a, b in zip(_indents(lines, edges), _gaps(lines), strict=True)]
    own = [place + _says(lines, n) for n, place in enumerate(places)]
    starts = _best_cut(lines, own, alphabet=0.0)
    if sum(bool(STRONG.match(lines[n].text)) for n in starts) >= ALIKE * len(starts):
        own = [
            each - (0.0 if STRONG.match(line.text) or STARRED.match(line.text) else UNLIKE)
            for each, line in zip(own, lines, strict=True)
        ]
        starts = _best_cut(lines, own, alphabet=0.0)
    names = [_name(lines[n].text) for n in starts]
    rising = sum(a <= b for a, b in pairwise(names))
    if len(names) > 3 and rising >= SORTED * (len(names) - 1):
        starts = _best_cut(lines, own, alphabet=ALPHABET)
    return starts


def _indents(lines: Sequence[Line], edges: Sequence[float]) -> list[float]:
    """What indents say: hanging ones, or those of first lines; nothing where there are none."""
    indents = [line.x0 - edge for line, edge in zip(lines, edges, strict=True)]
    inner = [
        n for n, (line, x) in enumerate(zip(lines, indents, strict=True)) if x > FLUSH * line.size
    ]
    flush = len(lines) - len(inner)
    if not inner or not flush:
        return [0.0] * len(lines)
    usual = Counter(round(indents[n]) for n in inner).most_common(1)[0][0]
    same = {n for n in inner if abs(indents[n] - usual) <= SAME_INDENT}
    if len(same) < INDENT_SHARE * len(inner) or len(same) < max(2, 0.04 * len(lines)):
        return [0.0] * len(lines)
    sign = -BY_PLACE if 0 not in inner else BY_PLACE
    inside = set(inner)
    return [sign if n in same else 0.0 if n in inside else -sign for n in range(len(lines))]


def _gaps(lines: Sequence[Line]) -> list[float]:
    """What white between lines says, where some of it is wider than most."""
    steps = {
        n: b.y - a.y
        for n, (a, b) in enumerate(pairwise(lines), 1)
        if a.where == b.where and b.y > a.y
    }
    found = [0.0] * len(lines)
    if not steps:
        return found
    # The least distance that is no exception: lines of one reference, where most have one line.
    usual = sorted(steps.values())[len(steps) // 10]
    wider = {n for n, step in steps.items() if step > (1 + GAP) * usual}
    if len(wider) < 2 or not 0.04 * len(steps) <= len(wider) <= 0.8 * len(steps):
        return found
    for n in steps:
        found[n] = BY_PLACE if n in wider else -BY_PLACE / 2
    return found


def _says(lines: Sequence[Line], n: int) -> float:
    """Evidence of what a line says, and of the line before it, that a reference begins with it."""
    text = lines[n].text
    ahead = text + (" " + lines[n + 1].text if n + 1 < len(lines) else "")
    if STRONG.match(text) or STARRED.match(text):
        found = 2.0
    elif FULL.match(ahead):
        found = 1.0
    elif BODY.match(ahead):
        found = 0.5
    else:
        found = -2.0 if text[0].isupper() or text[0] in QUOTES else -4.0
    if NO_AUTHOR.match(text):
        found = -4.0
    return found + (_ended(lines[n - 1], lines[n]) if n else 0.0)


def _ended(line: Line, after: Line) -> float:
    text = line.text
    if GOES_ON.search(text):
        found = -4.0
    elif ABBREVIATED.search(text):
        found = -2.0
    else:
        found = 1.0 if ENDED.search(text.rsplit(maxsplit=1)[-1]) else -2.0
    white = line.right - line.x1
    first = after.second - after.x0 if after.second > after.x0 else after.x1 - after.x0
    if line.right > line.left and white > max(first, 0.0) + 0.5 * line.size:
        return found + 2.5  # the next word had room
    return found - 0.5


def _name(text: str) -> str:
    plain = unicodedata.normalize("NFKD", text.casefold())
    return "".join(c for c in plain.partition(",")[0] if c.isalpha())[:12]


def _best_cut(lines: Sequence[Line], own: Sequence[float], *, alphabet: float) -> list[int]:
    """The beginnings with most evidence: their own, and that each reference has a year."""
    count = len(lines)
    has_year = [bool(YEAR.search(line.text)) for line in lines]
    names = [_name(line.text) for line in lines]
    best, before = [0.0] + [float("-inf")] * count, [0] * (count + 1)
    for stop in range(1, count + 1):
        year = False
        for start in range(stop - 1, max(stop - 1 - LONGEST, -1), -1):
            year = year or has_year[start]
            score = best[start] + (1.0 if year else -2.5) - 0.2 * max(stop - start - 7, 0)
            if stop < count:
                score += own[stop]
                if alphabet:
                    score += alphabet * (0.5 if names[start] <= names[stop] else -1.0)
            if score > best[stop]:
                best[stop], before[stop] = score, start
    found, at = list[int](), count
    while at > 0:
        at = before[at]
        found.append(at)
    return found[::-1]
