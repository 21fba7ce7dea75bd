"""What sentence-transformers' folders say of pooling, read as it is written, old and new."""

import json
from pathlib import Path

import pytest

from textmill.errors import UserError
from textmill.runtime.pretrained import (
    PretrainedFolder,
    SentenceSettings,
    longest_text,
    sentence_settings,
)


def write(folder: Path, pooling: object, *, kinds: str = "Transformer Pooling", **told: object):
    modules = [{"type": f"sentence_transformers.models.{kind}"} for kind in kinds.split()]
    (folder / "1_Pooling").mkdir(exist_ok=True)
    (folder / "modules.json").write_text(json.dumps(modules))
    (folder / "1_Pooling/config.json").write_text(json.dumps(pooling))
    (folder / "sentence_bert_config.json").write_text(json.dumps(told))
    return PretrainedFolder(folder, "made")


@pytest.mark.parametrize(
    ("said", "name"),
    [
        ({"pooling_mode_cls_token": True, "pooling_mode_mean_tokens": False}, "first"),
        ({"pooling_mode_cls_token": False, "pooling_mode_mean_tokens": True}, "mean"),
        ({"pooling_mode_max_tokens": True}, "max"),
        ({"pooling_mode": "cls"}, "first"),
        ({"pooling_mode": ["mean"]}, "mean"),
    ],
)
def test_poolings_of_today_and_of_before(said: object, name: str, tmp_path: Path) -> None:
    found = sentence_settings(write(tmp_path, said, max_seq_length=256))
    assert found == SentenceSettings(name, normalize=False)
    unit = sentence_settings(write(tmp_path, said, kinds="Transformer Pooling Normalize"))
    assert unit == SentenceSettings(name, normalize=True)


def test_where_lengths_are_not_said_they_are_the_tokenizers(tmp_path: Path) -> None:
    folder = write(tmp_path, {"pooling_mode": "mean"})
    for said, longest in ((128, 128), (10**30, None), (None, None), ("9", None)):
        (tmp_path / "tokenizer_config.json").write_text(json.dumps({"model_max_length": said}))
        assert longest_text(folder) == longest
    assert longest_text(write(tmp_path, {"pooling_mode": "mean"}, max_seq_length=64)) == 64


def test_a_folder_of_a_plain_model_says_nothing(tmp_path: Path) -> None:
    assert sentence_settings(PretrainedFolder(tmp_path, "made")) is None
    assert longest_text(PretrainedFolder(tmp_path, "made")) is None


def test_what_textmill_does_not_do_is_refused(tmp_path: Path) -> None:
    mean = {"pooling_mode": "mean"}
    for said in (
        {"pooling_mode": ["cls", "mean"]},
        {"pooling_mode": "weightedmean"},
        {},
        {"pooling_mode": 3},
    ):
        with pytest.raises(UserError, match=r"wanted one of the poolings cls, max, mean"):
            sentence_settings(write(tmp_path, said))
    with pytest.raises(UserError, match=r"found Transformer, Pooling, Dense\. Say yourself"):
        sentence_settings(write(tmp_path, mean, kinds="Transformer Pooling Dense"))
    with pytest.raises(UserError, match=r"needs texts in lower case, or with a prompt"):
        sentence_settings(write(tmp_path, mean, do_lower_case=True))
    folder = write(tmp_path, [])
    with pytest.raises(UserError, match=r"config.json must hold a JSON mapping; it has \[\]"):
        sentence_settings(folder)
    (tmp_path / "modules.json").write_text('{"a')
    with pytest.raises(UserError, match=r"modules.json: not readable as JSON"):
        sentence_settings(folder)
