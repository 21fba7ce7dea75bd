"""Expressions that published tokenizers use are read; those whose time explodes are not."""

import re
import time

import pytest
import tokenizers

from textmill.text.tokenizers.regex_safety import danger

CONTRACTIONS = "(?i:'s|'t|'re|'ve|'m|'ll|'d)"
PUBLISHED = [
    r"'(?:[sdmt]|ll|ve|re)| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+",  # GPT-2
    CONTRACTIONS  # cl100k, Llama 3
    + r"|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+",
    r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+"  # o200k
    + CONTRACTIONS
    + r"?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+",
    r"[!\"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+",
    "[\u4e00-\u9fa5\u3040-\u309f\u30a0-\u30ff]+",  # DeepSeek, this and the one above
    " ?[^(\\s|[.,!?\u2026\u3002\uff0c\u3001\u0964\u06d4\u060c])]+",  # BLOOM
    r"\p{N}{1,3}(?=(?:\p{N}{3})*$)",
    # Tekken, Qwen, DeepSeek's coder, CLIP
    r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*|\p{N}",
    CONTRACTIONS
    + r"|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)",
    r"\s?\p{L}+",
    r"<\|startoftext\|>|<\|endoftext\|>|'s|'t|'re|'ve|'m|'ll|'d|[\p{L}]+|[\p{N}]|[^\s\p{L}\p{N}]+",
    " {2,}",
    "",
]
REPEATED = "a repeated group that holds a repeat or alternatives"
WAYS = "more than 64 ways to match before something that must follow"


@pytest.mark.parametrize("pattern", PUBLISHED)
def test_published_expressions_are_known(pattern):
    assert danger(pattern) is None
    tokenizers.Regex(pattern)  # and the library reads what was read here


@pytest.mark.parametrize("pattern", PUBLISHED)
@pytest.mark.parametrize("text", [" ", "a", "aA", "a1 .", "\n", " \n", ".", "1", "'s", "é"])
def test_known_expressions_are_fast_on_long_texts(pattern, text):
    if pattern:
        split = tokenizers.pre_tokenizers.Split(tokenizers.Regex(pattern), "isolated")
        start = time.process_time()
        split.pre_tokenize_str(text * 1_000)
        assert time.process_time() - start < 1  # measured: below 0.02


@pytest.mark.parametrize(
    ("pattern", "why"),
    [
        (r"(a+)+$", REPEATED),
        (r"(a|a)*b", REPEATED),
        (r"((a|a))*b", REPEATED),
        (r"(?:(?:a*))*", REPEATED),
        (r"(a?){20}a", REPEATED),
        (r"(?:x(?:a|b)?)+", REPEATED),
        (r"(?=a+)+", REPEATED),
        (r"((((a{1000}){1000}){1000}))", "a counted repeat of a group"),
        ("a?" * 7 + "a", WAYS),
        ("(?:a|a)" * 7 + "b", WAYS),
        ("(?:a|a|a|a)" * 4 + "[^a]", WAYS),
        (f"(?:{'a|' * 64}a)b", WAYS),
        ("(?:a|a|)" * 4 + "$", WAYS),
        (r"a*a*[^a]", WAYS),
        (r"a+a+a", WAYS),
        (r"a*(?:b*(?:c*d*))e", WAYS),
        (r"(?:a*a*a*|b)a", WAYS),
        (r"(?:a*a*b)?", WAYS),
        (r"(?=a*a*b)", WAYS),
        (r"a*(?:b|a*)(?!a)", WAYS),
        (r"a*(?=a*b)", WAYS),
        (r"a{0,99}a{0,99}b", WAYS),
        (r"a*b{}a*[^a]", WAYS),
        (r"a*(?:b*[^b])?[^a]", WAYS),
        (r"(?:a|a)(?:a|a)(?:a|a)a+b", WAYS),
        (r"a{1,5000}", "a count of more than 1,000"),
        (r"a**", "a repeat of a repeat, or of nothing"),
        (r"a+*", "a repeat of a repeat, or of nothing"),
        (r"a{2}{2}", "a repeat of a repeat, or of nothing"),
        (r"*a", "a repeat of a repeat, or of nothing"),
        (r"(a", "parentheses that do not match"),
        (r"a)", "parentheses that do not match"),
        ("(" * 30 + ")" * 30, "groups nested too deeply"),
        ("a" * 4_001, "more than 4,000 characters"),
        (r"(a)\1", r"'\\1', which is not known to be safe"),
        (r"(?<x>a)\k<x>", r"'(?<x>a)\\', which is not known to be safe"),
        (r"\g<0>", r"'\\g<0>', which is not known to be safe"),
        (r"(?~a)", "'(?~a)', which is not known to be safe"),
        (r"(?i)a+", "'(?i)a+', which is not known to be safe"),
        (r"(?(1)a)", "'(?(1)a)', which is not known to be safe"),
        (r"[a", "'[a', which is not known to be safe"),
        (r"[[[a]]]", "'[[[a]]]', which is not known to be safe"),
        ("\\", r"'\\', which is not known to be safe"),
    ],
)
def test_dangers_are_told(pattern, why):
    assert danger(pattern) == why


@pytest.mark.parametrize(
    "pattern",
    [
        r"a*b*c*d*e*",  # always matches, so that nothing is tried again
        r"(?:a*a*a*|b)a*",
        r"a*a+",
        r"a+b+a{5}|a*b",
        "(?:a|a)" * 6 + "[^a]",
        "a?" * 6 + "[^a]",
        r"(?:a|a)(?:a|a)a?a{1,}(?!a)",
        r"a{1,7}a*[^a]",
        r"(?=a+[^a])a{1,7}(?=a*[^a])",
    ],
)
@pytest.mark.parametrize("text", ["a", "aaaaaab", "ab"])
def test_what_is_not_refused_is_not_slow(pattern, text):
    if danger(pattern) is None:
        split = tokenizers.pre_tokenizers.Split(tokenizers.Regex(pattern), "isolated")
        start = time.process_time()
        split.pre_tokenize_str(text * (1_000 // len(text)))
        assert time.process_time() - start < 2  # measured: below 0.1
    else:
        assert danger(pattern) == WAYS


def test_a_repeated_group_of_exact_counts_has_one_way_only():
    assert danger(r"(?:\d{3}x)+") is None
    assert re.fullmatch(r"(?:\d{3}x)+", "123x456x")
