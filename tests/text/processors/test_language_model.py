"""The text processor of language models: rows end with a mark, answers go on where a text stops."""

import pytest
from tokenizers import processors

from tests.pretrained_checkpoints import byte_pairs
from textmill.errors import UserError
from textmill.text.processors.language_model import Continued, LanguageText, MeasuredText
from textmill.text.tokenizers.character_tokenizers import ByteTokenizer, CharacterTokenizer
from textmill.text.tokenizers.fitted_tokenizer import FittedTokenizer
from textmill.text.tokenizers.pretrained import PretrainedTokenizer
from textmill.text.tokenizers.word_tokenizer import WordTokenizer


def begins_texts(folder):
    """A tokenizer that puts a mark before a text."""
    made = byte_pairs(("<unk>", "<s>", "</s>"))
    made.post_processor = processors.TemplateProcessing(
        single="<s> $A", special_tokens=[("<s>", 1)]
    )
    made.save(str(folder / "tokenizer.json"))
    return PretrainedTokenizer.Config(path=folder / "tokenizer.json").build()


LINES = ["to be, or", "", "not to be"]
TOKENIZERS = {
    "words": lambda folder: WordTokenizer.Config(
        words=("to", "be,", "or", "not", "be"), marks=True
    ).build(),
    "characters": lambda folder: CharacterTokenizer.fit(LINES),
    "bytes": lambda folder: ByteTokenizer.Config().build(),
    "subwords": lambda folder: FittedTokenizer.Config(
        kind="byte_bpe", vocab_size=266, cache_dir=folder
    ).build(train_data=[{"text": line} for line in LINES * 9]),
    "pretrained": begins_texts,
}


@pytest.fixture(params=TOKENIZERS)
def text(request, tmp_path):
    return LanguageText.of(TOKENIZERS[request.param](tmp_path))


def test_rows_end_with_the_mark_and_come_back(text):
    rows = list(text.encode([{"text": line} for line in LINES], with_targets=True)["text"])
    assert [row[-1] for row in rows] == [text.eos_idx] * 3
    assert len(rows[1]) == 1
    assert text.decode(rows) == [f"{line}\n" for line in LINES]
    assert (text.input_columns, text.target_columns) == (("text",), ())


def test_what_begins_a_text_is_no_token_of_a_row(tmp_path):
    text = LanguageText.of(begins_texts(tmp_path))
    assert (text.begin_idx, text.eos_idx) == (1, 2)
    assert all(1 not in row for row in text.encode([{"text": "be"}], with_targets=True)["text"])
    assert 1 not in text.begun(["be"])[0]
    plain = LanguageText.of(ByteTokenizer.Config().build())
    assert plain.begin_idx == plain.eos_idx


def test_texts_to_go_on_with_have_no_end(text):
    begun = text.begun(LINES)
    assert all(text.eos_idx not in ids for ids in begun)
    assert text.decode(begun) == LINES
    assert text.begun([]) == []
    (joined,) = text.begun(["\n".join(LINES)], lines=True)
    assert joined == [*begun[0], text.eos_idx, text.eos_idx, *begun[2]]
    assert text.decode([joined]) == ["\n".join(LINES)]


def test_a_tokenizer_without_marks_is_refused():
    with pytest.raises(UserError, match=r"^A language model needs a mark of a text's end, but the"):
        LanguageText.of(WordTokenizer.Config(words=("a",)).build())


def test_answers_say_themselves():
    assert str(Continued(" morning", -1.0)) == " morning"
    assert MeasuredText(1e9, 1).perplexity == float("inf")
