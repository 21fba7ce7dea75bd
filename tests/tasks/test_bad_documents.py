"""Documents that cannot be used, from the file to the message: nothing is dropped silently."""

import math

import pytest

import textmill
from textmill.data.text_rows import TextRows
from textmill.errors import DataError, UserError

GOOD = "ham\tsee you at home\nspam\twin cash now\nham\tlate\n"
QUIET = ("reporters.console=false", "reporters.html=false", "trainer.max_steps=3")


@pytest.fixture
def file(tmp_path):
    def write(name, text):
        path = tmp_path / name
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return path

    return write


@pytest.fixture
def train(file, tmp_path):
    def run(*words, rows=GOOD, valid=GOOD):
        paths = [f"train_data.path={file('train.tsv', rows)}"]
        paths += [f"valid_data.path={file('dev.tsv', valid)}"]
        return textmill.train(
            "classification/docnn/local", [*paths, *QUIET, *words], run_dir=tmp_path / "run"
        )

    return run


def test_an_empty_document_is_a_bad_row_of_a_file_and_is_answered_in_prediction(train):
    with pytest.raises(DataError, match=r"train.tsv:2: column 'text' is empty"):
        train(rows="ham\ta\nspam\t \n")
    predictor = textmill.load(train().folder)
    assert predictor("").label in ("ham", "spam")
    assert predictor("\t ") == predictor("")
    assert [answer.label for answer in predictor(["", "win"])] == [
        predictor("").label,
        predictor("win").label,
    ]


def test_an_unseen_label_is_counted_where_rows_are_evaluated_and_said_once(train, file, caplog):
    rows = "ham\ta\neggs\tb\nspam\tc\n"
    error = r"dev\.tsv:2: column 'label': 'eggs' is no label. The 2 labels are 'ham', 'spam'."
    with pytest.raises(DataError, match=error):
        train("task.unseen_labels=error", valid=rows)
    said = "1 of 3 rows have a label in column 'label' that training has not seen ('eggs' 1): they "
    folder = train("labels.names=[ham, spam]", valid=rows).folder
    assert caplog.text.count(said) == 1
    caplog.clear()
    (found,) = textmill.evaluate(folder, [f"valid_data.path={file('other.tsv', rows)}"]).values()
    assert found.values["accuracy"] < 1
    assert found.details["unseen_labels"].startswith(said)
    assert caplog.text.count(said) == 1


def test_a_label_that_is_not_declared_is_an_error_in_training_rows(train):
    with pytest.raises(
        DataError, match=r"train\.tsv:2: column 'label': 'spam' is no label. The 2 "
    ):
        train("labels.names=[ham, eggs]")


def test_a_class_without_an_example_has_no_value_and_drags_no_mean(train):
    folder = train("labels.names=[ham, spam, eggs]").folder
    (found,) = textmill.evaluate(folder).values()
    assert found.values["label/eggs/support"] == 0
    given = [row["prediction"] for row in found.rows]
    assert math.isnan(found.values["label/eggs/f1"]) == ("eggs" not in given)
    assert list(found.rows[0]["scores"]) == ["ham", "spam", "eggs"]


def test_the_labels_of_another_task_are_refused_at_the_first_row_that_has_none(train):
    with pytest.raises(DataError, match=r"train.tsv:1: column 'label': 'ham' is no label"):
        train("labels.names=[PlayMusic, BookRestaurant]")


def test_a_row_without_a_label_is_a_bad_row(train):
    with pytest.raises(DataError, match=r"train.tsv:2: column 'label' is empty"):
        train(rows="ham\ta\n \tb\n")


def test_rows_may_have_no_label_where_they_have_several(train):
    rows = "a, b\tone\n\ttwo\nb\tthree\n"
    words = ["labels.multiple=true", "labels.separator=,", "trainer.selection.metric=micro_f1"]
    with pytest.raises(DataError, match=r"train.tsv:2: column 'label' is empty"):
        train(*words, rows=rows, valid=rows)
    run = train(*words, "train_data.optional=[label]", rows=rows, valid=rows)
    (found,) = textmill.evaluate(run.folder).values()
    assert [row["label"] for row in found.rows] == ["a, b", "", "b"]
    assert found.values["label/b/support"] == 2


@pytest.mark.parametrize("suffix", ["tsv", "csv", "jsonl"])
def test_a_column_that_optional_is_so_in_every_format(suffix, file):
    text = {"tsv": "a\tx\n\ty\n", "csv": "a,x\n,y\n", "jsonl": '{"label": "a", "text": "x"}\n'}
    text["jsonl"] += '{"label": "", "text": "y"}\n'
    path = file(f"rows.{suffix}", text[suffix])
    rows, _ = rows_of(path, optional=("label",))
    assert [dict(row) for row in rows] == [
        {"label": "a", "text": "x"},
        {"label": "", "text": "y"},
    ]
    with pytest.raises(
        UserError, match=r"optional: wanted names of columns \(label, text\), found"
    ):
        rows_of(path, optional=("topics",))


def test_a_missing_column_names_the_file_and_its_line(train):
    with pytest.raises(DataError, match=r"train.tsv:2: wanted 2 columns, found 1"):
        train(rows="ham\ta\nspam\n")


def test_a_file_of_bad_rows_only_ends_the_run_however_many_are_allowed(train):
    with pytest.raises(DataError, match=r"found 2 bad rows and no other"):
        train("train_data.max_bad_rows=9", rows="ham\nspam\n")


def test_bad_rows_that_are_allowed_are_counted_and_kept(train):
    run = train("train_data.max_bad_rows=2", rows=GOOD + "alone\n")
    kept = (run.folder / "bad_rows.jsonl").read_text()
    assert kept.count("\n") == 1
    assert '"line": 4' in kept


# --- the odd files of PyText


def rows_of(path, **settings):
    data = TextRows.Config(path=path, **settings).build()
    return data.rows(), data.count


def test_an_unclosed_quote_merges_no_rows(shared_data):
    path = shared_data / "pytext-tiny" / "test_tsv_quoting.tsv"
    rows, count = rows_of(path)
    assert len(rows) == count.total == 4
    assert rows[0]["text"].startswith('"the vampire')


def test_invalid_bytes_are_bad_rows_with_their_place(shared_data):
    path = shared_data / "pytext-tiny" / "test_utf8_errors.tsv"
    columns = {"label": 1, "text": 2}
    rows, count = rows_of(path, columns=columns, max_bad_rows=10)
    assert (count.good, count.bad, count.total) == (9, 1, 10)
    assert len(rows) == 9


def test_commas_in_quotes_are_text(shared_data):
    source = shared_data / "pytext-tiny" / "test_data_tiny_csv.tsv"
    columns = {"label": 0, "text": 2}
    rows, _ = rows_of(source, columns=columns, format="csv")
    assert [row["text"] for row in rows][-2:] == [
        "this is the text, why not",
        "this is the text, it's good",
    ]


def test_further_columns_do_not_matter(shared_data):
    path = shared_data / "pytext-tiny" / "train_tiny_with_lang.tsv"
    rows, _ = rows_of(path, columns={"label": 0, "text": 2, "language": 7})
    assert len(rows) == 10
    assert {row["language"] for row in rows} == {"en", "es"}


def test_rows_of_sessions_are_rows_of_their_own(shared_data):
    path = shared_data / "pytext-tiny" / "seq_tagging_example.tsv"
    rows, count = rows_of(path, columns=("session", "intent", "goal", "label"))
    assert (count.good, count.bad, count.total) == (7, 0, 7)
    assert [row["session"] for row in rows] == ["id1"] * 2 + ["id2"] * 2 + ["id3"] * 3


def test_a_list_of_sentences_is_read_as_it_is_written(shared_data):
    path = shared_data / "pytext-tiny" / "train_seq_features.tsv"
    rows, count = rows_of(path, columns=("text",), max_bad_rows=1)
    assert [row["text"] for row in rows] == ['["where do you wanna meet?", "MPK"]']
    assert count.good + count.bad == count.total
