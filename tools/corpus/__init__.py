"""The bilingual grammar, written by hand, that textmill's own English-French corpus was drawn from.

What it writes is kept as ``src/textmill/recipes/corpus/corpus.tsv.bz2``, a test compares the two,
and ``python -m tools.corpus`` writes it anew where the grammar was changed.
"""
