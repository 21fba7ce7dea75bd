"""Text to arrays and back: tokenizers, ragged arrays, the text-to-answer path. No torch here."""

from typing import TYPE_CHECKING

from weft.config.public_names import on_first_use

if TYPE_CHECKING:
    from weft.text.processors.text_processor import Encoded as Encoded
    from weft.text.processors.text_processor import Seq2SeqText as Seq2SeqText
    from weft.text.processors.text_processor import TextProcessor as TextProcessor
    from weft.text.processors.text_processor import load_text_processor as load_text_processor
    from weft.text.ragged import Ragged as Ragged
    from weft.text.tokenizers.character_tokenizers import ByteTokenizer as ByteTokenizer
    from weft.text.tokenizers.character_tokenizers import CharacterTokenizer as CharacterTokenizer
    from weft.text.tokenizers.fitted_tokenizer import FittedTokenizer as FittedTokenizer
    from weft.text.tokenizers.huggingface import HuggingFaceTokenizer as HuggingFaceTokenizer
    from weft.text.tokenizers.multilingual import MultilingualTokenizer as MultilingualTokenizer
    from weft.text.tokenizers.sentencepiece import train_sentencepiece as train_sentencepiece
    from weft.text.tokenizers.tokenizer import Decoder as Decoder
    from weft.text.tokenizers.tokenizer import Encoder as Encoder
    from weft.text.tokenizers.tokenizer import Tokenizer as Tokenizer
    from weft.text.tokenizers.tokenizer import VocabInfo as VocabInfo
    from weft.text.tokenizers.tokenizer import load_tokenizer as load_tokenizer

__getattr__, __dir__ = on_first_use(__name__)
