"""The bilingual grammar, written by hand, that weft's own English-French corpus was drawn from.

What it writes is kept as ``src/weft/recipes/corpus/corpus.tsv.bz2``, a test compares the two, and
``python -m tools.corpus`` writes it anew where the grammar was changed.
"""
