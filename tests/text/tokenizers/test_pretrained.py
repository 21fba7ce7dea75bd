"""Tokenizers of pretrained encoder-decoders beside those of transformers: every family."""

import json
import warnings
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import transformers

from tests.pretrained_checkpoints import LANGS, SEQ2SEQ, TEXTS, changed, save_seq2seq
from textmill.errors import UserError
from textmill.text import load_tokenizer
from textmill.text.metadata import SavedTextError
from textmill.text.tokenizers.pretrained import (
    PretrainedSentencePiece,
    PretrainedTokenizer,
    StartedTokenizer,
)

MORE = [*TEXTS, "", "  the  cat ", "the ☃☃ cat", "zzz"]


@pytest.fixture(scope="module", params=SEQ2SEQ)
def family(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def folder(family: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_seq2seq(tmp_path_factory.mktemp("saved") / family, family)


def made(folder: Path, **settings: Any) -> StartedTokenizer:
    model = SimpleNamespace(path=str(folder), revision=None)
    return PretrainedTokenizer.Config(**settings).build(model=model)


def langs(family: str) -> dict[str, Any]:
    if family not in LANGS:
        return {}
    source, target = LANGS[family]
    return {"source_langs": (source,), "target_langs": (target,)}


def theirs(folder: Path, family: str) -> Any:
    if (folder / "tokenizer_config.json").exists():
        source, target = LANGS.get(family, (None, None))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # that Moses' rules are not installed
            kind = transformers.AutoTokenizer
            return kind.from_pretrained(folder, src_lang=source, tgt_lang=target)
    return transformers.PreTrainedTokenizerFast(tokenizer_file=str(folder / "tokenizer.json"))


def test_both_sides_are_framed_as_the_model_was_trained(folder: Path, family: str) -> None:
    tokenizer, other = made(folder, **langs(family)), theirs(folder, family)
    start = json.loads((folder / "config.json").read_text())["decoder_start_token_id"]
    sources = tokenizer.create_encoder(mode="source").batch(MORE)
    targets = tokenizer.create_encoder(mode="target").batch(MORE)
    for text, source, target in zip(MORE, sources, targets, strict=True):
        assert source.tolist() == other(text)["input_ids"], text
        assert target.tolist() == [start, *other(text_target=text)["input_ids"]], text
        assert tokenizer.create_encoder()(text).tolist() == source.tolist()
    prefix = tokenizer.target_prefix()
    assert {tuple(row[: len(prefix)].tolist()) for row in targets} == {tuple(prefix)}
    assert all(len(row) > len(prefix) for row in targets)


def test_texts_come_back(folder: Path, family: str) -> None:
    tokenizer = made(folder, **langs(family))
    for mode in ("source", "target"):
        rows = tokenizer.create_encoder(mode=mode).batch(TEXTS[1:])
        assert tokenizer.create_decoder().batch([*rows]) == TEXTS[1:]
    assert "\u2047" in tokenizer.create_decoder()([tokenizer.vocab_info.unk_idx])


def test_saved_and_loaded_it_encodes_equally(folder: Path, family: str, tmp_path: Path) -> None:
    one = made(folder, **langs(family))
    one.save(tmp_path / "t")
    loaded = load_tokenizer(tmp_path / "t")
    assert isinstance(loaded, StartedTokenizer)
    assert (loaded.vocab_info, loaded.fingerprint()) == (one.vocab_info, one.fingerprint())
    for mode in ("source", "target"):
        ids = one.create_encoder(mode=mode).batch(MORE)
        assert loaded.create_encoder(mode=mode).batch(MORE) == ids
    loaded.save(tmp_path / "again")
    for path in (tmp_path / "t").iterdir():
        assert path.read_bytes() == (tmp_path / "again" / path.name).read_bytes()


def test_the_language_is_that_of_each_side(tmp_path: Path) -> None:
    folder = save_seq2seq(tmp_path / "nllb", "nllb")
    settings = {"source_langs": ("eng_Latn", "spa_Latn"), "target_langs": ("fra_Latn",)}
    tokenizer, other = made(folder, **settings), theirs(folder, "nllb")
    other.src_lang = "spa_Latn"
    ids = tokenizer.create_encoder(lang="spa_Latn")("the cat").tolist()
    assert ids == other("the cat")["input_ids"]
    with pytest.raises(UserError, match="'spa_Latn' is not a target language"):
        tokenizer.target_prefix("spa_Latn")


def test_a_template_with_the_language_behind_the_text_is_not_that_of_nllb(tmp_path: Path) -> None:
    folder = save_seq2seq(tmp_path / "nllb", "nllb")
    ids = made(folder, **langs("nllb")).create_encoder()("the cat").tolist()
    template = json.loads((folder / "tokenizer.json").read_text())["post_processor"]
    template["single"] = [*template["single"][1:], template["single"][0]]  # as in older files
    changed(folder, "tokenizer.json", post_processor=template)
    assert made(folder, **langs("nllb")).create_encoder()("the cat").tolist() == ids


@pytest.mark.parametrize("family", LANGS)
def test_languages_that_are_not_set_are_asked_for(family: str, tmp_path: Path) -> None:
    folder = save_seq2seq(tmp_path / family, family)
    with pytest.raises(UserError, match=r"Set tokenizer\.source_langs and tokenizer\.target_langs"):
        made(folder)
    with pytest.raises(UserError, match=r"no token of the language 'klingon'"):
        made(folder, source_langs=LANGS[family][:1], target_langs=("klingon",))


def test_a_source_of_marian_begins_with_its_targets_language(tmp_path: Path) -> None:
    folder = save_seq2seq(tmp_path / "marian", "marian")
    tokenizer, other = made(folder), theirs(folder, "marian")
    for text in (">>fra<< the cat", ">>fra<<"):
        ids = tokenizer.create_encoder()(text).tolist()
        assert ids == other(text)["input_ids"]
        assert tokenizer.create_decoder()(ids) == text.removeprefix(">>fra<<").strip()
    unknown = tokenizer.create_encoder()(">>xx<< the cat").tolist()
    assert tokenizer.vocab_info.eos_idx not in unknown[:-1]


def test_a_tokenizer_can_be_that_of_another_folder(tmp_path: Path) -> None:
    folder = save_seq2seq(tmp_path / "marian", "marian")
    named = PretrainedTokenizer.Config(path=folder, start=0).build()
    assert isinstance(named, PretrainedSentencePiece)
    assert named.target_prefix() == [0]
    with pytest.raises(UserError, match="Targets are to begin with the id 999"):
        PretrainedTokenizer.Config(path=folder, start=999).build()


def test_a_decoder_without_a_start_is_refused(tmp_path: Path) -> None:
    folder = save_seq2seq(tmp_path / "t5", "t5")
    changed(folder, "config.json", decoder_start_token_id=None)
    assert made(folder).target_prefix() == [0]  # of generation_config.json
    (folder / "generation_config.json").unlink()
    with pytest.raises(UserError, match="says no decoder_start_token_id"):
        made(folder)


def test_files_that_are_wrong_are_named(tmp_path: Path) -> None:
    folder = save_seq2seq(tmp_path / "marian", "marian")
    with pytest.raises(UserError, match=r"model\.path, which is not set"):
        PretrainedTokenizer.Config().build(model=SimpleNamespace(path="", revision=None))
    (folder / "source.spm").rename(folder / "kept.spm")
    with pytest.raises(UserError, match=r"has no tokenizer\.json\. Make a folder of it once"):
        made(folder)
    (folder / "source.spm").write_bytes(b"none")
    with pytest.raises(SavedTextError, match="is not a SentencePiece model"):
        made(folder)
    (folder / "kept.spm").rename(folder / "source.spm")
    for vocab, why in (
        ({"a": 0, "b": 0}, "an id of its own"),
        ({"a": 0}, "no <unk> or no </s>"),
        ([], "must hold a JSON mapping"),
    ):
        (folder / "vocab.json").write_text(json.dumps(vocab))
        with pytest.raises(SavedTextError, match=why):
            made(folder)
    (folder / "target_vocab.json").write_text("{}")
    with pytest.raises(UserError, match="a vocabulary for each side"):
        made(folder)
