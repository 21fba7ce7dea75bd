"""What holds for every column: encoded rows, saving as data, errors that name row and column."""

import json
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from tests.text.saved import change
from textmill.errors import DataError, UserError
from textmill.text.columns.column import Column
from textmill.text.columns.dictionary import GivenKinds, GivenKindsColumn, Phrases, PhrasesColumn
from textmill.text.columns.labels import (
    LabelColumn,
    LabelsColumn,
    SlotsColumn,
    TagsColumn,
    TreeActionsColumn,
    TreesColumn,
)
from textmill.text.columns.numbers import (
    NumberColumn,
    Numbers,
    NumbersColumn,
)
from textmill.text.columns.texts import END, TextsColumn
from textmill.text.columns.token_ids import TextColumn
from textmill.text.columns.words import AffixesColumn, CharactersColumn, NgramsColumn, WordsColumn
from textmill.text.features.labels import Labels
from textmill.text.features.passages import read_passages
from textmill.text.features.slots import Slots
from textmill.text.features.spelling import Affixes, Characters
from textmill.text.features.tree_actions import TreeActions
from textmill.text.features.tree_tags import TreeTags
from textmill.text.metadata import SavedTextError
from textmill.text.processors.extract import OverlapsColumn
from textmill.text.processors.question_answering import AnswersColumn, MatchesColumn, PassageColumn
from textmill.text.tokenizers.ngram_tokenizer import NgramTokenizer
from textmill.text.tokenizers.word_tokenizer import WordTokenizer


@dataclass(frozen=True)
class Case:
    column: Column
    values: list[Any]
    rows: list[list[float]]
    bad: Any = None
    """A value that cannot be used; None: the column's text processor makes all of its values."""


WORDS = WordTokenizer.Config(words=("wake", "me", "up")).build()
QUESTION = WordTokenizer.Config(words=("who", "?"), split="punctuation").build()
TOPICS = Labels(["news", "sport"], column="c", multiple=True, separator="|")
CASES = {
    "text": Case(TextColumn("c", WORDS, limit=3), ["Wake UP", "", "now"], [[2, 4], [1], [1]], 7),
    "texts": Case(
        TextsColumn("c", WORDS, length=2, limit=3), [["Wake UP now", ""], "up\nme\n", ["me"]],
        [[2, 4, END, 1, END], [4, END, 3, END], [3, END]], [],
    ),
    "context": Case(
        TextsColumn("c", WORDS, length=2, around=2), [["now", "wake", "me"], ["up"]],
        [[2, END, 3, END], [4, END]], ["up", 3],
    ),
    "label": Case(LabelColumn(Labels(["a", "b"], column="c")), ["b", "a"], [[1], [0]], "c"),
    "labels": Case(
        LabelsColumn(TOPICS), ["sport | news", "", ["sport"]], [[0, 1], [], [1]], "weather"
    ),
    "words": Case(
        WordsColumn("c", WORDS, limit=3), ["Wake UP", ["now"], ""], [[2, 4], [1], []], ["a b"]
    ),
    "characters": Case(
        CharactersColumn(Characters("dog", length=4, column="c")), ["dog Go", [], ["x"]],
        [[2, 4, 6, 3, 2, 1, 5, 3], [], [2, 1, 3, 0]], 7,
    ),
    "affixes": Case(
        AffixesColumn(Affixes([["g"], ["xx", "Xx"]], prefixes=[], suffixes=[1], column="c")),
        ["dog Go", [], ["x"]], [[3, 4, 1, 5], [], [1, 2]], 7,
    ),
    "passage": Case(
        PassageColumn("c", QUESTION, limit=3), read_passages(QUESTION, ["Who won?", "won", ""]),
        [[2, 1, 3], [1], []],
    ),
    "matches": Case(
        MatchesColumn("c"),
        [(["The", "Normans"], ["the", "The", "Norman", "men"]), ([], ["a"]), (["a"], [])],
        [[2, 3, 1, 0], [0], []],
    ),
    "answers": Case(
        AnswersColumn("c", "s"), [[(0, 2), (1, 1)], [], [(3, 3)]], [[0, 2, 1, 1], [], [3, 3]]
    ),
    "tags": Case(
        TagsColumn(Labels(["O", "B"], column="c", multiple=True)), ["B O B", ["O"], ""],
        [[1, 0, 1], [0], []], "O I",
    ),
    "trees": Case(
        TreesColumn(TreeTags(["[IN:A", "[SL:B]", "O"], column="c")),
        ["[IN:A x [SL:B y ] z ]", "[IN:A x ]"], [[0, 1, 2], [0]], "[IN:A x",
    ),
    "tree_actions": Case(
        TreeActionsColumn(TreeActions(["IN:A", "SHIFT", "SL:B", "REDUCE"], column="c")),
        ["[IN:A x [SL:B y ] z ]", "[IN:A x ]"], [[0, 1, 2, 1, 3, 1, 3], [0, 1, 3]], "[IN:A x",
    ),
    "overlaps": Case(OverlapsColumn("c"), [[0.25, 1.0], []], [[0.25, 1.0], []]),
    "slots": Case(
        SlotsColumn(Slots(["time", "day"], column="c")), ["O B-time I-time", "", ["B-day"]],
        [[0, 1, 2], [], [3]], "O B-eggs O",
    ),
    "phrases": Case(
        PhrasesColumn(Phrases([("city", "New York"), ("song", "new york")], column="c")),
        ["to New York", "", ["York"]], [[1, 1, 1, 1, 2, 1, 2, 1, 1, 2, 2, 1], [], []], 7,
    ),
    "given_kinds": Case(
        GivenKindsColumn(GivenKinds(["drink", "song"], column="c"), text="words"),
        [
            '[{"tokenIdx": 3, "features": {"song": 0.5, "x": 1}}]', "",
            [{"tokenIdx": 0, "features": {"drink": 2}}],
        ],
        [[3, 2, 0.5], [], [0, 1, 2]],
        "[{tokenIdx: 1}]",
    ),
    "ngrams": Case(
        NgramsColumn("c", NgramTokenizer({"wake": 2, "up": 1, "me up": 1}, {"wa": 2}, rows=2)),
        ["Wake me up!", "", ["wake"]], [[2, 3, 4, 5], [], [2, 5]], 7,
    ),
    "weight": Case(NumberColumn("c", least=0.0), ["0", 0.5], [[0.0], [0.5]], "-1"),
    "numbers of words": Case(
        NumbersColumn("c", Numbers("c", [1.0, 0.0], [2.0, 1.0], of_words=True)),
        ["[[3, 4], [1, 0]]", "[]"], [[1.0, 4.0, 0.0, 0.0], []], "[[1, 2], [1]]",
    ),
    "number": Case(NumberColumn("c"), ["1.5", 2], [[1.5], [2.0]], "much"),
    "numbers": Case(
        NumbersColumn("c", Numbers("c", [1.0, 0.0], [2.0, 1.0])), ["[3, 4]", "1 0"],
        [[1.0, 4.0], [0.0, 0.0]], "[1, 2, 3]",
    ),
}  # fmt: skip


@pytest.fixture(params=CASES)
def case(request) -> Case:
    return CASES[request.param]


def test_rows_become_numbers(case):
    encoded = case.column.encode(case.values)
    assert [row.tolist() for row in encoded] == case.rows
    assert all(len(row) == 1 for row in encoded) or not case.column.single


def test_no_row_is_none(case):
    assert len(case.column.encode([])) == 0


def test_saved_and_loaded_it_encodes_the_same(case, tmp_path):
    case.column.save(tmp_path / "column")
    loaded = Column.load(tmp_path / "column")
    assert type(loaded) is type(case.column)
    assert (loaded.name, loaded.limit, loaded.pad) == ("c", case.column.limit, case.column.pad)
    one, two = case.column.encode(case.values), loaded.encode(case.values)
    assert one == two
    assert one.values.dtype == two.values.dtype


def test_a_bad_value_is_named_with_its_row_and_column(case):
    if case.bad is None:
        pytest.skip("its text processor has read them")
    with pytest.raises(DataError, match=r"^Row 1, column 'c': "):
        case.column.encode([case.values[0], case.bad])


def test_a_changed_description_is_refused(case, tmp_path):
    case.column.save(tmp_path)
    path = tmp_path / "column.json"
    content = json.loads(path.read_text())
    for changed in (
        {**content, "type": "no such"},
        {**content, "settings": {**content["settings"], "more": "x"}},
        {**content, "settings": {}},
        {**content, "settings": {**content["settings"], "name": 3}},
    ):
        path.write_text(json.dumps(changed))
        with pytest.raises(SavedTextError):
            Column.load(tmp_path)


@pytest.mark.parametrize(
    "fitted", [([1], [0]), ([0], [1e-300]), ([1, 2], [1]), ([1], [-1]), ([float("nan")], [1])]
)
def test_a_normalization_that_cannot_be_is_refused(fitted, tmp_path):
    CASES["numbers"].column.save(tmp_path)
    change(tmp_path / "column.json", mean=fitted[0], deviation=fitted[1])
    with pytest.raises(SavedTextError):
        Column.load(tmp_path)


@pytest.mark.parametrize("value", ["1e39", -1e300, 10**400], ids=["text", "float", "integer"])
def test_a_number_that_no_float32_holds_is_refused(value):
    normalized = NumbersColumn("c", Numbers("c", [0.0, 0.0], [1.0, 1e-6]))
    for column, bad in (
        (NumberColumn("c"), value),
        (NumberColumn("c", span=(0.0, 5.0)), value),
        (normalized, [0, value]),
    ):
        with pytest.raises(DataError, match=r"^Row 1, column 'c': wanted a number"):
            column.encode([[0, 0] if column is normalized else 1, bad])
    with pytest.raises(DataError, match=r"^Row 0, .* that a float32 holds, found 1e\+36\."):
        normalized.encode([[0, 1e36]])


@pytest.mark.parametrize(
    "bound", ["1" + "0" * 400, "1e300", "1"], ids=["no float", "no float32", "does not rise"]
)
def test_a_saved_span_that_no_float32_holds_is_refused(bound, tmp_path):
    NumberColumn("c", span=(1.0, 2.0)).save(tmp_path)
    path = tmp_path / "column.json"
    path.write_text(path.read_text().replace("2.0", bound))
    with pytest.raises(SavedTextError, match=r"column.json: "):
        Column.load(tmp_path)


def test_a_saved_limit_that_keeps_no_token_is_refused_with_its_file(tmp_path):
    CASES["text"].column.save(tmp_path)
    path = tmp_path / "column.json"
    path.write_text(path.read_text().replace('"limit": 3', '"limit": 0'))
    with pytest.raises(SavedTextError, match=r"column.json: A text keeps at least 1 token, but"):
        Column.load(tmp_path)


@pytest.mark.parametrize("length", [3, 10**12])
def test_places_of_characters_that_cannot_be_are_refused(length, tmp_path):
    CASES["characters"].column.save(tmp_path)
    change(tmp_path / "column.json", length=length)
    with pytest.raises(SavedTextError, match=r"column.json: characters.length must be from 4"):
        Column.load(tmp_path)


def test_dense_features_are_normalized_by_training_rows():
    from textmill.text.columns.numbers import FittedNumbers

    random = np.random.default_rng(3)
    table = random.normal(1e6, [1.0, 5.0, 0.0], (50, 3))
    rows = [{"dense": json.dumps(row.tolist())} for row in table]
    numbers = FittedNumbers.Config().build(train_data=rows)
    assert numbers.mean == pytest.approx(table.mean(0))
    assert numbers.deviation[:2] == pytest.approx(table.std(0)[:2], rel=1e-5)
    assert numbers.deviation[2] == 1
    plain = FittedNumbers.Config(normalize=False).build(train_data=rows)
    assert (plain.mean.tolist(), plain.deviation.tolist()) == ([0] * 3, [1] * 3)


def test_ngrams_are_of_the_whole_text_up_to_the_most_there_can_be(monkeypatch):
    column = CASES["ngrams"].column
    encoded = column.encode(["wake me up"])
    assert column.cut(encoded, 1) == encoded
    monkeypatch.setattr("textmill.text.columns.words.MOST_NGRAMS", 3)
    assert column.encode(["wake me up"])[0].tolist() == [2, 3, 4]


def test_ngrams_are_those_of_a_tokenizer_of_ngrams():
    with pytest.raises(UserError) as error:
        NgramsColumn("c", WORDS)
    assert str(error.value) == "ngrams must be of type fitted_ngrams, but they are a WordTokenizer."


def test_a_row_by_itself_is_encoded_as_among_others(case):
    among = case.column.encode(case.values)
    for _ in range(2):  # what is remembered of the first time changes nothing
        for number, value in enumerate(case.values):
            alone = case.column.encode([value])
            assert alone[0].tolist() == among[number].tolist()
            assert alone.values.dtype == among.values.dtype


@pytest.mark.parametrize("most", [0, 2, 100])
@pytest.mark.parametrize("name", ["characters", "affixes"])
def test_parts_of_words_are_remembered_up_to_a_limit(name, most, monkeypatch):
    monkeypatch.setattr("textmill.text.columns.words.KEPT", most)
    column = type(CASES[name].column)(CASES[name].column.feature)
    rows = ["dog Go", "x dog gg", "", "Gx dog", "dog x Go g o", "Gx"]
    wanted = [column.feature.table(row.split()).reshape(-1).tolist() for row in rows]
    for chosen in ([0], [1, 2], [2], [0, 3], [4], [5], range(6)):
        found = column.encode([rows[i] for i in chosen])
        assert [row.tolist() for row in found] == [wanted[i] for i in chosen]
        assert len(column._known) <= most
    long = "d" * 1_000_000
    assert column.encode([long])[0].tolist() == column.feature.table([long])[0].tolist()
    assert long not in column._known
