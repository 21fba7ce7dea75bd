"""Whether the ids of another run stand for the same pieces."""

from pathlib import Path

from torch import nn

from weft.checkpoint.layout import text_folder
from weft.checkpoint.manifest import Manifest
from weft.checkpoint.saved_text import verify_text
from weft.errors import CheckpointError
from weft.text.processors.text_processor import TextProcessor, load_text_processor
from weft.text.tokenizers.tokenizer import Tokenizer

__all__ = ["difference", "tables", "text_of"]

OUTPUTS = ("output_weight", "output_bias")
"""Parameters that score each token where no table of tokens does."""


def text_of(checkpoint: Path) -> TextProcessor | None:
    """The text processor that a checkpoint was trained with; None where it has none.

    Raises:
        CheckpointError: It is damaged.
        SavedTextError: It is of a kind that is not known here.
    """
    try:
        if not verify_text(checkpoint, Manifest.read(checkpoint)):
            return None
    except CheckpointError as error:
        raise CheckpointError(f"{checkpoint}: {error}") from error
    return load_text_processor(text_folder(checkpoint))


def _tokenizer(text: TextProcessor) -> Tokenizer | None:
    found = text.ingredients.get("tokenizer")
    return found if isinstance(found, Tokenizer) else None


def difference(here: TextProcessor, there: TextProcessor | None) -> str | None:
    """How the pieces of a text processor differ from another's; None where not, or there are none.

    Example:
        >>> from weft.text.processors.masked_language_model import MaskedText
        >>> from weft.text.tokenizers.word_tokenizer import WordTokenizer
        >>> one, two = (WordTokenizer.Config(words=words).build() for words in (("a",), ("b", "c")))
        >>> difference(MaskedText(one), MaskedText(two))
        "3 ids here, 4 there; id 2 is 'a' here and 'b' there"
    """
    tokenizer, other = _tokenizer(here), None if there is None else _tokenizer(there)
    if tokenizer is None or other is None:
        return None
    pieces = [
        each.create_decoder().batch([[number] for number in range(each.vocab_info.size)])
        for each in (tokenizer, other)
    ]
    if pieces[0] == pieces[1]:
        return None
    said = f"{len(pieces[0]):,} ids here, {len(pieces[1]):,} there"
    for number, (one, two) in enumerate(zip(*pieces, strict=False)):
        if one != two:
            return f"{said}; id {number} is {one!r} here and {two!r} there"
    return said


def tables(module: nn.Module, text: TextProcessor) -> list[str]:
    """The names of a module's tensors that have a row for each id of a text processor's vocabulary.

    Example:
        >>> from weft.text.processors.masked_language_model import MaskedText
        >>> from weft.text.tokenizers.word_tokenizer import WordTokenizer
        >>> text = MaskedText(WordTokenizer.Config(words=("a", "b")).build())
        >>> tables(nn.Sequential(nn.Embedding(4, 2), nn.Linear(4, 2)), text)
        ['0.weight']
    """
    tokenizer = _tokenizer(text)
    if tokenizer is None:
        return []
    size = tokenizer.vocab_info.size
    layers = [(n, m) for n, m in module.named_modules() if isinstance(m, nn.Embedding)]
    found = [f"{name}.weight".lstrip(".") for name, m in layers if m.num_embeddings == size]
    outputs = module.named_parameters(remove_duplicate=False)
    return found + [n for n, p in outputs if n.split(".")[-1] in OUTPUTS and len(p) == size]
