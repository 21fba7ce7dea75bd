"""Text to arrays and back: tokenizers, ragged arrays, the text-to-answer path. No torch here."""

from typing import TYPE_CHECKING

from textmill.config.public_names import on_first_use

if TYPE_CHECKING:
    from textmill.text.processors.seq2seq import Seq2SeqText as Seq2SeqText
    from textmill.text.processors.text_processor import Encoded as Encoded
    from textmill.text.processors.text_processor import TextProcessor as TextProcessor
    from textmill.text.processors.text_processor import load_text_processor as load_text_processor
    from textmill.text.ragged import Ragged as Ragged
    from textmill.text.tokenizers.character_tokenizers import ByteTokenizer as ByteTokenizer
    from textmill.text.tokenizers.character_tokenizers import (
        CharacterTokenizer as CharacterTokenizer,
    )
    from textmill.text.tokenizers.fitted_tokenizer import FittedTokenizer as FittedTokenizer
    from textmill.text.tokenizers.huggingface import HuggingFaceTokenizer as HuggingFaceTokenizer
    from textmill.text.tokenizers.sentencepiece import (
        MultilingualTokenizer as MultilingualTokenizer,
    )
    from textmill.text.tokenizers.sentencepiece import train_sentencepiece as train_sentencepiece
    from textmill.text.tokenizers.tokenizer import Decoder as Decoder
    from textmill.text.tokenizers.tokenizer import Encoder as Encoder
    from textmill.text.tokenizers.tokenizer import Tokenizer as Tokenizer
    from textmill.text.tokenizers.tokenizer import VocabInfo as VocabInfo
    from textmill.text.tokenizers.tokenizer import load_tokenizer as load_tokenizer

__getattr__, __dir__ = on_first_use(__name__)
