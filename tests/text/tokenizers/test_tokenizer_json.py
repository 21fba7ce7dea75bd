"""A tokenizer.json that is damaged or cannot be used is refused, with the reason."""

import json
import re

import pytest

from textmill.errors import DataError
from textmill.text import HuggingFaceTokenizer
from textmill.text.metadata import SavedTextError
from textmill.text.tokenizers.huggingface import parse_tokenizer_json

BPE = {"type": "BPE", "vocab": {"a": 0, "b": 1, "ab": 2, "<s>": 3}, "merges": ["a b"]}
SPECIAL = {"id": 3, "content": "<s>", "special": True}


def content(**changes):
    return {"version": "1.0", "added_tokens": [SPECIAL], "model": BPE} | changes


def model(**changes):
    return content(model=BPE | changes)


def unigram(**changes):
    return content(
        added_tokens=[], model={"type": "Unigram", "unk_id": 0, "vocab": [["<unk>", 0]]} | changes
    )


WRONG = "is not a tokenizer.json of the package 'tokenizers': "
REFUSED = [
    (model(type="Wizard"), "the package 'tokenizers' says"),
    (model(vocab={"a": 0, "b": 0, "<s>": 3}), "two of its pieces have the same id"),
    (content(added_tokens=[SPECIAL | {"id": 0}]), "the added token '<s>' has two ids"),
    (content(added_tokens=[{"content": "x"}]), f"{WRONG}KeyError('id')"),
    (content(added_tokens=[], model=BPE | {"vocab": {}}), "its vocabulary is empty"),
    (model(dropout=0.1), "its dropout is 0.1, with which the same text has other ids"),
    (unigram(vocab=[["a", 0], ["a", 0]]), "a piece is in its vocabulary twice"),
    (unigram(unk_id=5), WRONG),
    ([], WRONG),
]


@pytest.mark.parametrize(("made", "message"), REFUSED, ids=range(len(REFUSED)))
def test_what_is_refused_and_why(made, message, tmp_path):
    path = tmp_path / "tokenizer.json"
    path.write_text(json.dumps(made))
    with pytest.raises(SavedTextError, match=f"^{re.escape(str(path))} is not ") as caught:
        HuggingFaceTokenizer.from_file(path)
    assert message in str(caught.value)


@pytest.mark.parametrize("raw", [b"{", b"\xff\xfe", b"[" * 100_000], ids=range(3))
def test_what_is_no_such_file(raw, tmp_path):
    path = tmp_path / "tokenizer.json"
    path.write_bytes(raw)
    with pytest.raises(SavedTextError, match="is not JSON: "):
        HuggingFaceTokenizer.from_file(path)
    path.unlink()
    with pytest.raises(SavedTextError, match=re.escape(f"{path}: missing.")):
        HuggingFaceTokenizer.from_file(path)


@pytest.mark.parametrize("merges", [["a z"], [["a"]], [None], "a b", [["a", "b", "c"]]])
def test_merges_that_do_not_fit(merges, tmp_path):
    path = tmp_path / "tokenizer.json"
    path.write_text(json.dumps(model(merges=merges)))
    with pytest.raises(SavedTextError, match=re.escape(str(path))) as caught:
        HuggingFaceTokenizer.from_file(path)
    assert not re.search("<[0-9a-f]{24}>", str(caught.value))


def test_words_without_the_unknown_one_are_read(tmp_path):
    path = tmp_path / "tokenizer.json"
    words = {"type": "WordLevel", "vocab": {"a": 0, "b": 1}, "unk_token": "[UNK]"}
    split = {"type": "Whitespace"}
    path.write_text(json.dumps(content(added_tokens=[], model=words, pre_tokenizer=split)))
    made = HuggingFaceTokenizer.from_file(path)
    assert made.create_encoder()("b a").tolist()[:2] == [1, 0]


def test_special_tokens_get_names_that_nobody_can_guess(tmp_path):
    raw = json.dumps(content()).encode()
    first, second = (parse_tokenizer_json(raw, tmp_path / "t.json") for _ in range(2))
    assert first.ids == second.ids == BPE["vocab"]
    assert first.special == {3}
    assert first.renamed.keys() == {"<s>"}
    assert first.renamed != second.renamed
    assert "<s>" not in json.dumps(first.content)


def test_a_panic_of_the_library_is_an_error_of_the_data(tmp_path, capfd):
    """An expression whose time explodes: the library gives up after ten million steps."""
    bomb = {"Regex": "(a+)+$"}
    path = tmp_path / "tokenizer.json"
    split = {"type": "Split", "pattern": bomb, "behavior": "Isolated", "invert": False}
    replaced = {"type": "Replace", "pattern": bomb, "content": "x"}
    decoders = {"type": "Sequence", "decoders": [{"type": "Fuse"}, replaced]}
    shout = BPE | {"vocab": BPE["vocab"] | {"!": 4}}
    path.write_text(json.dumps(content(pre_tokenizer=split, decoder=decoders, model=shout)))
    one = HuggingFaceTokenizer.from_file(path)
    encode, decode = one.create_encoder(), one.create_decoder()
    text = "a" * 40 + "!"
    for what, call in [
        ("encode a text", lambda: encode(text)),
        ("encode one of 2 texts", lambda: encode.batch(["a", text])),
        ("decode one of 2 rows", lambda: decode.batch([[0], [0] * 40 + [4]])),
    ]:
        with pytest.raises(DataError, match=f"^The package 'tokenizers' could not {what}: Onig"):
            call()
    assert "panicked" in capfd.readouterr().err
