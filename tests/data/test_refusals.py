"""What cannot be is refused: the kind of error, its place, and the one thing that must be named."""

import io
import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from textmill.data import Batching, TextPairs
from textmill.data.batches import EpochBatches
from textmill.data.block_batches import Blocking, TextBlocks
from textmill.data.formats.by_suffix import column_format
from textmill.data.holdout import Holdout
from textmill.data.masking import Masking
from textmill.data.mixture import Mixture
from textmill.data.pipeline import collate, from_sequence, read_text, sample_pipelines
from textmill.data.readers import read_table
from textmill.data.text_lines import TextLines
from textmill.data.text_rows import TextRows, spans_format
from textmill.errors import DataError, UserError
from textmill.text.ragged import Ragged

CONLL = {"words": 0, "tags": -1}
SETTINGS = {
    "a name needs a header": (lambda: column_format("tsv", {"a": "en"}), "header=true"),
    "a negative position": (lambda: column_format("csv", CONLL), "format=conll"),
    "no column": (lambda: column_format("tsv", ()), "at least one column"),
    "a position in JSON": (lambda: column_format("jsonl", {"a": 0}), "'a'"),
    "a position in Parquet": (lambda: column_format("parquet", {"a": 0}), "'a'"),
    "a name in CoNLL": (lambda: column_format("conll", {"a": "x"}), "'a'"),
    "no column of SQuAD": (lambda: column_format("squad", ("source",)), "'source'"),
    "a header of JSON": (lambda: column_format("jsonl", ("a",), header=True), "header=false"),
    "lists of CoNLL": (lambda: column_format("conll", {"a": 0}, lists=("a",)), "lists=[]"),
    "no column of TSV": (lambda: column_format("tsv", ("a",), lists=("b",)), "'b'"),
    "lines of Arrow": (lambda: column_format("arrow", ("a",), max_line_bytes=9), "max_line_bytes"),
    "an encoding of Parquet": (
        lambda: column_format("parquet", ("a",), encoding="cp1252"),
        "utf-8",
    ),
    "UTF-32": (lambda: column_format("tsv", ("a",), encoding="utf-32"), "iconv -f utf-32"),
    "no encoding": (lambda: column_format("tsv", ("a",), encoding="idna"), "'idna'"),
    "a list that is no column": (lambda: column_format("jsonl", ("a",), lists=("b",)), "'b'"),
    "a delimiter of two": (lambda: column_format("csv", ("a",), delimiter=";;"), "';;'"),
    "a quote as delimiter": (lambda: column_format("tsv", ("a",), delimiter='"'), "delimiter"),
    "spans of no column": (lambda: spans_format(column_format("tsv", ("a",)), {"b": "a"}), "'b'"),
    "spans of CoNLL": (
        lambda: spans_format(column_format("conll", CONLL), {"tags": "words"}),
        "conll",
    ),
    "no batches": (lambda: Batching(max_tokens=None), "batch_size"),
    "no rows in a batch": (lambda: Batching(batch_size=0), "batch_size"),
    "no token": (lambda: Blocking(length=0, batch_size=1), "length"),
    "a long stride": (lambda: Blocking(length=2, batch_size=1, stride=3), "stride"),
    "no share masked": (lambda: Masking(share=0), "masking.share"),
    "too many replaced": (lambda: Masking(masked=0.8, random=0.3), "masking.random"),
    "all held out": (lambda: Holdout(1.0, held_out=True), "holdout"),
    "too few weights": (
        lambda: Mixture.of("ab", (1, 1), weights=(1,), temperature=None),
        "weights",
    ),
    "a weight of nothing": (
        lambda: Mixture.of("ab", (9, 1), weights=(1, 0), temperature=None),
        "weights",
    ),
    "a low temperature": (
        lambda: Mixture.of("ab", (9, 1), weights=None, temperature=0.5),
        "temperature",
    ),
    "both": (lambda: Mixture.of("ab", (9, 1), weights=(1, 1), temperature=2), "temperature"),
    "no window": (lambda: from_sequence("ab").shuffle(0), "window"),
    "a shard of another": (lambda: from_sequence("ab").shard(2, 2), "index"),
    "no bucket": (lambda: from_sequence("ab").bucket_by_length([]), "bucket_by_length"),
    "half an item": (lambda: from_sequence("ab").take(1.5), "1.5"),
    "weights of others": (
        lambda: sample_pipelines([from_sequence("ab")], weights=[1, 2]),
        "1 positive",
    ),
    "no file": (lambda: list(read_text("none.txt").and_return()), "none.txt"),
}


@pytest.mark.parametrize("case", SETTINGS)
def test_settings_that_cannot_be(case):
    make, named = SETTINGS[case]
    with pytest.raises(UserError) as caught:
        make()
    assert named in str(caught.value)


def columns_of(*texts):
    return {str(at): Ragged.from_lists(text) for at, text in enumerate(texts)}


def parquet(**columns):
    stream = io.BytesIO()
    pq.write_table(pa.table(columns), stream)
    return stream.getvalue()


DATES = parquet(a=pa.array([1], pa.date32()))
DATA = {
    "columns of two lengths": (
        lambda: EpochBatches(columns_of([[1]], []), Batching(), list, seed=1),
        "'1': 0",
    ),
    "no rows": (lambda: EpochBatches(columns_of([]), Batching(), list, seed=1), "no rows"),
    "no text": (
        lambda: TextBlocks(Ragged.from_lists([[]]), [], Blocking(length=1, batch_size=1), before=0),
        "no text",
    ),
    "lengths without padding": (lambda: collate([[1], [2, 3]]), "pad_idx"),
    "other keys": (lambda: collate([{"a": 1}, {"b": 1}]), "b"),
    "nothing, without end": (
        lambda: list(from_sequence("").repeat().and_return()),
        "repeat",
    ),
    "a PDF": (lambda: table(b"%PDF-1.7\n", "tsv"), "pdftotext"),
    "a gzip file": (lambda: table(b"\x1f\x8b\x08\0", "csv"), "unpack"),
    "a Parquet file": (lambda: table(b"PAR1\x15\x04", "jsonl"), "format=parquet"),
    "UTF-16 without a mark": (lambda: table(b"a\0\t\0b\0\n\0" * 512, "conll"), "UTF-16"),
    "a long header": (lambda: table(b"x" * 1_100_000, "tsv", header=True), ":1:"),
    "a header that is not text": (lambda: table(b"\xff\n", "csv", header=True), "0xff"),
    "a header without a column": (
        lambda: table(b"id,fr\n", "csv", {"a": "en"}, header=True),
        "'en'",
    ),
    "dates": (lambda: table(DATES, "parquet"), "date32"),
    "no such column": (lambda: table(DATES, "parquet", ("b",)), "'b'"),
    "no SQuAD": (lambda: table(b"[]", "squad", ("question",)), "articles"),
}


def table(data, kind, columns=None, **settings):
    columns = columns or ({"w": 0} if kind == "conll" else ("a",))
    return read_table(io.BytesIO(data), column_format(kind, columns, **settings))


@pytest.mark.parametrize("case", DATA)
def test_data_that_cannot_be(case):
    make, named = DATA[case]
    with pytest.raises(DataError) as caught:
        make()
    assert named in str(caught.value)


FILES = {
    # a header that nobody spoke of, of the columns' names or of usual ones
    "names": ("a.csv", "Source, target\n", {}, "train_data.header=true"),
    "usual names": ("a.tsv", "category\tmessage\n", {}, "{source: category"),
    # one of other names, or that says otherwise
    "other names": ("a.csv", "en,fr\n", {"header": True}, "train_data.header=false"),
    "elsewhere": (
        "a.csv",
        "source,target\n",
        {"header": True, "columns": {"source": 1, "target": 0}},
        "{source: source, target: target}",
    ),
    "twice": ("a.tsv", "source\tTarget\ttarget \n", {"header": True}, "1, 2 (from 0)"),
    # most rows are bad: another delimiter, other keys, another format
    "a delimiter": ("a.csv", "a;b\nc;d\n", {}, "'a;b'"),
    "keys": ("a.jsonl", '{"source": "a", "fr": "b"}\n', {}, "{source: source, target: fr}"),
    "a format": ("a.tsv", "a\tb\n", {"format": "csv"}, "train_data.format=auto"),
    "an encoding": ("a.csv", b"caf\xe9,b\n", {}, "train_data.encoding=cp1252"),
    # nothing is good
    "empty": ("a.tsv", "", {}, "an empty file"),
    "a mark alone": ("a.tsv", b"\xef\xbb\xbf", {}, "an empty file"),
    "all bad": ("a.tsv", "x\n", {"max_bad_rows": 9}, "1 bad row and no other"),
    "one source": ("a.tsv", "a\tb\n", {"weights": (1,)}, "weights"),
}


@pytest.mark.parametrize("case", FILES)
def test_files_that_cannot_be(case, tmp_path):
    name, content, settings, named = FILES[case]
    path = tmp_path / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    for ask in (TextPairs.read, TextPairs.rows):
        with pytest.raises((DataError, UserError)) as caught:
            ask(TextPairs.Config(path=path, **settings).build())
        assert str(path) in str(caught.value)
        assert named in str(caught.value)


def test_a_path_of_no_file_names_what_is_there(tmp_path):
    (tmp_path / "train.tsv").touch()
    (tmp_path / "data").mkdir()
    for name, there in {"trian.tsv": "train.tsv", "dta/x.tsv": "data", "data": "no files"}.items():
        with pytest.raises(UserError, match=there):
            TextPairs.Config(path=tmp_path / name).build()


def test_a_list_of_texts_may_be_one_and_text_that_has_columns_is_warned_of(tmp_path, caplog):
    path = tmp_path / "a.jsonl"
    path.write_text(json.dumps({"label": "a", "text": "b"}) + "\n")
    assert [row["text"] for row in TextLines.Config(path=path).build()] == [path.read_text()[:-1]]
    assert "type=text_rows" in caplog.text
    (row,) = TextRows.Config(path=path, lists=("label",)).build()
    assert row["label"].parts == ("a",)


def test_a_place_that_does_not_exist_is_refused():
    column = columns_of([[1], [2, 3], [4]])
    batches = EpochBatches(column, Batching(batch_size=2), np.ndarray.tolist, seed=1)
    blocking = Blocking(length=1, batch_size=2)
    blocks = TextBlocks(Ragged.from_lists([[5, 6, 3]]), [{}], blocking, before=3)
    for given in (batches, blocks):
        for state in ({"epoch": -1, "position": 0}, {"epoch": 0, "position": 3}):
            with pytest.raises(DataError, match="does not exist"):
                given.load_state_dict(state)
        assert given.state_dict() == {"epoch": 0, "position": 0}
