"""What every kind of tokenizer keeps: one suite for all that are fitted."""

import re
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.text.conftest import TEXTS
from textmill.errors import DataError, UserError
from textmill.text import FittedTokenizer, load_tokenizer
from textmill.text.tokenizers import huggingface
from textmill.text.tokenizers.fitted_tokenizer import Kind

KINDS = Kind.__args__
EXACT = ("byte_bpe", "characters", "bytes")
"""Kinds that give every text back; the others write spaces and some characters alike."""
JOINED = ("words",)
"""Kinds that put a space on both sides of a punctuation mark."""
WRITTEN_MARKS = "<pad> <s> </s> <unk> [PAD] [CLS] [SEP] ▁"
ROWS = [{"source": a, "target": b} for a, b in zip(TEXTS[::2], TEXTS[1::2], strict=True)]
ROWS += [{"source": WRITTEN_MARKS, "target": "<s>a</s><pad>"}] * 9
ROWS += [{"source": "CLS [ SEP ] < / > unk k", "target": "PAD ▁ . ê ? '"}] * 9
SIZES = dict.fromkeys(KINDS, 64) | {"words": 99, "bytes": 260, "byte_bpe": 300}


def fit(kind: str, cache: Path, **more):
    more = {"vocab_size": SIZES[kind], "cache_dir": cache} | more
    return FittedTokenizer.Config(kind=kind, **more).build(train_data=ROWS)


@pytest.fixture(scope="module")
def cache(tmp_path_factory) -> Path:
    return tmp_path_factory.mktemp("cache")


@pytest.fixture(scope="module", params=KINDS)
def kind(request) -> str:
    return request.param


@pytest.fixture(scope="module")
def one(kind, cache):
    return fit(kind, cache)


def spaceless(text: str) -> str:
    return text.replace(" ", "")


def test_marks_are_four_different_ids_of_the_vocabulary(one, kind):
    info = one.vocab_info
    marks = [info.pad_idx, info.unk_idx, info.bos_idx, info.eos_idx]
    assert marks == [0, 1, 2, 3]
    assert info.size <= SIZES[kind]
    if kind not in ("words", "characters"):
        assert info.size == SIZES[kind]


def test_known_text_comes_back(one, kind):
    encode, decode = one.create_encoder(mode="target"), one.create_decoder()
    for text in TEXTS[:8]:
        back = decode(encode(text))
        if kind in JOINED:
            assert spaceless(back) == spaceless(text)
        else:
            assert back == text
        assert encode(back).tolist() == encode(text).tolist()


def test_sources_end_and_targets_begin_and_end(one):
    info = one.vocab_info
    source = one.create_encoder(mode="source")("The cat")
    target = one.create_encoder(mode="target")("The cat")
    assert source.dtype == target.dtype == np.int32
    assert target.tolist() == [info.bos_idx, *source.tolist()]
    assert source[-1] == info.eos_idx
    assert one.target_prefix() == [info.bos_idx]
    assert not set(source[:-1].tolist()) & {0, 1, 2, 3}


def test_a_side_with_two_languages_has_tags(kind, cache):
    tagged = fit(kind, cache, source_langs=("eng",), target_langs=("fra", "spa"))
    plain = fit(kind, cache)
    size = plain.vocab_info.size
    assert tagged.vocab_info.size == size + 2
    assert tagged.target_prefix("spa") == [2, size + 1]
    ids = tagged.create_encoder(mode="target", lang="spa")("a cat").tolist()
    assert ids == [2, size + 1, *plain.create_encoder()("a cat").tolist()]
    assert spaceless(tagged.create_decoder()(ids)) == "acat"
    assert tagged.create_encoder()("a cat").tolist() == ids[2:]
    assert repr(tagged).endswith(f"Tokenizer({size + 2} ids, eng->fra+spa)")


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.text(st.characters(exclude_categories=["Cs"])), max_size=4))
def test_a_batch_is_its_texts_one_by_one(one, kind, texts):
    encoder, info = one.create_encoder(), one.vocab_info
    batch = encoder.batch(texts)
    assert [row.tolist() for row in batch] == [encoder(text).tolist() for text in texts]
    assert batch.values.min(initial=0) >= 0
    assert batch.values.max(initial=0) < info.size
    for row in batch:
        assert row[-1] == info.eos_idx
        assert not {info.pad_idx, info.bos_idx, info.eos_idx} & set(row[:-1].tolist())
    decoded = one.create_decoder().batch([row.tolist() for row in batch])
    if kind in EXACT:
        pairs = zip(texts, decoded, batch, strict=True)
        assert all(a == b for a, b, row in pairs if info.unk_idx not in row)


def test_unknown_characters_leave_one_mark_and_harm_nothing_else(one, kind):
    encode, decode = one.create_encoder(), one.create_decoder()
    text = "The ☃ cat"
    ids = encode(text).tolist()
    assert (one.vocab_info.unk_idx in ids) == (kind not in ("byte_bpe", "bytes"))
    assert spaceless(decode(ids)).replace("\u2047", "☃") == "The☃cat"


def test_nul_is_a_character(one, kind):
    encode, decode = one.create_encoder(), one.create_decoder()
    assert encode("The\0cat").tolist() == encode.batch(["The\0cat", ""])[0].tolist()
    assert "cat" in spaceless(decode(encode("The \0 cat")))
    if kind in ("byte_bpe", "bytes"):
        assert decode(encode("The\0cat\0")) == "The\0cat\0"


ASCII = st.text(st.sampled_from("The cat.,!'1\t\n\0<s>A  "), max_size=14)


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(texts=st.lists(ASCII, min_size=1, max_size=4), most=st.sampled_from([0, 1, 9]))
def test_words_that_are_remembered_have_the_ids_of_their_text(one, texts, most):
    encoder, texts = one.create_encoder(), [*texts, "The cat"]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(one.vocabulary, "_by_word", False, raising=False)
        whole = [row.tolist() for row in encoder.batch(texts)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(huggingface, "KEPT", most)
        for _ in range(2):
            assert [encoder(text).tolist() for text in texts] == whole
            assert [row.tolist() for row in encoder.batch(texts)] == whole


def test_very_long_texts(one, kind):
    encode, decode = one.create_encoder(), one.create_decoder()
    for text in (" ".join(TEXTS * 200), "a" * 100_000, " " * 100_000, "é🙂" * 30_000, "." * 50_000):
        ids = encode(text)
        back = decode(ids)
        if kind in EXACT and 1 not in ids:
            assert back == text
        if text.startswith("The"):
            assert spaceless(back) == spaceless(text)


def test_marks_written_in_a_text_are_text(one, kind):
    encode, decode = one.create_encoder(), one.create_decoder()
    marks = {one.vocab_info.pad_idx, one.vocab_info.bos_idx, one.vocab_info.eos_idx}
    for mark in WRITTEN_MARKS.split():
        for text in (mark, f"a {mark} cat", f"a{mark}cat", f" {mark} "):
            ids = encode(text).tolist()
            assert not marks & set(ids[:-1]), text
            assert ids == encode.batch([text, ""])[0].tolist()
            if "▁" not in text:  # the sign that most kinds write a space with
                assert spaceless(decode(ids)) == spaceless(text)
                assert one.vocab_info.unk_idx not in ids


def test_ids_from_outside_leave_no_trace(one):
    ids = one.create_encoder()("The cat").tolist()
    outside = [0, 2, -1, one.vocab_info.size, 10**9]
    assert one.create_decoder()([*outside, *ids, *outside]) == one.create_decoder()(ids)
    assert one.create_decoder()(np.array(ids, np.int64)) == one.create_decoder()(ids)


@pytest.mark.parametrize("wrong", ["half \ud800", 7, None, ("a", "b"), b"bytes"])
def test_what_is_no_text_is_named(one, wrong):
    message = (
        f"Text 1 is not text, or holds half of a surrogate pair: {wrong!r}. "
        "Give strings decoded as UTF-8."
    )
    with pytest.raises(DataError, match=f"^{re.escape(message)}$"):
        one.create_encoder().batch(["a", wrong])
    with pytest.raises(DataError, match=re.escape(message.replace("Text 1", "Text 0"))):
        one.create_encoder()(wrong)


def test_saved_and_loaded_it_encodes_equally(one, kind, tmp_path):
    one.save(tmp_path / "t")
    assert {p.suffix for p in (tmp_path / "t").iterdir()} <= {".json", ".model"}
    loaded = load_tokenizer(tmp_path / "t")
    assert type(loaded) is type(one)
    assert (loaded.vocab_info, loaded.fingerprint()) == (one.vocab_info, one.fingerprint())
    texts = [*TEXTS[:8], WRITTEN_MARKS, "☃ <s>", "", "a\0b"]
    for mode in ("source", "target"):
        ids = one.create_encoder(mode=mode).batch(texts)
        assert loaded.create_encoder(mode=mode).batch(texts) == ids
        rows = [row.tolist() for row in ids]
        assert loaded.create_decoder().batch(rows) == one.create_decoder().batch(rows)
    loaded.save(tmp_path / "again")
    for path in (tmp_path / "t").iterdir():
        assert path.read_bytes() == (tmp_path / "again" / path.name).read_bytes()


def test_fitted_twice_it_is_the_same(one, kind, tmp_path):
    again = fit(kind, tmp_path)
    assert again.fingerprint() == one.fingerprint()
    again.save(tmp_path / "a")
    one.save(tmp_path / "b")
    for path in (tmp_path / "a").iterdir():
        assert path.read_bytes() == (tmp_path / "b" / path.name).read_bytes()


def test_a_fitted_one_is_kept_and_found(kind, tmp_path, monkeypatch, caplog):
    caplog.set_level("INFO", logger="textmill")
    first = fit(kind, tmp_path)
    kept = sorted((tmp_path / "tokenizers").glob("*")) if (tmp_path / "tokenizers").exists() else []
    assert len(kept) == 2 * (kind != "bytes")  # with its sum
    said = [message.split(": ")[1] for message in caplog.messages]
    assert said == [str(path) for path in kept[:1]]  # the file that stays
    monkeypatch.setattr("textmill.text.tokenizers.fitted_tokenizer.train_sentencepiece", None)
    monkeypatch.setattr(huggingface, "fit_tokenizer_json", None)
    assert fit(kind, tmp_path).fingerprint() == first.fingerprint()


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({"kind": "bytes", "min_count": 2}, "min_count is not a setting of the kind 'bytes'"),
        ({"kind": "bpe", "model_type": "bpe"}, "model_type is not a setting of the kind 'bpe'"),
        ({"kind": "words", "min_count": 0}, "min_count must be at least 1"),
        ({"character_coverage": 1.5}, "character_coverage must be above 0, at most 1"),
    ],
)
def test_settings_that_a_kind_does_not_have(config, message):
    with pytest.raises(UserError, match=rf"tokenizer\.{message}"):
        FittedTokenizer.Config(**config)


def test_too_few_ids_for_bytes(cache):
    with pytest.raises(UserError, match=r"vocab_size=259 is too small .* 260 or more"):
        fit("bytes", cache, vocab_size=259)
