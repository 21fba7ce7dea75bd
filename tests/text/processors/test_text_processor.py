"""Rows to arrays and outputs to answers, saved and loaded; and real sentences there and back."""

import json
import re

import numpy as np
import pytest

from tests.text.saved import change
from textmill.errors import DataError, UserError
from textmill.text import MultilingualTokenizer, Seq2SeqText, load_text_processor
from textmill.text.metadata import SavedTextError
from textmill.text.processors.text_processor import text_processors
from textmill.text.tokenizers.word_tokenizer import WordTokenizer

ROWS = [
    {"source": "The cat sleeps on the mat.", "target": "Le chat dort sur le tapis."},
    {"source": "Why?", "target": "Pourquoi ?", "id": "7"},
    {"source": "A dog runs in the garden.", "target": "Un chien."},
]


@pytest.fixture
def path(tokenizer):
    return Seq2SeqText(tokenizer)


def test_rows_become_columns(path, tokenizer):
    encoded = path.encode(ROWS, with_targets=True)
    assert (list(encoded), len(encoded), encoded.num_rows) == (["source", "target"], 2, 3)
    for name in encoded:
        encoder = tokenizer.create_encoder(mode=name)
        assert encoded[name] == encoder.batch([row[name] for row in ROWS])
    assert encoded.over_length.tolist() == []
    assert path.columns == ("source", "target")
    assert path.target_prefix == [2]


def test_prediction_needs_no_target(path):
    rows = [{"source": row["source"]} for row in ROWS]
    encoded = path.encode(rows, with_targets=False)
    assert list(encoded) == ["source"]
    assert encoded["source"] == path.encode(ROWS, with_targets=True)["source"]
    assert path.encode([], with_targets=True).num_rows == 0


def test_long_rows_are_reported_and_cut_only_on_demand(tokenizer, path):
    whole = path.encode(ROWS, with_targets=True)
    limited = Seq2SeqText(tokenizer, max_source_length=8, max_target_length=9)
    lengths = np.array([whole[name].lengths for name in whole])
    over = np.flatnonzero((lengths[0] > 8) | (lengths[1] > 9)).tolist()
    assert over
    kept = limited.encode(ROWS, with_targets=True)
    assert kept.over_length.tolist() == over
    assert kept["source"] == whole["source"]
    cut = limited.encode(ROWS, with_targets=False, truncate=True)
    assert cut["source"].lengths.max() == 8
    assert all(row[-1] == 3 for row in cut["source"])


def test_limits_that_leave_no_room(tokenizer):
    with pytest.raises(DataError, match=r"^max_target_length must be 4 or more, but is 3\.$"):
        Seq2SeqText(tokenizer, max_target_length=3)


def test_outputs_become_text_up_to_the_first_eos(path):
    ids = path.encode(ROWS[:1], with_targets=True)["target"][0].tolist()
    outputs = [ids, ids[1:-1], [*ids, 0, 0], np.array([*ids, 20, 21]), [], [3], ids[1:]]
    text = ROWS[0]["target"]
    assert path.decode(outputs) == [text, text, text, text, "", "", text]


def test_a_batch_of_this_path_has_no_mismatch(path):
    encoded = path.encode(ROWS, with_targets=True)
    source, target = (encoded[name].padded(range(3), pad=0) for name in encoded)
    assert path.roundtrip(source, target) == []
    assert path.roundtrip(source) == []


def test_ids_of_another_path_are_found(path):
    encoded = path.encode(ROWS, with_targets=True)
    source, target = (encoded[name].padded(range(3), pad=0) for name in encoded)
    (found, *rest) = path.roundtrip(source[:, ::-1], target)
    assert found.startswith("row 0, source ")
    assert len(rest) == 2
    first, second, _ = path.roundtrip(source, target[:, 1:])
    assert first.startswith("row 0, target ")
    given = target[1, 1:][target[1, 1:] != 0].tolist()
    assert second == (
        f"row 1, target 'Pourquoi ?': the batch has ids {given}, but this text is encoded as "
        f"{[2, *given]}"
    )


def test_saved_and_loaded_it_is_the_same(model, tmp_path):
    tokenizer = MultilingualTokenizer.from_file(
        model, source_langs=("eng", "deu"), target_langs=("fra", "spa")
    )
    path = Seq2SeqText(tokenizer, source_lang="deu", target_lang="spa", max_source_length=50)
    path.save(tmp_path / "text")
    loaded = load_text_processor(tmp_path / "text")
    for with_targets in (True, False):
        made, again = (p.encode(ROWS, with_targets=with_targets) for p in (path, loaded))
        assert dict(made) == dict(again)
    assert loaded.target_prefix == path.target_prefix == [2, 67]
    assert loaded.limits == {"source": 50}


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        (
            {"type": "os"},
            f"Unknown text processor 'os'. Known: {', '.join(text_processors.names())}.",
        ),
        ({"settings": {"source_lang": 1}}, "the setting 'source_lang' cannot be 1."),
        ({"settings": {"source_lang": None}}, "the setting 'target_lang' is missing."),
    ],
)
def test_a_strangers_description_is_refused(path, tmp_path, changed, message):
    path.save(tmp_path)
    file = tmp_path / "text.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | changed))
    with pytest.raises(SavedTextError, match=re.escape(message)):
        load_text_processor(tmp_path)


def test_a_strangers_description_names_no_folder(path, tmp_path):
    path.save(tmp_path)
    change(tmp_path / "text.json", tokenizer="/etc")
    with pytest.raises(SavedTextError, match=r"text\.json: unknown setting 'tokenizer'\."):
        load_text_processor(tmp_path)


def test_a_tokenizer_without_marks_cannot_write_texts():
    with pytest.raises(UserError) as caught:
        Seq2SeqText(WordTokenizer.Config(words=("go",)).build())
    assert str(caught.value).startswith("Generated text needs marks of its beginning and end, but")
    Seq2SeqText(WordTokenizer.Config(words=("go",), marks=True).build())
