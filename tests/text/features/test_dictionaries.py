"""Dictionaries: the longest phrase wins, JSON as PyText has it, files and cells that cannot be."""

import pytest

from tests.text.saved import change
from textmill.data.column_batch import collate_columns
from textmill.data.text_rows import TextRows
from textmill.errors import DataError, UserError
from textmill.text.columns.dictionary import (
    FittedKinds,
    GivenKinds,
    GivenKindsColumn,
    Phrases,
    PhrasesColumn,
    PhrasesOfFile,
    kinds_in,
    read_phrases,
)
from textmill.text.columns.inputs import text_columns
from textmill.text.columns.labels import LabelColumn
from textmill.text.features.labels import Labels
from textmill.text.processors.texts import LabelText
from textmill.text.tokenizers.word_tokenizer import FittedWords

PAIRS = [("city", "New York"), ("paper", "The New York Times"), ("time", "times"), ("city", "York")]


def named(phrases, text):
    return [(place, phrases.kinds[kind - 1]) for place, kind, weight in phrases.find(text, 0)]


# --- phrases


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("new york", [(0, "city"), (1, "city")]),
        ("New Times", [(1, "time")]),
        ("York York", [(0, "city"), (1, "city")]),
        ("the new york times", [(at, "paper") for at in range(4)]),
        ("the new york tomes", [(1, "city"), (2, "city")]),
        ("the the new york times", [(at, "paper") for at in range(1, 5)]),
        ("the new york", [(1, "city"), (2, "city")]),
        (["old", "YORK"], [(1, "city")]),
        ("", []),
    ],
)
def test_the_longest_phrase_wins_from_the_first_word_on(text, found):
    assert named(Phrases(PAIRS), text) == found


def test_case_may_matter_and_spaces_do_not():
    phrases = Phrases([("city", " New\t York ")], lowercase=False)
    assert named(phrases, "New  York") == [(0, "city"), (1, "city")]
    assert named(phrases, "new york") == []


def test_what_is_found_is_what_a_search_of_all_stretches_finds():
    import random

    draw = random.Random(5)
    words = "abc"
    pairs = [
        (draw.choice("XY"), " ".join(draw.choices(words, k=draw.randint(1, 4)))) for _ in range(12)
    ]
    phrases = Phrases(pairs)
    for _ in range(300):
        text = draw.choices(words, k=draw.randint(0, 9))
        expected, place = [], 0
        while place < len(text):
            ends = [
                end
                for end in range(len(text), place, -1)
                if any(phrase.split() == text[place:end] for _, phrase in pairs)
            ]
            kinds = [k for k, phrase in pairs if ends and phrase.split() == text[place : ends[0]]]
            for at in range(place, ends[0] if ends else place):
                expected += [(at, kind) for kind in dict.fromkeys(kinds)]
            place = ends[0] if ends else place + 1
        assert sorted(named(phrases, text)) == sorted(expected)


@pytest.mark.parametrize("pair", [("", "a"), ("a", " "), ("a\tb", "c"), ("a\nb", "c")])
def test_a_phrase_without_a_word_or_a_kind_is_refused(pair):
    with pytest.raises(UserError, match="A phrase must have a kind, without tab or line end, and"):
        Phrases([("city", "Ur"), pair])


def test_a_phrase_as_long_as_a_text_is_refused():
    assert Phrases([("a", "so " * 100)]).known
    with pytest.raises(UserError, match=r"at most 100 words, but one has 101: 'so so"):
        Phrases([("a", "so " * 101)])


def test_phrases_of_a_file(tmp_path):
    path = tmp_path / "names.tsv"
    path.write_bytes(b"\xef\xbb\xbfcity\tNew York\r\n\r\nriver\tPo")
    phrases = PhrasesOfFile.Config(path=path, column="said").build()
    assert list(phrases.pairs) == [("city", "new york"), ("river", "po")]
    assert phrases.column == "said"


@pytest.mark.parametrize(
    ("content", "error"),
    [
        (b"city\tUr\nNew York\n", r"names.tsv:2: wanted a kind, a tab and a phrase, found 'New Yo"),
        (b"\tUr\n", r"names.tsv:1: wanted a kind, a tab"),
        (b"a\tb\nc\t\xff\n", r"names.tsv:2: the line is not UTF-8"),
        (b" \n\n", r"names.tsv has no phrase: wanted a kind, a tab and a phrase in each line"),
    ],
)
def test_a_file_that_has_no_phrases_is_refused(content, error, tmp_path):
    path = tmp_path / "names.tsv"
    path.write_bytes(content)
    with pytest.raises((DataError, UserError), match=error):
        read_phrases(path)


# --- findings in the rows


def test_pytexts_two_rows_have_its_five_kinds_and_its_weights(shared_data):
    path = shared_data / "pytext-tiny" / "train_dict_features.tsv"
    rows = TextRows.Config(path=path, columns=("text", "found")).build().rows()
    dictionary = FittedKinds.Config(column="found").build(train_data=rows)
    assert dictionary.size == 6  # PyText's 7 with the unknown kind, which has no vector there
    # Its GazetteerTensorizer: [1, 1, 2, 3, 1, 1, 4, 1, 1, 1] and [0, 0, .8, .2, 0, 0, 1, 0, 0, 0],
    # two places a word, kinds from 2 on in the order of their first row.
    assert [tuple(f) for f in dictionary.find(rows[0]["found"], 0)] == [
        (1, 2 - 1, 0.8), (1, 3 - 1, 0.2), (3, 4 - 1, 1.0),
    ]  # fmt: skip
    assert [tuple(f) for f in dictionary.find(rows[1]["found"], 1)] == [(2, 4, 1.0), (4, 5, 1.0)]


@pytest.mark.parametrize(
    ("cell", "error"),
    [
        ("[1]", ", at '0'"),
        ('{"a": 1}', ""),
        ("[" * 10_000, ""),
        ('[{"tokenIdx": 1}]', ", at '0.features'"),
        ('[{"tokenIdx": 1, "features": {}, "more": 1}]', ", at '0.more'"),
        ('[{"tokenIdx": true, "features": {}}]', ", at '0.tokenIdx'"),
        ('[{"tokenIdx": 9999999999, "features": {}}]', ", at '0.tokenIdx'"),
        ('[{"tokenIdx": 0, "features": ["a"]}]', ", at '0.features'"),
        ('[{"tokenIdx": 0, "features": {"a": NaN}}]', ", at '0.features.a'"),
        ('[{"tokenIdx": 0, "features": {"a": 1e300}}]', ", at '0.features.a'"),
        ('[{"tokenIdx": 0, "features": {"a": true}}]', ", at '0.features.a'"),
    ],
)
def test_cells_that_cannot_be_used_are_named(cell, error):
    with pytest.raises(DataError, match=rf"^Row 3, column 'found': wanted a list as .*{error}"):
        kinds_in(cell, "found", 3)


def test_a_kind_has_a_name_and_a_long_one_does_not_fill_the_error():
    with pytest.raises(DataError, match=r"^Row 3, column 'found': wanted the name of a kind"):
        kinds_in('[{"tokenIdx": 0, "features": {" ": 1}}]', "found", 3)
    with pytest.raises(DataError, match=r"found 'x'\. .*, at '0\.features\.a") as caught:
        kinds_in([{"tokenIdx": 0, "features": {"a\n" * 10_000: "x"}}], "found", 3)
    assert len(str(caught.value)) < 400
    assert "\n" not in str(caught.value)


def test_a_word_is_there_once():
    with pytest.raises(
        DataError, match=r"^Row 3, column 'found': wanted each word once, .* 0 again"
    ):
        kinds_in('[{"tokenIdx": 0, "features": {}}, {"tokenIdx": 0, "features": {}}]', "found", 3)


def test_a_word_far_into_a_row_is_known():
    cell = '[{"tokenIdx": 5000, "features": {"drink": 1}}]'
    assert GivenKinds(["drink"], column="found").find(cell, 0) == [(5000, 1, 1.0)]


def test_kinds_are_those_of_the_training_data():
    rows = [
        {"found": '[{"tokenIdx": 0, "features": {"b": 1, "a": 1}}]'},
        {"found": [{"tokenIdx": 2, "features": {"a": 1}}]},
    ]
    config = FittedKinds.Config(column="found")
    assert config.build(train_data=rows).kinds == ("b", "a")
    assert FittedKinds.Config(column="found", min_count=2).build(train_data=rows).kinds == ("a",)
    with pytest.raises(DataError, match="'found' that occurs 3 times"):
        FittedKinds.Config(column="found", min_count=3).build(train_data=rows)
    with pytest.raises(DataError, match=r"Row 0 of train_data has no column 'dictionary' to take"):
        FittedKinds.Config().build(train_data=rows)
    with pytest.raises(UserError, match="min_count must be at least 1, but is 0"):
        FittedKinds.Config(min_count=0)


# --- in a text processor


def path_of(dictionary, **settings):
    words = FittedWords.Config().build(train_data=[{"text": "in New York and Rome"}])
    columns = text_columns(words, dictionary=dictionary, **settings)
    return LabelText(columns, {"label": LabelColumn(Labels(["a", "b"]))})


def test_phrases_are_found_in_the_text_itself(tmp_path):
    path = path_of(Phrases(PAIRS))
    assert path.input_columns == ("text",)
    path.save(tmp_path)
    from textmill.text import load_text_processor

    loaded = load_text_processor(tmp_path)
    assert list(loaded.ingredients["dictionary"].pairs) == list(Phrases(PAIRS).pairs)
    for which in (path, loaded):
        found = which.encode([{"text": "New York"}, {"text": ""}], with_targets=False)
        assert found["dictionary"].values.tolist() == [0, 1, 1, 1, 1, 1]
        batch = collate_columns(found, which.all, [1, 0])
        assert batch["dictionary"].tolist() == [[[0, 0, 0]] * 2, [[0, 1, 1], [1, 1, 1]]]
        assert batch.lengths["dictionary"].tolist() == [0, 2]


def test_a_word_behind_the_text_is_refused_with_its_row():
    path = path_of(GivenKinds(["city"], column="found"))
    cells = [
        '[{"tokenIdx": 1, "features": {"city": 1}}]',
        '[{"tokenIdx": 2, "features": {"city":1}}]',
    ]
    rows = [{"text": "in Rome", "found": cell} for cell in cells]
    assert len(path.encode(rows[:1], with_targets=False)["dictionary"]) == 1
    with pytest.raises(DataError) as error:
        path.encode(rows, with_targets=False)
    assert str(error.value).startswith("Row 1, column 'found': has kinds of the word at 2 (from")


def test_what_is_known_of_words_behind_the_limit_is_cut():
    column = GivenKindsColumn(GivenKinds(["a", "b"], column="found"))
    cell = [{"tokenIdx": place, "features": {"a": 1, "b": 2}} for place in range(4)]
    encoded = column.encode([cell, [], cell[3:], cell])
    cut = column.cut(encoded, 2)
    assert cut.lengths.tolist() == [12, 0, 0, 12]
    assert cut[3].reshape(-1, 3)[:, 0].tolist() == [0, 0, 1, 1]


@pytest.mark.parametrize(
    "content", [{"pairs": []}, {"pairs": ["city"]}, {"lowercase": "maybe"}, {"text": 3}]
)
def test_saved_phrases_that_were_changed_are_refused(content, tmp_path):
    from textmill.text.columns.column import Column
    from textmill.text.metadata import SavedTextError

    PhrasesColumn(Phrases(PAIRS)).save(tmp_path)
    change(tmp_path / "column.json", **content)
    with pytest.raises(SavedTextError):
        Column.load(tmp_path)
