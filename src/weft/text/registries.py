"""Names of tokenizers and features in files: a module is imported when a name is asked for."""

from weft.config.registry import Registry

tokenizers = Registry(
    "tokenizer",
    {
        "weft.text.tokenizers.character_tokenizers": ["bytes", "characters"],
        "weft.text.tokenizers.fitted_tokenizer": ["fitted"],
        "weft.text.tokenizers.huggingface": ["huggingface"],
        "weft.text.tokenizers.multilingual": ["multilingual"],
        "weft.text.tokenizers.ngram_tokenizer": ["fitted_ngrams", "ngrams"],
        "weft.text.tokenizers.pretrained": ["pretrained"],
        "weft.text.tokenizers.pretrained_sentencepiece": ["pretrained_sentencepiece"],
        "weft.text.tokenizers.word_tokenizer": ["fitted_words", "words"],
    },
    plural="tokenizers",
)
labels = Registry(
    "labels",
    {"weft.text.features.labels": ["fitted"], "weft.text.features.tree_tags": ["trees"]},
    plural="labels",
)
slots = Registry("slots", {"weft.text.features.slots": ["fitted"]}, plural="slots")
characters = Registry(
    "characters", {"weft.text.features.spelling": ["fitted"]}, plural="characters"
)
affixes = Registry("affixes", {"weft.text.features.spelling": ["fitted"]}, plural="affixes")
pieces = Registry(
    "pieces", {"weft.text.features.word_pieces": ["fitted", "pretrained"]}, plural="pieces"
)
dense = Registry("dense", {"weft.text.columns.numbers": ["fitted"]}, plural="dense")
dictionaries = Registry(
    "dictionary", {"weft.text.features.dictionaries": ["given", "phrases"]}, plural="dictionaries"
)
