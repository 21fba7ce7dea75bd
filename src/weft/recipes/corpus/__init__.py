"""weft's own English-French corpus, drawn from a bilingual grammar written by hand."""

from weft.recipes.corpus.baselines import nearest_sentence as nearest_sentence
from weft.recipes.corpus.baselines import word_for_word as word_for_word
from weft.recipes.corpus.parts import Corpus as Corpus
from weft.recipes.corpus.parts import five_new_sentences as five_new_sentences
from weft.recipes.corpus.parts import load_corpus as load_corpus
from weft.recipes.corpus.parts import write_corpus as write_corpus
