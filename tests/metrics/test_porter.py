"""Stems are those of NLTK's stemmer, which rouge-score takes."""

import random
import re
from pathlib import Path

from nltk.stem.porter import PorterStemmer

from textmill.metrics.rouge import stem

ENDINGS = [
    "ational", "tional", "enci", "anci", "izer", "bli", "alli", "entli", "eli", "ousli",
    "ization", "ation", "ator", "alism", "iveness", "fulness", "ousness", "aliti", "iviti",
    "biliti", "fulli", "logi", "icate", "ative", "alize", "iciti", "ical", "ful", "ness", "al",
    "ance", "ence", "er", "ic", "able", "ible", "ant", "ement", "ment", "ent", "ion", "sion",
    "tion", "ou", "ism", "ate", "iti", "ous", "ive", "ize", "sses", "ies", "ss", "s", "ied",
    "eed", "ed", "ing", "y", "ly", "e", "ll", "l", "at", "bl", "iz",
]  # fmt: skip


def word(chance: random.Random) -> str:
    letters = "".join(chance.choices("aeiouybcdlnrstwxz", k=chance.randint(0, 6)))
    return letters + "".join(chance.choices(ENDINGS, k=chance.randint(0, 2)))


def test_made_words_have_the_stems_of_nltk() -> None:
    chance, oracle = random.Random(1), PorterStemmer()
    words = {word(chance) for _ in range(20_000)} - {""}
    assert len(words) > 10_000
    assert [(w, stem(w)) for w in words] == [(w, oracle.stem(w)) for w in words]


def test_irregular_and_short_words() -> None:
    oracle = PorterStemmer()
    words = "sky skies dying lying tying news innings outing cannings howe proceed exceed succeed"
    for one in [*words.split(), "a", "is", "ties", "died", "tied", "by", "oed", "3d", "a1b2s"]:
        assert stem(one) == oracle.stem(one)


def test_all_words_of_abstracts(shared_data: Path) -> None:
    text = (shared_data / "scitldr" / "dev.jsonl").read_text(encoding="utf-8").lower()
    words, oracle = set(re.findall(r"[a-z0-9]+", text)), PorterStemmer()
    assert len(words) > 5_000
    assert {w: stem(w) for w in words} == {w: oracle.stem(w) for w in words}
