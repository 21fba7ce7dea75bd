"""textmill's own English-French corpus, drawn from a bilingual grammar written by hand."""

from textmill.recipes.corpus.parts import Corpus as Corpus
from textmill.recipes.corpus.parts import five_new_sentences as five_new_sentences
from textmill.recipes.corpus.parts import load_corpus as load_corpus
from textmill.recipes.corpus.parts import nearest_sentence as nearest_sentence
from textmill.recipes.corpus.parts import word_for_word as word_for_word
from textmill.recipes.corpus.parts import write_corpus as write_corpus
