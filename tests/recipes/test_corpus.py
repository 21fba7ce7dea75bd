"""The corpus as a whole, by brute force over every pair."""

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


@pytest.fixture(scope="module")
def corpus():
    return load_corpus()


@pytest.fixture(scope="module")
def pairs(corpus):
    return corpus.train + corpus.valid + corpus.test


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


@pytest.mark.slow
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


@pytest.mark.slow
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
