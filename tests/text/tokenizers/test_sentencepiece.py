"""SentencePiece: trained to the same bytes each time, read, tagged, saved and loaded."""

import json
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import sentencepiece

from textmill.errors import UserError
from textmill.text import MultilingualTokenizer, VocabInfo, load_tokenizer
from textmill.text.metadata import SavedTextError
from textmill.text.tokenizers.sentencepiece import train_sentencepiece

TEXTS = ["the cat sat on the mat", "le chat dort sur le tapis", "où êtes-vous ?"] * 5


def test_too_large_a_vocabulary_names_the_largest_which_works(tmp_path):
    with pytest.raises(UserError) as caught:
        train_sentencepiece(TEXTS, tmp_path / "m", vocab_size=5000)
    largest = int(re.search(r"at most (\d+)", str(caught.value))[1])
    assert not (tmp_path / "m").exists()
    train_sentencepiece(TEXTS, tmp_path / "m", vocab_size=largest)


def test_fewer_pieces_than_characters(tmp_path):
    with pytest.raises(UserError, match=r"special pieces take 25. Set vocab_size to more than 25"):
        train_sentencepiece(TEXTS, tmp_path / "m", vocab_size=9)
    with pytest.raises(UserError, match=r"bytes 256. Set vocab_size to 262 or more"):
        train_sentencepiece(
            TEXTS, tmp_path / "m", vocab_size=200, byte_fallback=True, pieces=["<br>"]
        )


def test_byte_fallback_leaves_nothing_unknown(tmp_path):
    train_sentencepiece(TEXTS, tmp_path / "m", vocab_size=284, byte_fallback=True)
    pieces = MultilingualTokenizer.from_file(tmp_path / "m").pieces
    ids = pieces.encode("été 日本 🙂")
    assert pieces.unk_id() not in ids
    assert pieces.decode(ids) == "été 日本 🙂"


def test_a_long_text_is_cut_and_not_left_out(tmp_path):
    text = "the cat sat on the mat " * 3000
    train_sentencepiece([text], tmp_path / "m", vocab_size=15)
    train_sentencepiece(["x" * 100_000, "y z " * 5], tmp_path / "n", vocab_size=9)
    assert "x" in MultilingualTokenizer.from_file(tmp_path / "n").pieces.decode([4, 5, 6, 7, 8])


def test_chunks_join(tmp_path, monkeypatch):
    train_sentencepiece(TEXTS, tmp_path / "m", vocab_size=28)
    encoder = MultilingualTokenizer.from_file(tmp_path / "m").create_encoder()
    oracle = sentencepiece.SentencePieceProcessor(model_file=str(tmp_path / "m"))
    monkeypatch.setattr("textmill.text.tokenizers.sentencepiece.CHUNK", 4)
    texts = [*TEXTS, "", "unseen Ж"]
    assert [row.tolist()[:-1] for row in encoder.batch(texts)] == oracle.encode(texts)


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
    with pytest.raises(SavedTextError, match=f"^{tmp_path / 'm'} is not a SentencePiece model"):
        MultilingualTokenizer.from_file(tmp_path / "m")


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


def of(model: Path, source, target, **more) -> MultilingualTokenizer:
    return MultilingualTokenizer.from_file(model, source_langs=source, target_langs=target, **more)


def test_one_language_a_side_has_no_tags(tokenizer, model):
    oracle = sentencepiece.SentencePieceProcessor(model_file=str(model))
    text = "Le chat dort."
    assert tokenizer.vocab_info == VocabInfo(size=64, unk_idx=1, bos_idx=2, eos_idx=3, pad_idx=0)
    source = tokenizer.create_encoder(mode="source")(text)
    target = tokenizer.create_encoder(mode="target", lang="fra")(text)
    assert source.dtype == np.int32
    assert source.tolist() == [*oracle.encode(text), 3]
    assert target.tolist() == [2, *oracle.encode(text), 3]
    assert tokenizer.target_prefix() == [2]
    assert tokenizer.create_decoder()(target) == tokenizer.create_decoder()(source.tolist()) == text


def test_tags_follow_the_pieces_where_a_side_has_several_languages(model):
    tokenizer = of(model, {"eng"}, {"spa", "fra"}, default_target_lang="fra")
    assert tokenizer.vocab_info.size == 66
    assert tokenizer.target_prefix() == [2, 64]
    assert tokenizer.target_prefix("spa") == [2, 65]
    assert tokenizer.create_encoder(mode="source")("a")[-1] == 3
    assert tokenizer.create_encoder(mode="source")("a").max() < 64
    ids = tokenizer.create_encoder(mode="target", lang="spa")("the cat")
    assert ids[:2].tolist() == [2, 65]
    assert tokenizer.create_decoder()(ids) == "the cat"


def test_a_language_of_both_sides_has_one_tag(model):
    tokenizer = of(model, ("eng", "fra"), ("fra", "eng"))
    assert tokenizer.vocab_info.size == 66
    assert tokenizer.create_encoder(mode="source", lang="fra")("a")[0] == 65
    assert tokenizer.target_prefix("fra") == [2, 65]


@pytest.mark.parametrize(("tags", "size"), [("auto", 66), ("always", 67), ("never", 64)])
def test_tags_can_be_forced_or_refused(model, tags, size):
    tokenizer = of(model, ("eng",), ("fra", "spa"), tags=tags)
    assert tokenizer.vocab_info.size == size
    assert len(tokenizer.target_prefix()) == (1 if tags == "never" else 2)


def test_a_model_without_pad_and_bos_gets_them_after_its_pieces(tmp_path):
    path = tmp_path / "published"
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(["the cat sat", "le chat"] * 9), model_prefix=str(path),
        vocab_size=13, pad_id=-1, bos_id=-1, minloglevel=2,
    )  # fmt: skip
    info = of(path.with_suffix(".model"), ("a",), ("b",)).vocab_info
    assert (info.size, info.pad_idx, info.bos_idx) == (15, 13, 14)
    assert of(path.with_suffix(".model"), ("a",), ("b",), tags="always").target_prefix() == [14, 16]


def test_languages_that_do_not_fit(model, tokenizer):
    with pytest.raises(UserError, match="default_target_lang is 'deu', which is not in target_la"):
        of(model, {"eng"}, {"fra"}, default_target_lang="deu")
    with pytest.raises(UserError, match="source_langs must name one language"):
        of(model, (), {"fra"})
    with pytest.raises(UserError, match="'deu' is not a target language of this tokenizer"):
        tokenizer.create_encoder(mode="target", lang="deu")
    with pytest.raises(UserError, match="mode must be 'source' or 'target', but is 'both'"):
        tokenizer.create_encoder(mode="both")


def changed(settings=None, **content):
    good = {
        "source_langs": ["eng"], "target_langs": ["fra"], "default_source_lang": "eng",
        "default_target_lang": "fra", "tags": "auto",
    }  # fmt: skip
    whole = {"format_version": 1, "type": "multilingual", "settings": good | (settings or {})}
    return json.dumps(whole | content).encode()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"{", ": not readable as JSON"),
        (b"[" * 500_000, ": nested too deeply"),
        (b" " * (65 << 20), "is larger than 67,108,864 bytes"),
        (b"[1]", "has no format_version"),
        (changed(extra=1), "must hold exactly the keys format_version, type, settings."),
        (changed(type=["x"]), "'type' must be a string and 'settings' a mapping."),
        (changed(type="os.system"), "Unknown tokenizer 'os.system'. Known: "),
        (changed({"model": "../../etc/passwd"}), "unknown setting 'model'."),
        (changed({"tags": "../x"}), "the setting 'tags' cannot be '../x'."),
        (changed({"source_langs": [1]}), "the setting 'source_langs' cannot be [1]."),
        (changed({"source_langs": []}), "source_langs must name one language"),
        (changed({"default_source_lang": "deu"}), "default_source_lang is 'deu', which is not in"),
        (changed(type="fitted"), "a tokenizer of type 'fitted' is not loaded from files;"),
    ],
)
def test_a_strangers_description_is_refused(tokenizer, tmp_path, content, message):
    tokenizer.save(tmp_path / "t")
    (tmp_path / "t" / "tokenizer.json").write_bytes(content)
    with pytest.raises(UserError, match=re.escape(message)):
        load_tokenizer(tmp_path / "t")


def test_a_damaged_model_is_refused(tokenizer, tmp_path):
    tokenizer.save(tmp_path / "t")
    path = tmp_path / "t" / "sentencepiece.model"
    path.write_bytes(path.read_bytes()[:100])
    with pytest.raises(SavedTextError, match=re.escape(f"{path} is not a SentencePiece model")):
        load_tokenizer(tmp_path / "t")
    path.unlink()
    with pytest.raises(SavedTextError, match=re.escape(f"{path}: missing.")):
        load_tokenizer(tmp_path / "t")
