r"""Whether a stranger's regular expression can be run: none whose time explodes.

A ``tokenizer.json`` holds expressions, run by Oniguruma, which backtracks: ``(a+)+$`` takes time
exponential in the length of a text. It gives up after ten million steps at one place (0.2 s), with
a panic; so what can explode is refused when the file is read.
"""

import re
from dataclasses import dataclass, field, replace

__all__ = ["danger"]

LONGEST = 4_000
"""Characters; the published ones (GPT-2, Llama 3, o200k, DeepSeek) have 70 to 400."""
MOST_WAYS = 64
"""In which what stands before something required can match; each is tried where that is missing.
The published ones have 27 at most; with 64, ten thousand characters take 2.3 s at worst."""
REPEAT_WAYS = 9
"""What a repeat without an end counts, its ways being as many as there are characters: so two of
them before something required are too many, as their time grows with the cube of the length."""
LARGEST_COUNT = 1_000
DEEPEST = 20

_TOKEN = re.compile(
    r"""
    (?P<escape>\\[pP]\{\^?[A-Za-z_\ ]{1,40}\} | \\x[0-9A-Fa-f]{2} | \\x\{[0-9A-Fa-f]{1,8}\}
        | \\u[0-9A-Fa-f]{4} | \\[^kgKGXRNOpPxu0-9])
    | (?P<class>\[\^?\]?(?:\\[pP]\{\^?[A-Za-z_\ ]{1,40}\} | \[:\^?[a-z]{1,10}:\] | \\[^pP0-9]
        | \[[^\]\[\\]*\] | [^\]\[\\])*\])
    | (?P<open>\((?: (?!\?) | \?(?: [imx]{0,3}: | [=!>] | <[=!] )))
    | (?P<close>\))
    | (?P<either>\|)
    | (?P<repeat>[*+?][?+]? | \{(?P<low>\d{0,6})(?P<comma>,?)(?P<high>\d{0,6})\}\??)
    | (?P<other>[^\\\[\](){}*+?|])
    """,
    re.VERBOSE | re.DOTALL,
)


@dataclass
class _Item:
    """A character or a group, as far as it matters for time."""

    ways: int = 1
    """In which it matches, of which another is tried where what follows does not fit."""
    cost: int = 0
    """The most ways inside that are tried before it fails."""
    required: bool = True
    """Whether it can be missing, so that other ways of what stands before it are tried."""
    varies: bool = False
    """Whether it holds a repeat or alternatives."""
    group: bool = False
    repeated: bool = False


@dataclass
class _Group:
    """What stands between two parentheses."""

    looks: bool = False
    """Whether it looks ahead or behind: once it has matched, no other way is tried."""
    now: _Item = field(default_factory=lambda: _Item(required=False))
    """The alternative that is being read."""
    ended: list[_Item] = field(default_factory=list)
    """The alternatives before."""

    def add(self, item: _Item | None) -> str | None:
        """Puts an item after the others; says why that is too much."""
        now = self.now
        if item is None:
            return None
        if item.required:
            now.cost = max(now.cost, now.ways * max(item.cost, 1))
        now.cost = max(now.cost, item.cost)
        now.ways = min(now.ways * max(item.ways, item.cost), LONGEST)
        now.required |= item.required
        now.varies |= item.varies
        if now.cost > MOST_WAYS:
            return f"more than {MOST_WAYS} ways to match before something that must follow"
        return None

    def closed(self) -> _Item:
        """The group as an item."""
        all_ = [*self.ended, self.now]
        return _Item(
            ways=1 if self.looks else sum(one.ways for one in all_),
            cost=max(one.cost for one in all_),
            required=self.looks or all(one.required for one in all_),
            varies=len(all_) > 1 or self.now.varies,
            group=True,
        )


def danger(pattern: str) -> str | None:
    r"""Why an expression is not run; None where its time is a small power of the text's length.

    Refused are a repeated group that holds a repeat or alternatives (exponential); more than 64
    ways to match before something that must follow, where a repeat without an end counts nine and
    factors multiply; counts over 1,000; references and calls; and all syntax that published
    tokenizers do not use.

    >>> danger(r" ?\p{L}+|\s+(?!\S)|\s+")
    >>> danger(r"(a+)+$")
    'a repeated group that holds a repeat or alternatives'
    """
    if len(pattern) > LONGEST:
        return f"more than {LONGEST:,} characters"
    stack, before, place = [_Group()], None, 0
    while place < len(pattern):
        token = _TOKEN.match(pattern, place)
        if token is None:
            return f"{pattern[place : place + 8]!r}, which is not known to be safe"
        why, before = _read(token, stack, before)
        if why:
            return why
        place = token.end()
    return "parentheses that do not match" if len(stack) > 1 else stack[-1].add(before)


def _read(
    token: re.Match[str], stack: list[_Group], before: _Item | None
) -> tuple[str | None, _Item | None]:
    """Why the expression is refused at this token, and what a repeat after it would repeat.

    The item read last, ``before``, is not yet in an open group of ``stack``; at a start it is None.
    """
    if token["repeat"]:
        return _repeated(token, before)
    if why := stack[-1].add(before):
        return why, None
    if token["open"]:
        stack.append(_Group(looks=token["open"][-1] in "=!"))
        return ("groups nested too deeply" if len(stack) > DEEPEST else None), None
    if token["close"]:
        if len(stack) == 1:
            return "parentheses that do not match", None
        return None, stack.pop().closed()
    if token["either"]:
        group = stack[-1]  # of which the next alternative begins
        group.ended, group.now = [*group.ended, group.now], _Item(required=False)
        return None, None
    return None, _Item()


def _repeated(token: re.Match[str], item: _Item | None) -> tuple[str | None, _Item | None]:
    """Why an item is not to be repeated so, or the item with its repeat."""
    kind, low, high = token["repeat"][0], token["low"], token["high"]
    if item is None or item.repeated:
        return "a repeat of a repeat, or of nothing", None
    if item.group and kind != "?":
        if item.varies:
            return "a repeated group that holds a repeat or alternatives", None
        if kind == "{":
            return "a counted repeat of a group", None
    if max(int(low or 0), int(high or 0)) > LARGEST_COUNT:
        return f"a count of more than {LARGEST_COUNT:,}", None
    if kind == "{" and low and (not token["comma"] or low == high):
        return None, replace(item, repeated=True)  # three digits: there is nothing to choose
    ways = REPEAT_WAYS
    if kind == "?":
        ways = item.ways + 1
    elif kind == "{" and high:
        ways = min(REPEAT_WAYS, max(1, int(high) - int(low or 0) + 1))
    # "{}" is no repeat but two characters, which are required.
    required = kind == "+" or (kind == "{" and (int(low or 0) > 0 or not (low or high)))
    return None, replace(item, ways=ways, required=required, varies=True, repeated=True)
