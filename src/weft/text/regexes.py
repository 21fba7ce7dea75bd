r"""Whether a stranger's regular expression can be run: none whose time explodes.

A ``tokenizer.json`` holds expressions, run by Oniguruma, which backtracks: ``(a+)+$`` takes time
exponential in the length of a text. It gives up after ten million steps at one place (0.2 s), with
a panic; so what can explode is refused when the file is read.
"""

import re
from dataclasses import dataclass

__all__ = ["danger"]

LONGEST = 4_000
"""Characters; the published ones (GPT-2, Llama 3, o200k, DeepSeek) have 70 to 400."""
MOST_REPEATS = 4
"""Repeats in one alternative: each can multiply the time by the length of the text. o200k has 4."""
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
class _Group:
    """What stands between two parentheses, as far as it matters for time."""

    repeats: int = 0
    """In the alternative that is being read."""
    most: int = 0
    """In the alternative that has most."""
    choices: bool = False
    """Whether it has alternatives."""

    def end_alternative(self) -> None:
        self.most, self.repeats = max(self.most, self.repeats), 0


def danger(pattern: str) -> str | None:
    r"""Why an expression is not run; None where its time is a small power of the text's length.

    Refused are a repeated group that holds a repeat or alternatives (exponential), more than four
    repeats in a row, counts over 1,000, references and calls, and all syntax that published
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
    return "parentheses that do not match" if len(stack) > 1 else None


_Before = _Group | str | None
"""What a repeat would repeat: a group, or one character; None at a start and after a repeat."""


def _read(token: re.Match[str], stack: list[_Group], before: _Before) -> tuple[str | None, _Before]:
    """Why the expression is refused at this token, and what stands before the next."""
    group = stack[-1]
    if token["open"]:
        stack.append(_Group())
        return ("groups nested too deeply" if len(stack) > DEEPEST else None), None
    if token["close"]:
        if len(stack) == 1:
            return "parentheses that do not match", None
        closed = stack.pop()
        closed.end_alternative()
        stack[-1].repeats += closed.most
        stack[-1].choices |= closed.choices
        return _too_many(stack[-1]), closed
    if token["either"]:
        group.end_alternative()
        group.choices = True
        return None, None
    if token["repeat"]:
        return _repeat(token, before) or _counted(token, group), None
    return None, "one"


def _repeat(token: re.Match[str], before: _Before) -> str | None:
    if before is None:
        return "a repeat of a repeat, or of nothing"
    if isinstance(before, _Group) and token["repeat"][0] != "?":
        if before.most or before.choices:
            return "a repeated group that holds a repeat or alternatives"
        if token["repeat"][0] == "{":
            return "a counted repeat of a group"
    if max(int(token["low"] or 0), int(token["high"] or 0)) > LARGEST_COUNT:
        return f"a count of more than {LARGEST_COUNT:,}"
    return None


def _counted(token: re.Match[str], group: _Group) -> str | None:
    exact = token["repeat"][0] == "{" and (not token["comma"] or token["low"] == token["high"])
    group.repeats += not exact  # exactly three digits: there is nothing to choose
    return _too_many(group)


def _too_many(group: _Group) -> str | None:
    return f"more than {MOST_REPEATS} repeats in a row" if group.repeats > MOST_REPEATS else None
