"""Training: the same bytes each time, whole files only, and errors in words of the settings."""

import re
import subprocess
import sys

import pytest
import sentencepiece

from textmill.errors import DataError, UserError
from textmill.text.metadata import SavedTextError
from textmill.text.tokenizers.sentencepiece import (
    encode_pieces,
    load_sentencepiece,
    train_sentencepiece,
)

TEXTS = ["the cat sat on the mat", "le chat dort sur le tapis", "où êtes-vous ?"] * 5


def whole(text: str) -> str:
    return f"^{re.escape(text)}$"


def test_same_text_same_bytes(tmp_path):
    for name in ("a", "b"):
        train_sentencepiece(iter(TEXTS), tmp_path / name / "m", vocab_size=28)
    assert (tmp_path / "a/m").read_bytes() == (tmp_path / "b/m").read_bytes()
    assert [p.name for p in (tmp_path / "a").iterdir()] == ["m"]


def test_special_ids(tmp_path):
    train_sentencepiece(TEXTS, tmp_path / "m", vocab_size=28)
    pieces = load_sentencepiece(tmp_path / "m")
    assert [pieces.pad_id(), pieces.unk_id(), pieces.bos_id(), pieces.eos_id()] == [0, 1, 2, 3]


def test_training_prints_nothing(tmp_path, capfd):
    train_sentencepiece(TEXTS, tmp_path / "m", vocab_size=28)
    with pytest.raises(UserError):
        train_sentencepiece(TEXTS, tmp_path / "n", vocab_size=5000)
    assert capfd.readouterr() == ("", "")


def test_too_large_a_vocabulary_names_the_largest_which_works(tmp_path):
    with pytest.raises(UserError) as caught:
        train_sentencepiece(TEXTS, tmp_path / "m", vocab_size=5000)
    largest = int(re.search(r"at most (\d+)", str(caught.value))[1])
    assert str(caught.value) == (
        f"vocab_size=5000 is too large for the training text, which gives at most {largest} "
        f"pieces. Set vocab_size to {largest} or less, or train on more text."
    )
    assert not (tmp_path / "m").exists()
    train_sentencepiece(TEXTS, tmp_path / "m", vocab_size=largest)


def test_fewer_pieces_than_characters(tmp_path):
    message = (
        "vocab_size=9 is too small: the text's characters and the special pieces take 25. "
        "Set vocab_size to more than 25, or character_coverage below 1.0 (0.9995)."
    )
    with pytest.raises(UserError, match=whole(message)):
        train_sentencepiece(TEXTS, tmp_path / "m", vocab_size=9)


def test_fewer_pieces_than_special_ones(tmp_path):
    message = (
        "vocab_size=200 is too small: special pieces take 4, user-defined pieces 1, bytes 256. "
        "Set vocab_size to 262 or more."
    )
    with pytest.raises(UserError, match=whole(message)):
        train_sentencepiece(
            TEXTS, tmp_path / "m", vocab_size=200, byte_fallback=True, pieces=["<br>"]
        )


@pytest.mark.parametrize("texts", [[], [""], ["  ", "\n"]])
def test_empty_text(tmp_path, texts):
    message = "The tokenizer's training text is empty: no line of it holds a character."
    with pytest.raises(UserError, match=whole(message)):
        train_sentencepiece(texts, tmp_path / "m", vocab_size=28)


def test_a_failed_write_leaves_the_old_model(tmp_path):
    train_sentencepiece(TEXTS, tmp_path / "m", vocab_size=28)
    before = (tmp_path / "m").read_bytes()
    with pytest.raises(UserError):
        train_sentencepiece(TEXTS, tmp_path / "m", vocab_size=2800)
    assert (tmp_path / "m").read_bytes() == before


def test_byte_fallback_leaves_nothing_unknown(tmp_path):
    train_sentencepiece(TEXTS, tmp_path / "m", vocab_size=284, byte_fallback=True)
    pieces = load_sentencepiece(tmp_path / "m")
    ids = pieces.encode("été 日本 🙂")
    assert pieces.unk_id() not in ids
    assert pieces.decode(ids) == "été 日本 🙂"


def test_user_defined_pieces_stay_whole(tmp_path):
    train_sentencepiece(TEXTS, tmp_path / "m", vocab_size=28, pieces=["<br>"])
    assert "<br>" in load_sentencepiece(tmp_path / "m").encode("the<br>cat", out_type=str)


def test_a_long_text_is_cut_and_not_left_out(tmp_path):
    text = "the cat sat on the mat " * 3000
    train_sentencepiece([text], tmp_path / "m", vocab_size=15)
    train_sentencepiece(["x" * 100_000, "y z " * 5], tmp_path / "n", vocab_size=9)
    assert "x" in load_sentencepiece(tmp_path / "n").decode([4, 5, 6, 7, 8])


def test_special_marks_in_text_are_text(tmp_path):
    train_sentencepiece([*TEXTS, "<s></s>"], tmp_path / "m", vocab_size=28)
    pieces = load_sentencepiece(tmp_path / "m")
    assert not {0, 2, 3} & set(pieces.encode("a</s>b<s><pad>"))


def test_chunks_join(tmp_path, monkeypatch):
    train_sentencepiece(TEXTS, tmp_path / "m", vocab_size=28)
    pieces = load_sentencepiece(tmp_path / "m")
    oracle = sentencepiece.SentencePieceProcessor(model_file=str(tmp_path / "m"))
    monkeypatch.setattr("textmill.text.tokenizers.sentencepiece.CHUNK", 4)
    texts = [*TEXTS, "", "unseen Ж"]
    assert [row.tolist() for row in encode_pieces(pieces, texts)] == oracle.encode(texts)
    assert len(encode_pieces(pieces, [])) == 0


def test_half_a_surrogate_pair_is_named(model):
    message = (
        r"Text 1 is not text, or holds half of a surrogate pair: 'b\ud800'. "
        "Give strings decoded as UTF-8."
    )
    with pytest.raises(DataError, match=whole(message)):
        encode_pieces(load_sentencepiece(model), ["a", "b\ud800"])


def test_an_error_of_the_texts_is_the_callers_own(tmp_path):
    def texts():
        yield from TEXTS
        raise OSError("the disk is gone")

    with pytest.raises(OSError, match=r"^the disk is gone$"):
        train_sentencepiece(texts(), tmp_path / "m", vocab_size=28)
    assert not (tmp_path / "m").exists()


@pytest.mark.parametrize("content", [b"", b"not a model", b"\x00" * 1000])
def test_no_model(tmp_path, content):
    (tmp_path / "m").write_bytes(content)
    message = (
        f"{tmp_path / 'm'} is not a SentencePiece model ({len(content):,} bytes). "
        "Train or copy it again."
    )
    with pytest.raises(SavedTextError, match=whole(message)):
        load_sentencepiece(tmp_path / "m")


def test_missing_model(tmp_path):
    message = f"{tmp_path / 'm'}: missing."
    with pytest.raises(SavedTextError, match=whole(message)):
        load_sentencepiece(tmp_path / "m")


def test_two_processes_at_once(tmp_path):
    rows = [{"text": text} for text in TEXTS]
    code = (
        "from pathlib import Path; from textmill.text import FittedTokenizer as T;"
        f"made = T.Config(vocab_size=28, cache_dir=Path({str(tmp_path / 'c')!r}));"
        f"print(made.build(train_data={rows!r}).fingerprint())"
    )
    runs = [
        subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE) for _ in range(2)
    ]
    prints = [run.communicate()[0] for run in runs]
    assert [run.returncode for run in runs] == [0, 0]
    assert prints[0] == prints[1] != b""
    left = sorted(path.suffix for path in (tmp_path / "c" / "tokenizers").iterdir())
    assert left == [".model", ".sha256"]


def test_no_torch_on_this_floor():
    code = "import sys, textmill.text; print('torch' in sys.modules)"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout == "False\n"
