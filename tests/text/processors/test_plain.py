"""A text processor of any columns: encoded by role, saved as data, changed files refused."""

import json

import pytest

from tests.text.saved import change
from textmill.errors import UserError
from textmill.text import load_text_processor
from textmill.text.columns.dictionary import Phrases
from textmill.text.columns.inputs import word_columns
from textmill.text.columns.labels import LabelColumn, TagsColumn
from textmill.text.columns.numbers import NumberColumn
from textmill.text.columns.token_ids import TextColumn
from textmill.text.features.labels import Labels
from textmill.text.features.spelling import Characters
from textmill.text.metadata import SavedTextError
from textmill.text.processors.column_processor import PlainColumns
from textmill.text.processors.tagging import TaggingText
from textmill.text.tokenizers.word_tokenizer import WordTokenizer

ROWS = [{"said": "wake me", "score": "2", "verdict": "b"}]


@pytest.fixture
def path():
    words = WordTokenizer.Config(words=("wake", "me")).build()
    return PlainColumns(
        {"text": TextColumn("said", words, limit=1), "score": NumberColumn("score")},
        {"label": LabelColumn(Labels(["a", "b"], column="verdict"))},
    )


def test_columns_are_encoded_by_their_roles(path):
    encoded = path.encode(ROWS, with_targets=True, truncate=True)
    assert {role: column.values.tolist() for role, column in encoded.items()} == {
        "text": [2], "score": [2.0], "label": [1],
    }  # fmt: skip
    assert set(path.encode(ROWS, with_targets=False)) == {"text", "score"}
    assert path.decode([3, "x"]) == [3, "x"]


def test_it_comes_back_from_its_files(path, tmp_path):
    path.save(tmp_path)
    loaded = load_text_processor(tmp_path)
    assert type(loaded) is PlainColumns
    assert (loaded.input_columns, loaded.target_columns) == (("said", "score"), ("verdict",))
    assert list(loaded.all) == list(path.all)
    assert loaded.limits == {"text": 1}
    assert set(loaded.ingredients) == {"tokenizer", "labels"}
    before, after = (p.encode(ROWS, with_targets=True) for p in (path, loaded))
    assert {k: v.values.tolist() for k, v in after.items()} == {
        k: v.values.tolist() for k, v in before.items()
    }


@pytest.mark.parametrize(
    ("settings", "error"),
    [
        ({"inputs": ["text"]}, "the setting 'targets' is missing"),
        ({"inputs": ["../text"], "targets": []}, "up to 100 names, each once"),
        ({"inputs": ["text"], "targets": ["text"]}, "up to 100 names, each once"),
        ({"inputs": ["text"] * 101, "targets": []}, "up to 100 names, each once"),
        ({"inputs": ["other"], "targets": []}, r"column\.json: missing"),
    ],
)
def test_files_that_were_changed_are_refused(path, tmp_path, settings, error):
    path.save(tmp_path)
    file = tmp_path / "text.json"
    file.write_text(json.dumps({**json.loads(file.read_text()), "settings": settings}))
    with pytest.raises(SavedTextError, match=error):
        load_text_processor(tmp_path)


def test_what_differs_from_the_path_of_a_task_is_told(path):
    words = path.inputs["text"].tokenizer
    number, label = path.inputs["score"], path.targets["label"]
    assert path.difference(path) == ""
    for other, said in (
        (PlainColumns({"text": path.inputs["text"]}, path.targets), "score (number 'score')"),
        (PlainColumns(path.inputs, {}), "has the targets label (label 'verdict'), but those of"),
        (PlainColumns(path.inputs, {"verdict": label}), "those of the task are verdict (label"),
        (
            PlainColumns({"text": TextColumn("said", words), "score": number}, path.targets),
            "text (text 'said', 1), score (number 'score'), but those of the task are text (text "
            "'said'), score",
        ),
    ):
        assert said in path.difference(other)


def test_two_roles_of_one_column():
    with pytest.raises(UserError, match="'age' is there twice"):
        PlainColumns({"one": NumberColumn("age")}, {"other": NumberColumn("age")})


def test_saved_columns_that_cannot_stand_beside_one_another_are_refused(tmp_path):
    words = WordTokenizer.Config(words=("wake", "me")).build()
    inputs = word_columns(words, column="words", characters=Characters("wake"))
    tags = TagsColumn(Labels(["O", "B"], column="tags", multiple=True))
    TaggingText(inputs, {"tags": tags}).save(tmp_path)
    change(tmp_path / "columns" / "characters" / "column.json", name="other")
    with pytest.raises(SavedTextError, match=r"text\.json: The characters must be those of the"):
        load_text_processor(tmp_path)
    with pytest.raises(UserError, match=r"looked for in 'text': set dictionary\.column=words"):
        TaggingText(word_columns(words, dictionary=Phrases([("act", "wake me")])), {"tags": tags})
