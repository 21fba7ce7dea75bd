"""What the grammar writes is what textmill ships."""

import bz2
from importlib.resources import files

from textmill.recipes.corpus import load_corpus
from textmill.recipes.corpus.parts import FILE
from tools.corpus.generate import generate, table


def test_the_shipped_file_is_what_the_grammar_writes():
    shipped = bz2.decompress((files("textmill.recipes.corpus") / FILE).read_bytes())
    assert shipped == table()  # else: python -m tools.corpus


def test_another_seed_is_another_corpus():
    corpus, other = load_corpus(), generate(seed=1)
    pairs = corpus.train + corpus.valid + corpus.test
    assert len(set(other) & set(pairs)) < 3000
    assert len(other) == 27_005
