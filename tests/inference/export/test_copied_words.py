"""Answers that repeat unknown words of their sources, as the run and its exports have them."""

import pytest
import torch

from textmill.errors import UserError
from textmill.exported import load
from textmill.inference import Predictor
from textmill.inference.export.folder import refuse_unsupported, write_export
from textmill.models.decoding import Decoding
from textmill.models.transformer import Transformer
from textmill.tasks.generation import SemanticParsing
from textmill.text.tokenizers.tokenizer import UNKNOWN
from textmill.text.tokenizers.word_tokenizer import WordTokenizer

ROWS = [
    {"source": source}
    for source in ("call Ann Lee", "call", "up Bo call Li Ann Cy Di", "Ann", "call call Bo")
]


def parser(**settings):
    """A model that knows three words, and says most often that it does not."""
    words = ("[IN:CALL", "]", "call")
    tokenizer = WordTokenizer.Config(words=words, lowercase=False, marks=True).build()
    torch.manual_seed(4)
    sizes = {"dim": 8, "num_heads": 2, "num_encoder_layers": 1, "num_decoder_layers": 1}
    module = Transformer.Config(**sizes, max_length=24, output_bias=True).build(tokenizer=tokenizer)
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.add_(0.4 * torch.randn_like(parameter))
        module.output_bias[tokenizer.vocab_info.unk_idx] += 4
    decoding = Decoding(beam_size=3, n_best=2, early_stopping="first", max_length_b=6)
    config = SemanticParsing.Config(copy_unknown=True, decoding=decoding, **settings)
    return Predictor(config.build(module=module, tokenizer=tokenizer), checkpoint="made")


def test_unknown_words_are_copied_alike(tmp_path):
    predictor = parser(answer_prefix="[IN:CALL")
    found = write_export(
        predictor, "ctranslate2", tmp_path / "out", rows=ROWS, where="rows", source={}
    )
    assert found.same == found.rows == len(ROWS)
    answers = load(tmp_path / "out", device="cpu", threads=1)(ROWS)
    expected = predictor(ROWS)
    assert [[a.text, *(b.text for b in a.alternatives)] for a in answers] == [
        [a.text, *(b.text for b in a.alternatives)] for a in expected
    ]
    assert "Ann Lee" in answers[0].text
    assert UNKNOWN in answers[1].text  # of whose source all words are known


@pytest.mark.parametrize("name", ["complete", "answer_row", "check"])
def test_a_method_of_ones_own_is_refused(name):
    task = parser().task
    task.__class__ = type("Own", (type(task),), {name: lambda self, *_: None})
    with pytest.raises(UserError, match=f"  Own has a method of its own, {name}\n"):
        refuse_unsupported(task, "ctranslate2")
