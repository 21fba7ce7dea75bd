"""The tokenizer in a script and as a component; tags; saving; strangers' files."""

import json
import re
from pathlib import Path

import numpy as np
import pytest
import sentencepiece

from textmill.errors import UserError
from textmill.text import MultilingualTokenizer, VocabInfo, load_tokenizer, train_sentencepiece
from textmill.text.metadata import SavedTextError


def whole(text: str) -> str:
    return f"^{re.escape(text)}$"


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


def test_a_batch_is_its_texts_one_by_one(tokenizer):
    texts = ["The cat.", "", "Où ?", "Ж unseen"]
    encoder = tokenizer.create_encoder(mode="target")
    batch = encoder.batch(texts)
    assert [row.tolist() for row in batch] == [encoder(text).tolist() for text in texts]
    assert len(encoder.batch([])) == 0
    assert tokenizer.create_decoder().batch([]) == []


def test_special_spaces_become_plain_ones(tokenizer):
    encode, decode = tokenizer.create_encoder(), tokenizer.create_decoder()
    for space in "\u202f\u00a0\u2009":
        assert decode(encode(f"en retard{space}?")) == "en retard ?"


def test_ids_from_outside_leave_no_trace(model):
    tokenizer = of(model, {"eng"}, {"spa", "fra"})
    ids = tokenizer.create_encoder(mode="source")("the cat").tolist()
    assert tokenizer.create_decoder()([0, 2, 65, *ids, 0, 0, 9999, -1]) == "the cat"


def test_a_model_without_pad_and_bos_gets_them_after_its_pieces(tmp_path):
    path = tmp_path / "published"
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(["the cat sat", "le chat"] * 9),
        model_prefix=str(path),
        vocab_size=13,
        pad_id=-1,
        bos_id=-1,
        minloglevel=2,
    )
    info = of(path.with_suffix(".model"), ("a",), ("b",)).vocab_info
    assert (info.size, info.pad_idx, info.bos_idx) == (15, 13, 14)
    assert of(path.with_suffix(".model"), ("a",), ("b",), tags="always").target_prefix() == [14, 16]


def test_languages_that_do_not_fit(model, tokenizer):
    message = "default_target_lang is 'deu', which is not in target_langs: fra."
    with pytest.raises(UserError, match=whole(message)):
        of(model, {"eng"}, {"fra"}, default_target_lang="deu")
    message = "source_langs must name one language or several different ones, but is ()."
    with pytest.raises(UserError, match=whole(message)):
        of(model, (), {"fra"})
    message = "'deu' is not a target language of this tokenizer; these are: fra."
    with pytest.raises(UserError, match=whole(message)):
        tokenizer.create_encoder(mode="target", lang="deu")
    message = "create_encoder: mode must be 'source' or 'target', but is 'both'."
    with pytest.raises(UserError, match=whole(message)):
        tokenizer.create_encoder(mode="both")


def test_saved_and_loaded_it_encodes_equally(model, tmp_path):
    tokenizer = of(model, ("eng", "deu"), ("fra",), default_source_lang="deu")
    tokenizer.save(tmp_path / "t")
    assert sorted(p.name for p in (tmp_path / "t").iterdir()) == [
        "sentencepiece.model",
        "tokenizer.json",
    ]
    loaded = load_tokenizer(tmp_path / "t")
    texts = ["The cat sleeps.", "été", ""]
    for mode in ("source", "target"):
        assert loaded.create_encoder(mode=mode).batch(texts) == tokenizer.create_encoder(
            mode=mode
        ).batch(texts)
    assert loaded.vocab_info == tokenizer.vocab_info
    assert loaded.fingerprint() == tokenizer.fingerprint()
    assert repr(loaded) == "MultilingualTokenizer(66 ids, eng+deu->fra)"
    loaded.save(tmp_path / "again")
    for name in ("sentencepiece.model", "tokenizer.json"):
        assert (tmp_path / "t" / name).read_bytes() == (tmp_path / "again" / name).read_bytes()


def changed(settings=None, **content):
    good = {
        "source_langs": ["eng"],
        "target_langs": ["fra"],
        "default_source_lang": "eng",
        "default_target_lang": "fra",
        "tags": "auto",
    }
    whole = {"format_version": 1, "type": "multilingual", "settings": good | (settings or {})}
    return json.dumps(whole | content).encode()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"{", ": not readable as JSON: Expecting property name enclosed in double quotes: line 1"),
        (b"\xff\xfe\xfd", ": not readable as JSON: "),
        (b"[" * 500_000, ": nested too deeply. Save it again."),
        (b"[" + b"[]," * 600_000 + b"1]", " items are more than the 1,048,576 allowed. Save it"),
        (b" " * (17 << 20), "is larger than 16,777,216 bytes, the most that is read from it."),
        (
            b"[1]",
            "has no format_version, and this textmill reads 1. Save it again.",
        ),
        (changed(extra=1), "must hold exactly the keys format_version, type, settings."),
        (changed(format_version=2), "has format_version 2, and this textmill reads 1."),
        (changed(type=["x"]), "'type' must be a string and 'settings' a mapping."),
        (changed(type="os.system"), "Unknown tokenizer 'os.system'. Known: "),
        (changed(type="multilingua"), "Did you mean 'multilingual'?"),
        (changed({"model": "../../etc/passwd"}), "unknown setting 'model'. Known: default_source"),
        (changed({"tags": "../x"}), "'tags' cannot be '../x'."),
        (changed({"tags": True}), "the setting 'tags' cannot be True."),
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


def test_the_seeds_way(tmp_path):
    """As in the script of the tutorial: train a file, then wrap it."""
    path = tmp_path / "fra.spm"
    train_sentencepiece(
        ["The cat sleeps on the mat.", "Why are you late?", "one column"] * 3, path, vocab_size=25
    )
    tokenizer = MultilingualTokenizer.from_file(
        path,
        source_langs={"eng"},
        target_langs={"fra"},
        default_source_lang="eng",
        default_target_lang="fra",
    )
    assert tokenizer.vocab_info.size == 25
