"""Text to arrays and back: tokenizers, ragged arrays, the text-to-answer path. No torch here."""

import importlib
from typing import TYPE_CHECKING, Any

from weft.text.fitted import FittedTokenizer as FittedTokenizer
from weft.text.multilingual import MultilingualTokenizer as MultilingualTokenizer
from weft.text.paths import Encoded as Encoded
from weft.text.paths import Seq2SeqText as Seq2SeqText
from weft.text.paths import TextPath as TextPath
from weft.text.paths import load_text_path as load_text_path
from weft.text.ragged import Ragged as Ragged
from weft.text.sentencepiece import train_sentencepiece as train_sentencepiece
from weft.text.symbols import ByteTokenizer as ByteTokenizer
from weft.text.symbols import CharacterTokenizer as CharacterTokenizer
from weft.text.tokenizer import Decoder as Decoder
from weft.text.tokenizer import Encoder as Encoder
from weft.text.tokenizer import Tokenizer as Tokenizer
from weft.text.tokenizer import VocabInfo as VocabInfo
from weft.text.tokenizer import load_tokenizer as load_tokenizer

if TYPE_CHECKING:
    from weft.text.huggingface import HuggingFaceTokenizer as HuggingFaceTokenizer


def __getattr__(name: str) -> Any:
    if name == "HuggingFaceTokenizer":  # its package takes 30 ms that others need not wait for
        return importlib.import_module("weft.text.huggingface").HuggingFaceTokenizer
    raise AttributeError(f"module 'weft.text' has no attribute '{name}'")
