"""Tokenizers of a tokenizer.json, against transformers' and SentencePiece's own."""

import json
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import tokenizers
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.text.conftest import TEXTS
from textmill.errors import UserError
from textmill.text import HuggingFaceTokenizer, load_tokenizer
from textmill.text.tokenizers import huggingface
from textmill.text.tokenizers.huggingface import fit_tokenizer_json

KINDS = {"bpe": 90, "byte_bpe": 320, "words": 40}
PUBLISHED = ("unigram", "wordpiece")
"""Kinds of published files, which nothing here trains."""
MORE = [
    "  two  spaces\tand\na line ", "Ünïcödé ﬁ ½ e\u0301 \u202f?", "日本語 🙂",
    "don't stop!!! 3.14 [x]", "a\0b",
]  # fmt: skip
MARKS = ("<pad>", "<unk>", "<s>", "</s>")
TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=30).filter(
    lambda text: not any(mark in text for mark in MARKS)  # marks written in a text are text here
)


@pytest.fixture(scope="module")
def files(tmp_path_factory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("json")
    made = {}
    for kind, size in KINDS.items():
        made[kind] = folder / f"{kind}.json"
        made[kind].write_bytes(fit_tokenizer_json(TEXTS, kind, vocab_size=size))
    for kind in PUBLISHED:
        made[kind] = folder / f"{kind}.json"
        published(kind).save(str(made[kind]))
    return made


def published(kind: str) -> tokenizers.Tokenizer:
    """As XLM-R's and BERT's, fitted by the library."""
    models, trainers = tokenizers.models, tokenizers.trainers
    more: dict[str, Any] = {"vocab_size": 99, "special_tokens": [*MARKS], "show_progress": False}
    if kind == "unigram":
        library = tokenizers.Tokenizer(models.Unigram())
        library.pre_tokenizer = tokenizers.pre_tokenizers.Metaspace()
        library.decoder = tokenizers.decoders.Metaspace()
        library.train_from_iterator(TEXTS, trainers.UnigramTrainer(unk_token="<unk>", **more))
    else:
        library = tokenizers.Tokenizer(models.WordPiece(unk_token="<unk>"))
        library.normalizer = tokenizers.normalizers.BertNormalizer()
        library.pre_tokenizer = tokenizers.pre_tokenizers.BertPreTokenizer()
        library.decoder = tokenizers.decoders.WordPiece()
        library.train_from_iterator(TEXTS, trainers.WordPieceTrainer(**more))
    return library


@pytest.fixture(scope="module", params=[*KINDS, *PUBLISHED])
def kind(request) -> str:
    return request.param


@pytest.fixture(scope="module")
def oracle(kind, files):
    transformers = pytest.importorskip("transformers")
    return transformers.PreTrainedTokenizerFast(
        tokenizer_file=str(files[kind]), pad_token="<pad>", unk_token="<unk>", bos_token="<s>",
        eos_token="</s>",
    )  # fmt: skip


@pytest.fixture(scope="module")
def ours(kind, files) -> HuggingFaceTokenizer:
    return HuggingFaceTokenizer.from_file(files[kind])


@settings(max_examples=80, deadline=None)
@given(text=TEXT | st.sampled_from([*TEXTS[:8], *MORE]))
def test_ids_and_texts_are_those_of_transformers(ours, oracle, text):
    assert ours.vocab_info.size == len(oracle)
    ids = oracle.encode(text, add_special_tokens=False)
    assert ours.create_encoder()(text).tolist() == [*ids, 3]
    if 1 not in ids:
        back = ours.create_decoder()(ids)
        assert back == oracle.decode(ids, clean_up_tokenization_spaces=False)


def bert_like(tmp_path: Path) -> Path:
    """A file as BERT's: marks in brackets, a template, truncation and padding, an added token."""
    names = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "the", "cat", "##s", "sat"]
    library = tokenizers.Tokenizer(
        tokenizers.models.WordPiece({name: i for i, name in enumerate(names)}, unk_token="[UNK]")
    )
    library.normalizer = tokenizers.normalizers.BertNormalizer()
    library.pre_tokenizer = tokenizers.pre_tokenizers.WhitespaceSplit()
    library.decoder = tokenizers.decoders.WordPiece()
    library.add_special_tokens(names[:4])
    library.add_tokens(["@user"])
    library.post_processor = tokenizers.processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    library.enable_truncation(3)
    library.enable_padding(length=9)
    path = tmp_path / "tokenizer.json"
    library.save(str(path))
    return path


def test_a_published_file_keeps_its_pieces_not_its_template(tmp_path):
    one = HuggingFaceTokenizer.from_file(bert_like(tmp_path), target_langs=("a", "b"))
    info = one.vocab_info
    assert (info.pad_idx, info.unk_idx, info.bos_idx, info.eos_idx, info.size) == (0, 1, 2, 3, 11)
    assert one.create_encoder()("The cats sat @user the cat").tolist() == [4, 5, 6, 7, 8, 4, 5, 3]
    assert one.target_prefix("b") == [2, 10]
    assert one.create_encoder()("[SEP] the [PAD]").tolist() == [1, 4, 1, 3]
    assert one.create_decoder()([2, 10, 4, 5, 6, 1, 8, 3]) == "the cats \u2047 @user"


def test_marks_that_a_file_lacks_follow_its_pieces(tmp_path):
    path = tmp_path / "tokenizer.json"
    library = tokenizers.Tokenizer(tokenizers.models.BPE({"a": 0, "b": 1}, []))
    library.save(str(path))
    info = HuggingFaceTokenizer.from_file(path).vocab_info
    assert (info.pad_idx, info.bos_idx, info.eos_idx, info.unk_idx, info.size) == (2, 3, 4, 5, 6)


def test_an_end_mark_that_is_called_unknown_too_is_the_end_mark(tmp_path):
    """As in GPT-2's and CLIP's files."""
    path = tmp_path / "tokenizer.json"
    vocab = {"a": 0, "b": 1, "<|endoftext|>": 2}
    library = tokenizers.Tokenizer(tokenizers.models.BPE(vocab, [], unk_token="<|endoftext|>"))
    library.add_special_tokens(["<|endoftext|>"])
    library.save(str(path))
    one = HuggingFaceTokenizer.from_file(path)
    info = one.vocab_info
    assert (info.eos_idx, info.pad_idx, info.bos_idx, info.unk_idx, info.size) == (2, 3, 4, 5, 6)
    assert one.create_decoder()([4, 0, 1, 2]) == "a b"


def test_marks_can_be_named(tmp_path):
    config = HuggingFaceTokenizer.Config(path=bert_like(tmp_path), eos="sat", bos="@user")
    one = config.build()
    assert (one.vocab_info.bos_idx, one.vocab_info.eos_idx) == (8, 7)
    assert one.create_encoder(mode="target")("the sat @user").tolist() == [8, 4, 1, 1, 7]
    one.save(tmp_path / "t")
    loaded = load_tokenizer(tmp_path / "t")
    assert (loaded.vocab_info, loaded.fingerprint()) == (one.vocab_info, one.fingerprint())
    other = HuggingFaceTokenizer.Config(path=tmp_path / "tokenizer.json", eos="sat").build()
    assert other.vocabulary.to_bytes() == one.vocabulary.to_bytes()
    assert other.fingerprint() != one.fingerprint()  # the same pieces, another bos
    message = (
        f"eos is '</s>', but {tmp_path / 'tokenizer.json'} has no such token. "
        "Name one that it has, or leave eos out."
    )
    with pytest.raises(UserError, match=f"^{re.escape(message)}$"):
        HuggingFaceTokenizer.Config(path=tmp_path / "tokenizer.json", eos="</s>").build()


def test_a_merge_cannot_make_a_mark_of_text(tmp_path):
    path = tmp_path / "tokenizer.json"
    vocab = {"<": 0, "s": 1, ">": 2, "<s": 3, "<s>": 4}
    library = tokenizers.Tokenizer(tokenizers.models.BPE(vocab, [("<", "s"), ("<s", ">")]))
    library.add_special_tokens(["<s>"])
    library.save(str(path))
    one = HuggingFaceTokenizer.from_file(path)
    assert one.vocab_info.bos_idx == 4
    assert one.create_encoder()("<s>").tolist()[:-1] == [3, 2]


@pytest.mark.parametrize(
    ("kind", "size", "message"),
    [
        ("bpe", 10, "special pieces take 42. Set vocab_size to 42 or more"),
        ("bpe", 5000, "gives at most 162 pieces. Set vocab_size to 162 or less"),
        ("byte_bpe", 200, "take 4, the bytes 256. Set vocab_size to 260 or more"),
        ("words", 4, "take 4. Set vocab_size to 5 or more"),
    ],
)
def test_sizes_that_cannot_be_made(kind, size, message):
    with pytest.raises(UserError, match=message):
        fit_tokenizer_json(TEXTS, kind, vocab_size=size)


def vocabulary(raw: bytes) -> list[str]:
    return list(json.loads(raw)["model"]["vocab"])


def test_rare_words_and_characters_can_be_left_out():
    texts = ["the cat sat", "the cat ran", "the dog"]
    assert vocabulary(fit_tokenizer_json(texts, "words", vocab_size=9, min_count=2))[4:] == [
        "the",
        "cat",
    ]
    assert len(vocabulary(fit_tokenizer_json(texts, "words", vocab_size=5))) == 5
    text = ["aaaaaaaaab"] * 9 + ["c"]
    pieces = vocabulary(fit_tokenizer_json(text, "bpe", vocab_size=8, character_coverage=0.98))
    assert {"a", "b"} <= {*pieces}
    assert "c" not in pieces
    small = fit_tokenizer_json(["The THE the"], "words", vocab_size=9, lowercase=True)
    assert vocabulary(small)[4:] == ["the"]


def test_no_warning_at_a_fork_and_no_torch(files):
    code = (
        "import os, sys\n"
        "from textmill.text import HuggingFaceTokenizer\n"
        f"one = HuggingFaceTokenizer.from_file({str(files['bpe'])!r})\n"
        "encode = one.create_encoder()\n"
        "before = encode.batch(['the cat'] * 100)\n"
        "if os.fork() == 0:\n"
        "    os._exit(0 if encode.batch(['the cat'] * 100) == before else 1)\n"
        "assert os.wait()[1] == 0\n"
        "assert 'torch' not in sys.modules\n"
    )
    # The test's own process may have set the variable: a user's has not.
    clean = {"PATH": "/usr/bin:/bin", "PYTHONWARNINGS": "error"}
    done = subprocess.run(
        [sys.executable, "-c", code], env=clean, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_threads_that_share_a_tokenizer_have_the_ids_of_each_text(files, monkeypatch):
    monkeypatch.setattr(huggingface, "KEPT", 4)
    texts = [f"go{i % 7} home{i % 5}" for i in range(2_000)]
    expected = [e.tolist() for e in map(load_tokenizer_of(files["bpe"]), texts)]
    encode, interval = load_tokenizer_of(files["bpe"]), sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        with ThreadPoolExecutor(4) as threads:
            found = [*threads.map(lambda text: encode(text).tolist(), texts)]
    finally:
        sys.setswitchinterval(interval)
    assert found == expected


def load_tokenizer_of(file):
    return HuggingFaceTokenizer.Config(path=file).build().create_encoder()
