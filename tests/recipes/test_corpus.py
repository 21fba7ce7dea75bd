"""The corpus as a whole, by brute force over every pair."""

import hashlib
import os
import re
import subprocess
import sys

import pytest
import sacrebleu

from textmill.recipes.corpus import (
    five_new_sentences,
    load_corpus,
    nearest_sentence,
    word_for_word,
    write_corpus,
)
from textmill.recipes.corpus.parts import words_of

# sha256 of all pairs with seed 0. A change of the grammar changes it: replace it with it.
DIGEST = "11696c9fb7d7ce6696ff4fb8f7d56da71b9201f59d4a04380c4c171f2ef4aca7"

PRINT_DIGEST = """
import hashlib
from textmill.recipes.corpus import load_corpus
corpus = load_corpus()
pairs = corpus.train + corpus.valid + corpus.test
print(hashlib.sha256("\\n".join(map("\\t".join, pairs)).encode()).hexdigest())
"""


@pytest.fixture(scope="module")
def corpus():
    return load_corpus()


@pytest.fixture(scope="module")
def pairs(corpus):
    return corpus.train + corpus.valid + corpus.test


def test_sizes(corpus):
    assert (len(corpus.train), len(corpus.valid), len(corpus.test)) == (26_000, 500, 500)


@pytest.mark.parametrize("side", [0, 1])
def test_no_sentence_occurs_twice(pairs, side):
    everything = [pair[side] for pair in pairs + five_new_sentences()]
    assert len(set(everything)) == len(everything)


@pytest.mark.parametrize("side", [0, 1])
def test_every_held_out_word_is_seen(corpus, side):
    seen = {word for pair in corpus.train for word in words_of(pair[side])}
    held_out = corpus.valid + corpus.test + five_new_sentences()
    unseen = {word for pair in held_out for word in words_of(pair[side])} - seen
    assert unseen == set()


def test_every_english_word_is_in_the_dictionary(corpus, pairs):
    tokens = {
        token.removesuffix("'s")
        for en, _ in pairs
        for token in re.sub(r"[.,?]", "", en.lower()).split()
    }
    assert tokens - set(corpus.dictionary) == set()


def test_digest_is_the_same_in_another_process_with_another_hash_seed(pairs):
    ours = hashlib.sha256("\n".join(map("\t".join, pairs)).encode()).hexdigest()
    assert ours == DIGEST
    theirs = subprocess.run(
        [sys.executable, "-c", PRINT_DIGEST],
        env={**os.environ, "PYTHONHASHSEED": "7"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert theirs.stdout.strip() == DIGEST


def test_another_seed_deals_the_same_sentences_anew(corpus, pairs):
    other = load_corpus(seed=1)
    parts = other.train, other.valid, other.test
    assert [len(part) for part in parts] == [26_000, 500, 500]
    assert {pair for part in parts for pair in part} == set(pairs)
    assert len(set(other.test) & set(corpus.test)) < 50
    for side in (0, 1):
        seen = {word for pair in other.train for word in words_of(pair[side])}
        held_out = other.valid + other.test
        assert {word for pair in held_out for word in words_of(pair[side])} <= seen
    assert load_corpus(seed=1) == other


def test_surface_of_every_sentence(pairs):
    wrong_en = re.compile(r"\b(a) [aeio]|\ban [^aeiou]|\bI (is|are|has|does)\b|  ", re.IGNORECASE)
    vowel = "aeiouâàéèêëîïôœùûAEIOUÉÂÎÔ"
    wrong_fr = re.compile(
        rf"\b(le|la|je|me|te|se|ne|de|que|qu'est-ce que) (?!onze|oui)[{vowel}]"
        r"|\b(à|de) les?\b(?! [aeiouéèêâîôœh])|\bma [aeiouéèêâîôœ]|\bsa [aeiouéèêâîôœ]"
        r"|\bta [aeiou]|\bce [aeiouéèêâîôœ]|\b(beau|nouveau|vieux) (homme|ami|arbre|hôtel|oiseau)\b"
        r"|  |' |\bl'(hibou|hache|haricot|homard|héros|hamster|hérisson|harpe)"
    )
    for en, fr in pairs:
        assert re.fullmatch(r"[A-Z][A-Za-z',\- ]+[.?]", en), en
        assert re.fullmatch(r"[A-ZÉÊÎÀÂÔŒ][A-Za-zàâçéèêëîïôûùœÉÎ',\- ]+(\.| \?)", fr), fr
        assert en.endswith("?") == fr.endswith(" ?"), (en, fr)
        assert not wrong_en.search(en), en
        assert not wrong_fr.search(fr), fr


def test_every_phenomenon_is_frequent(corpus):
    french = "\n".join(fr for _, fr in corpus.train)
    patterns = [
        *(
            r"\bn(e |')\S+ pas\b",
            r"\bjamais\b",
            r"\bplus\b",
            r"\brien\b",
            r"[Ee]st-ce qu",
            r"\bau\b",
        ),
        *(r"\baux\b", r"\bdu\b", r"\bde l'", r"\bl'", r"\bqu'", r"\bmon [aeiouéè]", r"\bcet\b"),
        *(r"\bquatre-vingt", r"\bsoixante-dix|soixante et onze", r"\bs'est \S+ée\b"),
        *(r"\bsont \S+ées\b", r"era\b|eront\b", r"\bCombien d", r"\bOù\b", r"\bvieille"),
        *(r"\bheures\b", r"\bplus \w+ que\b"),
    ]
    counts = {pattern: len(re.findall(pattern, french)) for pattern in patterns}
    assert {p: n for p, n in counts.items() if n < 10} == {}


def test_both_baselines_stay_under_50_bleu(corpus):
    sources, references = [en for en, _ in corpus.test], [[fr for _, fr in corpus.test]]
    words = word_for_word(sources, corpus.dictionary)
    nearest = nearest_sentence(sources, corpus.train)
    assert 15 < sacrebleu.corpus_bleu(words, references).score < 50
    assert 15 < sacrebleu.corpus_bleu(nearest, references).score < 50


def test_files_are_written_once(tmp_path, corpus):
    folder = tmp_path / "new" / "corpus"
    paths = write_corpus(folder)
    assert sorted(p.name for p in folder.iterdir()) == ["test.tsv", "train.tsv", "valid.tsv"]
    lines = paths["test"].read_text(encoding="utf-8").splitlines()
    assert [tuple(line.split("\t")) for line in lines] == corpus.test
    before = {name: path.stat().st_mtime_ns for name, path in paths.items()}
    paths["valid"].write_text("other\n")
    write_corpus(folder)
    assert paths["train"].stat().st_mtime_ns == before["train"]
    assert paths["valid"].read_text(encoding="utf-8").count("\n") == 500
