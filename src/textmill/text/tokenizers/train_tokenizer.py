"""Fitting BPE and word vocabularies: texts to the bytes of a tokenizer.json.

The same texts and settings give the same bytes. Special ids are pad 0, unk 1, bos 2, eos 3.
"""

import json
import re
from collections.abc import Iterable
from typing import Any, Literal

from textmill.errors import UserError
from textmill.text.tokenizers.character_tokenizers import covering
from textmill.text.tokenizers.single_thread import tokenizers
from textmill.text.tokenizers.tokenizer import TooLargeVocabularyError, not_text, refuse_huge

JsonKind = Literal["bpe", "byte_bpe", "words"]
SPECIAL = ("<pad>", "<unk>", "<s>", "</s>")
"""No kind can learn such a piece: all split words from punctuation."""
UNK = SPECIAL[1]
_SPACES = re.compile(r"[\t-\r \x85\u1680\u2028\u2029]")
"""Where words are split, after NFKC, which makes the other spaces plain ones."""
_WORDS = tokenizers.Regex(r"▁?[\p{L}\p{M}]+|▁?\p{N}+|▁?[^▁\p{L}\p{M}\p{N}]+|▁")
"""Letters, digits and the rest apart, each with the space before it: no piece goes across."""


def fit_tokenizer_json(
    texts: Iterable[str],
    kind: JsonKind,
    *,
    vocab_size: int,
    character_coverage: float = 1.0,
    min_count: int = 1,
    lowercase: bool = False,
) -> bytes:
    """Fits a vocabulary to texts.

    Args:
        texts: The training texts; they are read up to four times, and not held.
        kind: ``bpe``: byte pair encoding of characters (Sennrich et al. 2016,
            https://arxiv.org/abs/1508.07909); ``byte_bpe``: of UTF-8 bytes, so that nothing is
            unknown and every text comes back exactly (GPT-2); ``words``: whole words and
            punctuation marks, the most frequent ones.
        vocab_size: Number of pieces, the four special ones included; of words: at most.
        character_coverage: Share of the text's characters that get a piece (not for bytes, words).
        min_count: How often a pair of pieces must occur to become one; a word, to be known.
        lowercase: Whether texts are written small first (bpe, words).

    Raises:
        UserError: The text is empty, or no vocabulary of this size can be made; names the nearest.

    Example:
        >>> raw = fit_tokenizer_json(["the cat sat", "the dog sat"], "words", vocab_size=7)
        >>> list(json.loads(raw)["model"]["vocab"])
        ['<pad>', '<unk>', '<s>', '</s>', 'sat', 'the', 'cat']
    """
    _check_size(kind, vocab_size)
    if error := not_text(texts):
        raise error
    library = _untrained(kind, lowercase=lowercase)
    settings: dict[str, Any] = {"min_frequency": min_count, "show_progress": False}
    if kind == "words":
        settings |= {"vocab_size": vocab_size, "special_tokens": [*SPECIAL]}
        trainer = tokenizers.trainers.WordLevelTrainer(**settings)
        library.train_from_iterator(texts, trainer)
        return _written(library, vocab_size, exactly=False)
    if kind == "byte_bpe":
        settings["initial_alphabet"] = tokenizers.pre_tokenizers.ByteLevel.alphabet()
    else:
        settings |= _alphabet(library, texts, character_coverage)
    settings |= {"vocab_size": vocab_size, "special_tokens": [*SPECIAL]}
    library.train_from_iterator(texts, tokenizers.trainers.BpeTrainer(**settings))
    return _written(library, vocab_size, exactly=True)


def _check_size(kind: JsonKind, vocab_size: int) -> None:
    least = len(SPECIAL) + (256 if kind == "byte_bpe" else 1)
    refuse_huge(vocab_size)
    if vocab_size < least:
        raise UserError(
            f"vocab_size={vocab_size} is too small: the special pieces take {len(SPECIAL)}"
            f"{', the bytes 256' if kind == 'byte_bpe' else ''}. Set vocab_size to {least} or more."
        )


def _untrained(kind: str, *, lowercase: bool) -> tokenizers.Tokenizer:
    """The steps around the model."""
    model: tokenizers.models.Model
    if kind == "words":
        model = tokenizers.models.WordLevel({UNK: 0}, unk_token=UNK)
    else:
        model = tokenizers.models.BPE(unk_token=None if kind == "byte_bpe" else UNK)
    library = tokenizers.Tokenizer(model)
    if kind == "byte_bpe":
        library.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
        library.decoder = tokenizers.decoders.ByteLevel()
        return library
    # Spaces need no rule of their own: words are split at any, which is 1.3 to 1.7 times as fast.
    library.normalizer = tokenizers.normalizers.NFKC()
    if lowercase:
        steps = [library.normalizer, tokenizers.normalizers.Lowercase()]
        library.normalizer = tokenizers.normalizers.Sequence(steps)
    if kind == "bpe":
        apart = tokenizers.pre_tokenizers.Split(_WORDS, "isolated")
        library.pre_tokenizer = tokenizers.pre_tokenizers.Sequence(
            [tokenizers.pre_tokenizers.Metaspace(), apart]
        )
        library.decoder = tokenizers.decoders.Metaspace()
    else:
        library.pre_tokenizer = tokenizers.pre_tokenizers.BertPreTokenizer()
    return library


def _alphabet(
    library: tokenizers.Tokenizer, texts: Iterable[str], coverage: float
) -> dict[str, Any]:
    """The characters that get a piece, chosen here: the library would draw among equal ones."""
    normal = library.normalizer
    written = (_SPACES.sub("", normal.normalize_str(text)) for text in texts)
    characters = covering(written, coverage)
    if not characters:
        raise UserError("The tokenizer's training text is empty: no line of it holds a character.")
    if isinstance(library.pre_tokenizer, tokenizers.pre_tokenizers.Sequence):
        characters = list(dict.fromkeys(["▁", *characters]))
    return {"initial_alphabet": characters, "limit_alphabet": len(characters)}


def _written(library: tokenizers.Tokenizer, vocab_size: int, *, exactly: bool) -> bytes:
    """The file, with the pieces in the order of their ids, which the library does not keep."""
    content = json.loads(library.to_str())
    vocab = dict(sorted(content["model"]["vocab"].items(), key=lambda item: item[1]))
    if len(vocab) <= len(SPECIAL):
        raise UserError("The tokenizer's training text is empty: no line of it holds a character.")
    if len(vocab) > vocab_size:
        raise UserError(
            f"vocab_size={vocab_size} is too small: the text's characters and the special pieces "
            f"take {len(vocab)}. Set vocab_size to {len(vocab)} or more, or character_coverage "
            "below 1.0 (0.9995)."
        )
    if exactly and len(vocab) < vocab_size:
        raise TooLargeVocabularyError(vocab_size, len(vocab))
    content["model"]["vocab"] = vocab
    return _file(content)


def _file(content: dict[str, Any]) -> bytes:
    kept = ("normalizer", "pre_tokenizer", "decoder", "model")
    plain = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False}
    added = [
        {"id": i, "content": name} | plain | {"special": True} for i, name in enumerate(SPECIAL)
    ]
    out = {"version": "1.0", "truncation": None, "padding": None, "added_tokens": added}
    out |= {"post_processor": None} | {name: content.get(name) for name in kept}
    return json.dumps(out, ensure_ascii=False, separators=(",", ":")).encode()
