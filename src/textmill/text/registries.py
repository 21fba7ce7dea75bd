"""Names of tokenizers and features in files: a module is imported when a name is asked for."""

from textmill.config.registry import Registry

tokenizers = Registry(
    "tokenizer",
    {
        "textmill.text.tokenizers.character_tokenizers": ["bytes", "characters"],
        "textmill.text.tokenizers.fitted_tokenizer": ["fitted"],
        "textmill.text.tokenizers.huggingface": ["huggingface"],
        "textmill.text.tokenizers.sentencepiece": ["multilingual"],
        "textmill.text.tokenizers.ngram_tokenizer": ["fitted_ngrams", "ngrams"],
        "textmill.text.tokenizers.pretrained": ["pretrained", "pretrained_sentencepiece"],
        "textmill.text.tokenizers.word_tokenizer": ["fitted_words", "words"],
    },
    plural="tokenizers",
)
labels = Registry(
    "labels",
    {
        "textmill.text.features.labels": ["fitted"],
        "textmill.text.features.tree_actions": ["tree_actions"],
        "textmill.text.features.tree_tags": ["trees"],
    },
    plural="labels",
)
slots = Registry("slots", {"textmill.text.features.slots": ["fitted"]}, plural="slots")
characters = Registry(
    "characters", {"textmill.text.features.spelling": ["fitted"]}, plural="characters"
)
affixes = Registry("affixes", {"textmill.text.features.spelling": ["fitted"]}, plural="affixes")
pieces = Registry(
    "pieces", {"textmill.text.features.spelling": ["fitted", "pretrained"]}, plural="pieces"
)
dense = Registry("dense", {"textmill.text.columns.numbers": ["fitted", "words"]}, plural="dense")
dictionaries = Registry(
    "dictionary", {"textmill.text.columns.dictionary": ["given", "phrases"]}, plural="dictionaries"
)
