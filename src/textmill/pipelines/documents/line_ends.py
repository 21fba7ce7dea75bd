"""Lines to one text: words and addresses that were broken at the end of a line are whole again."""

import re
from collections import Counter
from collections.abc import Iterable, Sequence

from textmill.pipelines.documents.document import Line, Passage

Vocabulary = Counter[str]
"""How often a word, or a compound with its hyphens, stands unbroken in a document."""

WORDS = re.compile(r"[^\W\d_]+(?:[-'’][^\W\d_]+)*")
SOFT = "\u00ad"
BROKEN = re.compile(r"(?<![\w'’-])([\w'’-]*[\w'’])[-\u00ad]$")
"""A line that ends within a word, perhaps."""
NEXT = re.compile(r"[^\W\d_]+(?:[-'’][^\W\d_]+)*")
SUSPENDED = {"and", "or", "und", "oder", "et", "ou", "y", "o", "e"}
"""After a hyphen that stands for a part that follows: ``short- and long-term``."""
COMPOUNDS = {
    "all", "cross", "end", "fine", "first", "four", "high", "large", "long", "low", "near",
    "object", "one", "open", "real", "second", "self", "semi", "short", "small",
    "state", "three", "top", "two", "well", "zero",
}  # fmt: skip
"""Words that seldom begin a word, and often a compound."""
LINKING = {"a", "and", "by", "for", "in", "of", "on", "or", "the", "to", "up", "out", "off"}
"""Words within a compound of several."""
SECOND = {
    "aware", "based", "bound", "class", "coherent", "dependent", "dimensional", "driven", "free",
    "grained", "independent", "invariant", "level", "like", "orientation", "oriented",
    "order", "preserving", "scale", "sensitive", "shot", "specific", "state", "supervised", "task",
    "term", "time", "valued", "wide",
}  # fmt: skip
"""Words that seldom end another, and often a compound."""
LEAST_PART = 3
"""Letters of the second part of a compound, where nothing but its parts is seen elsewhere."""
ADDRESS = re.compile(
    r"https?:|ftp:|www\.|doi:|\b10\.\d{4,9}/|\.(?:org|com|edu|gov|net)/", re.IGNORECASE
)
"""In a word: an address."""
GOES_ON = re.compile(
    r"[\w.~%-]*[/_=&%?#~]\S*|(?:[^\W\d]|-)*+\d\w*+[.-]++\w|\d{5,}\W*"
    r"|(?:s?html?|pdf|php|org|com|edu)\b\S*|[a-z][\w-]*(?:\.[a-z]\w+)+\W*$"
)
"""How an address goes on that was broken after a letter or a full stop."""
YEAR = re.compile(r"\b(?:19|20)\d\d[a-z]?\b")
CJK = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uff00-\uffef]")


def vocabulary_of(lines: Iterable[Line]) -> Vocabulary:
    """The words of lines, but those that a line end may break."""
    found = Vocabulary()
    broken = False
    for line in lines:
        words = WORDS.findall(line.text.casefold())
        cut = line.text.endswith(("-", SOFT))
        found.update(words[broken : len(words) - cut])
        broken = cut
    return found


def join_lines(
    lines: Sequence[Line], vocabulary: Vocabulary, *, label: str | None = None
) -> Passage:
    """One text of lines, whose words are whole.

    A hyphen at the end of a line stays where the compound, and not the word without it, is seen
    elsewhere, before a capital or a digit, and between words of which both are seen and the word
    they would make is not.
    """
    parts, length = list[str](), 0
    starts = [(0, lines[0].page)]
    for before, line in zip([None, *lines], lines, strict=False):
        if parts:
            cut, glue = _between(parts[-1], line.text, vocabulary)
            parts[-1] = parts[-1][: len(parts[-1]) - cut] + glue
            length += len(glue) - cut
        if before is not None and before.page != line.page:
            starts.append((length, line.page))
        parts.append(line.text)
        length += len(line.text)
    return Passage("".join(parts).removesuffix(SOFT), label=label, starts=tuple(starts))


def _between(before: str, after: str, vocabulary: Vocabulary) -> tuple[int, str]:
    """How many characters of the first line fall, and what stands between both."""
    if before.endswith(SOFT):
        return 1, ""
    first = after.split(" ", 1)[0]
    if not before[-1].isspace() and ADDRESS.search(before.rsplit(maxsplit=1)[-1]):
        return 0, "" if _address_goes_on(before, first) else " "
    if broken := BROKEN.search(before):
        return _after_hyphen(broken[1], after, vocabulary)
    if (before[-1] in "–/-" and not before[-2:-1].isspace()) or after.startswith("-"):
        return 0, ""
    if CJK.match(before[-1]) and CJK.match(after[0]):
        return 0, ""
    return 0, " "


def _address_goes_on(before: str, first: str) -> bool:
    if before[-1] in "/_=?&%#~:-" and not before.lower().endswith("doi:"):
        return True
    if first[0] in "/_=?&%#~" or (first[0] in ".-" and first[1:2].isalnum()):
        return True
    if re.search(r"\d\.$", before) and re.match(r"\d+\W*$", first):  # a part of a DOI, or a year
        return not YEAR.match(first) or bool(YEAR.search(before))
    is_year = YEAR.fullmatch(first.strip("().,;"))
    return before[-1] not in ",;)]" and not is_year and bool(GOES_ON.match(first))


def _after_hyphen(left: str, after: str, vocabulary: Vocabulary) -> tuple[int, str]:
    word = NEXT.match(after)
    if word is None:
        return 0, "" if after[0].isalnum() else " "
    right, last = word[0], left.rpartition("-")[2]
    if right.casefold() in SUSPENDED:
        return 0, " "
    capitals = len(last) > 1 and last.isupper() and right.isupper() and len(right) > 1
    if len(last) == 1 or not last.isalpha() or (right[0].isupper() and not capitals):
        return 0, ""
    left, last, right = left.casefold(), last.casefold(), right.casefold()
    whole, compound = vocabulary[last + right], vocabulary[f"{left}-{right}"]
    if whole or compound:
        return int(whole >= compound), ""
    if "-" in right and right.partition("-")[0] in LINKING:  # end-to-end, broken after the first
        return 0, ""
    if capitals:
        return 1, ""
    listed = last in COMPOUNDS or right in SECOND or (last in LINKING and "-" in left)
    known = listed or (vocabulary[last] and vocabulary[right])
    return int(not known or len(right) < LEAST_PART), ""
