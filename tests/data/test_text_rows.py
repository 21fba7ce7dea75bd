"""Rows with columns of any names: sentences of words with a tag each, in CoNLL and JSON lines."""

import pytest

from textmill.data.text_rows import TextRows
from textmill.errors import DataError, UserError

CONLL = "Al NNP B\nZaman NNP I\n\nsays VBZ O\n"
ROWS = [{"words": "Al Zaman", "tags": "B I"}, {"words": "says", "tags": "O"}]


def written(tmp_path, name, text, **settings):
    path = tmp_path / name
    path.write_text(text, encoding="utf-8")
    return TextRows.Config(path=path, **settings).build()


@pytest.mark.parametrize(
    ("name", "settings"),
    [
        ("a.conll", {"columns": {"words": 0, "tags": -1}}),
        ("a.tsv", {"columns": {"words": 0, "tags": 2}, "format": "conll"}),
    ],
)
def test_a_sentence_of_a_conll_file_is_a_row(tmp_path, name, settings):
    assert list(written(tmp_path, name, CONLL, **settings)) == ROWS


def test_names_alone_are_the_first_columns_of_a_conll_file(tmp_path):
    rows = list(written(tmp_path, "a.conll", CONLL, columns=("words", "pos")))
    assert rows[0] == {"words": "Al Zaman", "pos": "NNP NNP"}


def test_a_list_of_words_in_json_lines_has_spaces_between(tmp_path):
    lines = '{"tokens": ["Al", "Zaman"], "tags": ["B", "I"]}\n{"tokens": "says", "tags": ["O"]}\n'
    columns = {"words": "tokens", "tags": "tags"}
    assert list(written(tmp_path, "a.jsonl", lines, columns=columns)) == ROWS
    bad = '{"tokens": ["Al", null], "tags": ["B", "I"]}\n'
    with pytest.raises(DataError, match="'tokens': wanted a list of texts or numbers, found null"):
        written(tmp_path, "b.jsonl", bad, columns=columns).read()
    empty = '{"tokens": [], "tags": []}\n'
    with pytest.raises(DataError, match="column 'words' is empty"):
        written(tmp_path, "c.jsonl", empty, columns=columns).read()


@pytest.mark.parametrize("setting", [{"header": True}, {"extra_columns": "error"}])
def test_settings_that_a_conll_file_cannot_have_are_refused(tmp_path, setting):
    (name,) = setting
    with pytest.raises(UserError, match=f"^{name}: a conll file has no header .* leave {name} out"):
        written(tmp_path, "a.conll", CONLL, **setting)


@pytest.mark.parametrize("name", ["a.tsv", "a.csv", "a.jsonl"])
def test_a_column_that_is_optional_may_be_empty(tmp_path, name):
    lines = {
        "a.tsv": "x\t\twake me\nx\tO O\twake me\n",
        "a.csv": "x,,wake me\nx,O O,wake me\n",
        "a.jsonl": '{"label": "x", "slots": "", "text": "wake me"}\n'
        '{"label": "x", "slots": "O O", "text": "wake me"}\n',
    }[name]
    columns = ("label", "slots", "text")
    rows = list(written(tmp_path, name, lines, columns=columns, optional=("slots",)))
    assert [row["slots"] for row in rows] == ["", "O O"]
    with pytest.raises(DataError, match="column 'slots' is empty"):
        written(tmp_path, name, lines, columns=columns).read()
    with pytest.raises(
        UserError, match=r"wanted names of columns \(label, slots, text\), found 'a'"
    ):
        written(tmp_path, name, lines, columns=columns, optional=("a",))


def test_what_is_no_token_of_a_conll_file_is_left_out_and_said(tmp_path, caplog):
    caplog.set_level("INFO", logger="textmill")
    columns = {"words": 0, "tags": -1}
    text = f"-DOCSTART- -X- O\n\n# text = Al Zaman\n{CONLL}"
    data = written(tmp_path, "a.conll", text, columns=columns)
    assert list(data) == ROWS
    data.read()
    assert caplog.messages == [f"{tmp_path / 'a.conll'}: 2 lines are no tokens: left out."]


def test_how_a_conll_file_is_read_can_be_said(tmp_path):
    columns = {"words": 0, "tags": -1}
    marked = written(tmp_path, "a.conll", f"% one\n{CONLL}", columns=columns, comment="%")
    assert list(marked) == ROWS
    tabs = CONLL.replace(" ", "\t")
    assert list(written(tmp_path, "b.conll", tabs, columns=columns, separator="tab")) == ROWS
    bad = written(tmp_path, "c.conll", tabs, columns=columns, separator="space")
    with pytest.raises(DataError, match=r"column 'words': wanted one word, found 'Al.*NNP"):
        bad.read()


@pytest.mark.parametrize("setting", [{"separator": "tab"}, {"comment": "#"}, {"comment": ""}])
@pytest.mark.parametrize("name", ["a.tsv", "a.csv", "a.jsonl", "a.parquet", "a.arrow"])
def test_settings_of_conll_files_are_refused_for_others(tmp_path, name, setting):
    (key,) = setting
    kind = name.partition(".")[2]
    undone = f"leave {key} out, or undo what is inherited by {key}="
    message = f"^{key}: only conll files have it, and this is {kind}; {undone}"
    with pytest.raises(UserError, match=message):
        written(tmp_path, name, "", **setting)


SUMMARIES = (
    '{"text": ["One.", "Two.\\n"], "short": ["a", "b \\u00e9"]}\n{"text": "x", "short": "c"}\n'
)
FIRST = {"source": "text", "target": "short.0", "references": "short"}


def test_a_list_of_several_answers_stays_one_and_its_first_is_had_by_its_place(tmp_path):
    columns = {"text": "text", "references": "short"}
    rows = list(written(tmp_path, "a.jsonl", SUMMARIES, columns=columns, lists=("references",)))
    assert rows == [
        {"text": "One. Two.\n", "references": "a b é"},
        {"text": "x", "references": "c"},
    ]
    assert [row["references"].parts for row in rows] == [("a", "b é"), ("c",)]
    lines = SUMMARIES.replace('"c"', '["c"]')
    rows = list(written(tmp_path, "b.jsonl", lines, columns=FIRST, lists=("references",)))
    assert [row["target"] for row in rows] == ["a", "c"]


@pytest.mark.parametrize(
    ("short", "problem"),
    [
        ("[]", "no key 'short.0'"),
        ("[{}]", "'short.0': wanted text, a number or a list of them, found an object"),
        ('["a", ["b"]]', "'short': wanted a list of texts or numbers, found a list at 1"),
        ('["a", "b\\u0000"]', "'short': NUL at character 1, in the text at 1 of the list"),
        ('"a"', "no key 'short.0'"),
        ('{"0": {}}', "'short.0': wanted text, .*, found an object"),
    ],
)
def test_a_list_that_is_none_of_texts_is_a_bad_row(tmp_path, short, problem):
    lines = f'{{"text": "x", "short": {short}}}\n'
    with pytest.raises(DataError, match=problem):
        written(tmp_path, "a.jsonl", lines, columns=FIRST, lists=("references",)).read()


def test_lists_are_columns_of_json_lines_and_parquet(tmp_path):
    with pytest.raises(UserError, match=r"^lists: wanted names of columns \(label, text\), found"):
        written(tmp_path, "a.jsonl", "", lists=("a",))
    for name, problem in (
        ("a.tsv", "tsv; leave it out or empty it, as in train_data.lists=[]."),
        (
            "a.json",
            "squad; leave it out or empty it, as in train_data.lists=[]; or, if these are JSON "
            "lines, train_data.format=jsonl.",
        ),
    ):
        with pytest.raises(UserError) as caught:
            written(tmp_path, name, "", lists=("text",))
        have = "lists: only jsonl, parquet and arrow files have it, and this is "
        assert str(caught.value) == have + problem
