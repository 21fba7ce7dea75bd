"""What every format must do: nothing is lost, place and reason are exact. A format is an entry."""

import contextlib
import csv
import hashlib
import io
import json
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import xlsxwriter
from hypothesis import given
from hypothesis import strategies as st

from textmill.data import text_pairs
from textmill.data.bad_rows import BadRow
from textmill.data.formats.comma_separated import CsvFormat, csv_format
from textmill.data.formats.conll import conll_format
from textmill.data.formats.excel import excel_format
from textmill.data.formats.json_lines import arrow_format, json_lines_format, parquet_format
from textmill.data.formats.row_format import RowFormat
from textmill.data.formats.squad import squad_format
from textmill.data.line_blocks import BEGINNINGS
from textmill.data.readers import read_rows, read_table, tsv_format
from textmill.data.text_rows import TextRows
from textmill.errors import DataError

WANTED = "wanted text, a number or a list of them"
ROWS = [("Hi.", "Salut."), ("Où", "là-bas"), ("🙂", "é"), ("a", "b"), ("x", "y")]


@dataclass
class Case:
    """A format, how its rows are written, and rows that are wrong with their reasons."""

    layout: RowFormat
    write: Callable[[list], bytes]
    faults: dict[str, tuple[object, str]]
    text: st.SearchStrategy = field(
        default_factory=lambda: st.text(
            st.characters(exclude_categories=["Cs"], exclude_characters="\0")
            | st.sampled_from('",\n\r'),
            max_size=9,
        ).filter(str.strip)
    )


def lines_of(write_row):
    def write(rows):
        return b"\n".join(row if isinstance(row, bytes) else write_row(row) for row in rows) + b"\n"

    return write


def as_json(row):
    return json.dumps(dict(zip(("source", "target"), row, strict=True))).encode()


def as_csv(row):
    out = io.StringIO()
    csv.writer(out).writerow(row)
    return out.getvalue().removesuffix("\r\n").encode()


BINARY, STRING = pa.binary(), pa.string()


def columnar(kind, raw=BINARY, text=STRING):
    def write(rows):
        table = pa.table(
            {
                name: pa.array([row[at] for row in rows], raw).view(text)
                for at, name in enumerate(("source", "target"))
            }
        )
        out = io.BytesIO()
        if kind == "parquet":
            pq.write_table(table, out, row_group_size=2)
        else:
            make = pa.ipc.new_stream if kind == "stream" else pa.ipc.new_file
            with make(out, table.schema) as writer:
                writer.write_table(table, max_chunksize=2)
        return out.getvalue()

    return lambda rows: write(
        [tuple(v.encode() if isinstance(v, str) else v for v in row) for row in rows]
    )


def as_conll(row):
    words, tags = (text.split(" ") for text in row)
    return "\n".join(map("\t".join, zip(words, tags, strict=True))).encode() + b"\n"


def as_squad(rows):
    """A paragraph for each row, of one question where it is none of its own."""
    paragraphs = [
        row
        if isinstance(row, dict)
        else {"context": row[1], "qas": [{"question": row[0]} if row[0] else {}]}
        for row in rows
    ]
    return json.dumps({"version": "1.1", "data": [{"paragraphs": paragraphs}]}).encode()


def as_excel(rows):
    out = io.BytesIO()
    with xlsxwriter.Workbook(out) as book:
        sheet = book.add_worksheet()
        for at, row in enumerate(rows):
            for column, cell in enumerate(row):
                sheet.write_string(at, column, cell)
    return out.getvalue()


IN_COLUMNS = {
    "null": ((None, "b"), "column 'source' is null"),
    "blank": (("a", " "), "column 'target' is empty"),
    "bad UTF-8": (("a", b"caf\xe9"), "column 'target': bad UTF-8"),
    "NUL": (("a\0", "b"), "column 'source': NUL at character 1"),
}
BAD_BYTES = "bad UTF-8: 0xe9 at byte {} of the line (invalid continuation byte)"
CASES = {
    "tsv": Case(
        tsv_format(max_line_bytes=1000),
        lines_of(lambda row: "\t".join(row).encode()),
        {
            "bad UTF-8": (b"caf\xe9 au\tlait", BAD_BYTES.format(3)),
            "one column": (b"a", "wanted 2 columns, found 1"),
            "no column": (b"", "wanted 2 columns, found 1"),
            "NUL": (b"a\tb\0c", "NUL at byte 3 of the line"),
            "blank": ("a\t \u00a0".encode(), "column 'target' is empty"),
            "long": (
                b"a\t" + b"x" * 1200,
                "the line has 1202 bytes, and max_line_bytes is 1000",
            ),
        },
        st.text("aé🙂 \u2028\x85\"',", max_size=9).filter(str.strip),
    ),
    "csv": Case(
        csv_format(max_line_bytes=500),
        lines_of(as_csv),
        {
            "bad UTF-8": (b"caf\xe9 au,lait", BAD_BYTES.format(3)),
            "bad UTF-8 in quotes": (b'"caf\xe9 au",lait', BAD_BYTES.format(4)),
            "NUL": (b"a,b\0", "NUL at byte 3 of the line"),
            "blank": (b'a,""', "column 'target' is empty"),
            "quote inside": (
                b'5" disk,b',
                "a quote in field 1, which does not begin with one (RFC 4180: quote it)",
            ),
            "after the quote": (
                b'a,"b"c',
                "something follows the closing quote of field 2 (RFC 4180: double a quote)",
            ),
            "never closed": (b'a,"b', "the quote of field 2 is never closed"),
            "long": (
                b"a," + b"x" * 600,
                "the line has 602 bytes, and max_line_bytes is 500",
            ),
        },
    ),
    "jsonl": Case(
        json_lines_format(max_line_bytes=3000),
        lines_of(as_json),
        {
            "bad UTF-8": (b'{"source": "caf\xe9 "}', BAD_BYTES.format(15)),
            "blank": (b"  ", "the line is blank"),
            "half": (
                b'{"source": "a"',
                "not JSON: Expecting ',' delimiter: line 1 column 15 (char 14)",
            ),
            "deep": (b"[" * 2900, "not JSON: nested too deeply"),
            "twice": (
                b'{"source": "a", "target": "b", "source": "c"}',
                "the key 'source' is there twice",
            ),
            "lacking": (b'{"source": "a"}', "no key 'target'; the keys are 'source'"),
            "object": (b'{"source": {}, "target": "b"}', f"'source': {WANTED}, found an object"),
            "NUL": (
                b'{"source": "a\\u0000", "target": "b"}',
                "'source': NUL at character 1",
            ),
            "surrogate": (
                b'{"source": "a", "target": "b\\ud800"}',
                "'target': half of a surrogate pair at character 1",
            ),
            "long": (
                b'"' + b"x" * 4000,
                "the line has 4001 bytes, and max_line_bytes is 3000",
            ),
        },
    ),
    "conll": Case(
        conll_format({"source": 0, "target": -1}),
        lines_of(as_conll),
        {
            "bad UTF-8": (b"caf\xe9 O\n", BAD_BYTES.format(3)),
            "two words": (b"a\tb c\n", "wanted 2 columns as most lines have, found 3"),
            "NUL": (b"a\0 O\n", "NUL at byte 1 of the line"),
        },
        st.text("aé🙂#\"'", min_size=1, max_size=9),
    ),
    "squad": Case(
        squad_format({"source": "question", "target": "context"}),
        as_squad,
        {
            "blank": (("a", " "), "data[0].paragraphs[{}].qas[0]: column 'target' is empty"),
            "no questions": (
                {"context": "b"},
                "data[0].paragraphs[{}]: 'qas': wanted a list, found null",
            ),
            "answers": (
                {"context": "b", "qas": [{"question": "a", "answers": [{"text": "b"}]}]},
                "data[0].paragraphs[{}].qas[0]: 'answers': wanted a list of objects with a 'text' "
                "and a number 'answer_start'",
            ),
        },
    ),
    "excel": Case(
        excel_format(),
        as_excel,
        {"blank": (("a", " "), "column 'target' is empty")},
        st.text('aé🙂 <&\n"=', max_size=9).filter(str.strip),
    ),
    "parquet": Case(parquet_format(), columnar("parquet"), IN_COLUMNS),
    "arrow": Case(arrow_format(), columnar("file"), IN_COLUMNS),
    "arrow stream": Case(arrow_format(), columnar("stream"), IN_COLUMNS),
    "arrow views": Case(
        arrow_format(), columnar("file", pa.binary_view(), pa.string_view()), IN_COLUMNS
    ),
}
COLUMNAR = ("excel", "parquet", "arrow", "arrow stream", "arrow views")
CASES["conll"].faults["one column"] = (b"a\n", "wanted 2 columns, found 1")
FAULTS = [(name, fault) for name, case in CASES.items() for fault in case.faults]


def texts(table):
    return list(zip(*table.columns.values(), strict=True))


@pytest.mark.parametrize("at", [0, 2, 5], ids=["first", "middle", "last"])
@pytest.mark.parametrize(("name", "fault"), FAULTS)
def test_a_fault_is_one_bad_row_with_its_place_and_reason(name, fault, at):
    case = CASES[name]
    bad, reason = case.faults[fault]
    rows = [*ROWS[:at], bad, *ROWS[at:]]
    data = case.write(rows)
    table = read_table(io.BytesIO(data), case.layout)
    (row,) = table.bad_rows
    assert row.reason == reason.format(at)
    assert texts(table) == ROWS
    assert (table.count.good, table.count.bad, table.count.total) == (5, 1, 6)
    assert table.sha256 == hashlib.sha256(data).hexdigest()
    if isinstance(bad, bytes):
        before = case.write(rows[:at]) if at else b""
        assert row.line == before.count(b"\n") + 1
    else:
        assert row.line == at + 1
    found = list(read_rows(io.BytesIO(data), case.layout))
    assert [isinstance(each, BadRow) for each in found] == [i == at for i in range(6)]
    assert found[at] == row


@pytest.mark.parametrize("name", CASES)
def test_the_last_line_needs_no_end_and_a_byte_order_mark_is_stripped(name):
    data = CASES[name].write(ROWS)
    if name not in COLUMNAR:
        data = b"\xef\xbb\xbf" + data.rstrip(b"\n")
    assert texts(read_table(io.BytesIO(data), CASES[name].layout)) == ROWS


@pytest.mark.parametrize("name", CASES)
@given(data=st.data())
def test_what_is_written_comes_back(name, data):
    case = CASES[name]
    rows = data.draw(st.lists(st.tuples(case.text, case.text), max_size=6))
    assert texts(read_table(io.BytesIO(case.write(rows)), case.layout)) == rows


@pytest.mark.parametrize("name", CASES)
@given(junk=st.binary(max_size=60) | st.sampled_from([*BEGINNINGS]))
def test_junk_is_bad_rows_or_an_error_with_the_name(name, junk):
    refused = None
    if name in (*COLUMNAR, "squad"):
        refused = r"no (excel|parquet|arrow|SQuAD) file that can be read: "
    elif junk.startswith(tuple(BEGINNINGS)):
        refused = r"wanted text, found an? "
    whole = pytest.raises(DataError, match=f"^<stream>: {refused}")
    with whole if refused else contextlib.nullcontext():
        table = read_table(io.BytesIO(junk), CASES[name].layout)
        assert table.count.good + table.count.bad == table.count.total


# -- one by one


def test_cells_of_a_spreadsheet_are_what_a_csv_file_would_have_of_them():
    out = io.BytesIO()
    with xlsxwriter.Workbook(out) as book:
        sheet, dates = book.add_worksheet(), book.add_format({"num_format": "yyyy-mm-dd"})
        sheet.write_row(1, 0, ["text", "label"])
        sheet.write_row(3, 0, [12.0, True])
        sheet.write_datetime(4, 0, datetime(2026, 3, 1), dates)
        sheet.write_row(4, 1, [0.5])
    table = read_table(io.BytesIO(out.getvalue()), excel_format(("text", "label"), header=True))
    assert texts(table) == [("12", "true"), ("2026-03-01", "0.5")]
    assert table.lines == [4, 5]


@pytest.mark.parametrize("end", [b"\n", b"\r\n"])
def test_a_quoted_field_holds_separators_quotes_and_line_ends(end):
    data = b'"a,1","b' + end + b'""c"""' + end + b"d,e" + end
    table = read_table(io.BytesIO(data), csv_format())
    assert texts(table) == [("a,1", "b" + end.decode() + '"c"'), ("d", "e")]
    assert table.lines == [1, 3]


def test_an_open_quote_swallows_nothing():
    data = b'a,b\n"open,b\nc,d\ne,"f"\n"open,again\ng,h\n'
    table = read_table(io.BytesIO(data), csv_format())
    assert texts(table) == [("a", "b"), ("c", "d"), ("e", "f"), ("g", "h")]
    assert [row.line for row in table.bad_rows] == [2, 5]


@given(st.text('a",\n\r', max_size=30))
def test_csv_that_pythons_reader_takes_strictly_is_taken_alike(text):
    data = text.replace("\r", "").encode()
    layout = csv_format({"source": 0}, required=())
    try:
        wanted = list(csv.reader(io.StringIO(data.decode(), newline=""), strict=True))
    except csv.Error:
        return
    table = read_table(io.BytesIO(data), layout)
    if not table.bad_rows:  # Python takes a quote inside an unquoted field
        assert [row[0] for row in texts(table)] == [row[0] if row else "" for row in wanted]


@pytest.mark.parametrize(
    "line", [b'x "" %b\n', b'x","%b\n', b"x %b\n"], ids=["even", "again", "none"]
)
def test_a_lone_quote_before_many_lines_takes_linear_time(line, monkeypatch):
    data = b'"a\n' + line % (b"y" * 26) * 3_200
    split, read = CsvFormat._split, []
    monkeypatch.setattr(
        CsvFormat,
        "_split",
        lambda layout, record: read.append(len(record)) or split(layout, record),
    )
    table = read_table(io.BytesIO(data), csv_format(max_line_bytes=1 << 21))
    assert sum(read) < 3 * len(data)  # 1,500 times as many where the record is joined at each line
    assert (table.count.good, table.count.total) == (0, 3_201)
    assert table.bad_rows[0].reason.startswith("the quote of field ")


def test_csv_has_headers_and_other_separators():
    layout = csv_format({"source": "en", "target": "fr"}, header=True, separator=";")
    data = b'id;"fr";en\n1;b;"a;a"\nx\n'
    table = read_table(io.BytesIO(data), layout)
    assert texts(table) == [("a;a", "b")]
    assert [row.reason for row in table.bad_rows] == ["wanted 3 columns, found 1"]
    with pytest.raises(DataError, match="<stream>:1: wanted a header with 'en', found 'id', 'fr'"):
        read_table(io.BytesIO(b"id;fr\n"), layout)


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string(), pa.string_view()])
def test_texts_may_be_numbers_in_a_dictionary_of_any_layout(kind):
    known = pa.array(["Hi.", "Run!"]).cast(kind)
    column = pa.DictionaryArray.from_arrays(pa.array([1, 0, 1]), known)
    table, out = pa.table({"source": column, "target": column}), io.BytesIO()
    with pa.ipc.new_file(out, table.schema) as writer:
        writer.write_table(table)
    found = texts(read_table(io.BytesIO(out.getvalue()), arrow_format()))
    assert found == [("Run!", "Run!"), ("Hi.", "Hi."), ("Run!", "Run!")]


@pytest.mark.parametrize("layout", [json_lines_format, parquet_format, arrow_format])
def test_keys_can_be_paths(layout):
    layout = layout({"source": "translation.en", "target": "translation.fr"})
    pair = {"translation": {"en": "Hi.", "fr": "Salut."}}
    out = io.BytesIO()
    if layout == json_lines_format({"source": "translation.en", "target": "translation.fr"}):
        out.write(json.dumps(pair).encode())
    elif layout.kind == "parquet":
        pq.write_table(pa.Table.from_pylist([pair]), out)
    else:
        table = pa.Table.from_pylist([pair])
        with pa.ipc.new_file(out, table.schema) as writer:
            writer.write_table(table)
    assert texts(read_table(io.BytesIO(out.getvalue()), layout)) == [("Hi.", "Salut.")]


def test_optional_columns_may_be_absent():
    only = {"required": ("source",)}
    assert texts(read_table(io.BytesIO(b'{"source": "a"}'), json_lines_format(**only))) == [
        ("a", "")
    ]
    assert texts(read_table(io.BytesIO(b'"a"\n'), csv_format(**only))) == [("a", "")]
    out = io.BytesIO()
    pq.write_table(pa.table({"source": ["a"]}), out)
    assert texts(read_table(io.BytesIO(out.getvalue()), parquet_format(**only))) == [("a", "")]


@pytest.mark.parametrize(
    ("data", "settings", "rows", "left_out"),
    [
        # Comments of CoNLL-U, also with as many words as a token of four columns has.
        (b"# sent_id = 1\n# text = a\na X Y Z\n", {}, [("a", "Z")], 2),
        (b"# newdoc\n# text = a b\na X\nb Y\n", {}, [("a b", "X Y")], 2),
        (b"# newdoc\na X\nb Y\n", {}, [("# a b", "newdoc X Y")], 0),  # it could be a token
        (b"# newdoc\na\tX\n", {}, [("a", "X")], 1),
        (b"# made by hand\n\na X\n\n# the end\n", {}, [("a", "X")], 2),
        # A token is one wherever it stands.
        (b"# O\n1 B\n\na O\n# O\n", {}, [("# 1", "O B"), ("a #", "O O")], 0),
        (b"#\tO\n\n#1\tO\n", {}, [("#", "O"), ("#1", "O")], 0),
        # As it is said.
        (b"# newdoc\na X\n", {"comment": "#"}, [("a", "X")], 1),
        (b"% a b\n# c\na X\n", {"comment": "%"}, [("# a", "c X")], 1),
        (b"# x = y\na X Y Z\n", {"comment": ""}, [("# a", "y Z")], 0),
        (b"# x = y\na\tX\n", {"separator": "\t"}, [("a", "X")], 1),
        # CoNLL-2003.
        (b"-DOCSTART- -X- -X- O\n\na X Y O\n", {}, [("a", "O")], 1),
        (b"-DOCSTART- O\na X\n\n-DOCSTART-\n", {"comment": ""}, [("a", "X")], 2),
        (b"-DOCSTART-\tO\n# b c\na\tX\n", {"comment": None}, [("a", "X")], 2),
        (b"-DOCSTART-s O\n", {}, [("-DOCSTART-s", "O")], 0),
    ],
)
def test_lines_that_are_no_tokens_are_left_out_and_counted(data, settings, rows, left_out):
    table = read_table(io.BytesIO(data), conll_format(**settings))
    assert (texts(table), table.bad_rows) == (rows, [])
    assert table.notes.left_out == left_out


def test_sentences_are_parted_by_blank_lines_and_comments_come_before_them():
    data = b"# text = a\na\tX\n#b\tY\n \n\n\n# c\nc\tZ\n"
    table = read_table(io.BytesIO(data), conll_format(comment="#"))
    assert texts(table) == [("a #b", "X Y"), ("c", "Z")]
    assert table.lines == [2, 8]
    spaced = read_table(io.BytesIO(b"a b\tX\n"), conll_format(separator="\t"))
    assert [row.reason for row in spaced.bad_rows] == [
        "column 'words': wanted one word, found 'a b'"
    ]


@pytest.mark.parametrize(
    ("text", "good", "bad"),
    [
        # Two words without a tag: the second would be the tag.
        ("a\tO\nNew York\nb\tO\n\nc\tO\n", ["c"], [2]),
        ("a\tO\nNew York\n\nc\tO\n", ["c"], [2]),
        ("a O\nb\tO\nc O\n\nd O\n", ["a b c", "d"], []),
        ("a\t O\nb\tO\n", ["a b"], []),
    ],
)
def test_a_line_without_a_tab_among_lines_with_tabs_is_bad(tmp_path, monkeypatch, text, good, bad):
    path = tmp_path / "a.conll"
    path.write_text(text)
    table = read_table(path, conll_format())
    assert table.columns["words"] == good
    reason = "wanted a tab between columns as most lines have, found spaces"
    assert [(row.line, row.reason) for row in table.bad_rows] == [(line, reason) for line in bad]
    monkeypatch.setattr(text_pairs, "HELD_BYTES", 0)
    monkeypatch.setenv("TEXTMILL_CACHE", str(tmp_path / "cache"))
    rows = TextRows.Config(path=path, columns={"words": 0}, max_bad_rows=9).build().rows()
    assert [rows[at]["words"] for at in range(len(rows))] == good


@pytest.mark.parametrize(
    ("columns", "text", "good", "bad"),
    [
        # A word without its tag would be its own.
        ({"words": 0, "tags": -1}, "EU O\nfell\n\na b\n", ["a"], [(2, 2, 1)]),
        ({"words": 0, "tags": -1}, "EU\n\na b\n", ["a"], [(1, 2, 1)]),
        # Its part of speech would be its tag.
        ({"words": 0, "tags": -1}, "a P O\n\nb P\nc P\n\nd P O\n", ["a", "d"], [(3, 3, 2)]),
        # Of two words one would be lost.
        ({"words": 0, "tags": 1}, "a O\n\nNew York B\n\nc O\n", ["a", "c"], [(3, 2, 3)]),
        ({"words": 0, "tags": 1}, "a P O\nb P O\nNew York P O\n\nc P O\n", ["c"], [(3, 3, 4)]),
        ({"words": 0}, "a\nNew York\nb\n\nc\n", ["c"], [(2, 1, 2)]),
        # A first sentence that is odd costs itself alone.
        ({"words": 0, "tags": -1}, "a P O\nb P O\n\nc O\nd O\n\ne O\n", ["c d", "e"], [(1, 2, 3)]),
        # Sentences of CoNLL-2012 have as many columns as they have verbs.
        ({"words": 0, "tags": 1}, "a P x\n\nb P x y\n\nc P x y z\n", ["a", "b", "c"], []),
        ({"words": 2, "tags": -1}, "1 - a\n\n1 - a P\n", ["a"], [(1, 4, 3)]),
    ],
)
def test_a_line_with_more_or_fewer_columns_than_others_is_bad(
    tmp_path, monkeypatch, columns, text, good, bad
):
    path = tmp_path / "a.conll"
    path.write_text(text)
    table = read_table(path, conll_format(columns))
    assert table.columns["words"] == good
    found = [(row.line, row.reason.replace(" as most lines have", "")) for row in table.bad_rows]
    wanted = [(line, f"wanted {n} column{'s' * (n > 1)}, found {m}") for line, n, m in bad]
    assert found == wanted
    monkeypatch.setattr(text_pairs, "HELD_BYTES", 0)
    monkeypatch.setenv("TEXTMILL_CACHE", str(tmp_path / "cache"))
    rows = TextRows.Config(path=path, columns=columns, max_bad_rows=9).build().rows()
    assert [rows[at]["words"] for at in range(len(rows))] == good
    assert [row["words"] for row in rows] == good


@pytest.mark.parametrize(
    ("file", "sentences", "tokens"),
    [
        ("wnut17/train.conll", 3394, 62730),
        ("wnut17/dev.conll", 1009, 15733),
        ("ud-ewt/dev.tsv", 2001, 25147),
        ("dataset-mentions/train.conll", 4176, None),
        ("dataset-mentions/dev.conll", 464, None),
    ],
)
def test_real_conll_without_comments_keeps_every_token(shared_data, file, sentences, tokens):
    path = shared_data / file
    table = read_table(path, conll_format())
    assert (len(table.lines), table.notes.left_out) == (sentences, 0)
    lines = sum(bool(line.strip()) for line in path.read_bytes().split(b"\n"))
    assert sum(len(words.split()) for words in table.columns["words"]) == lines
    assert tokens in (None, lines)


SQUAD = {
    "version": "v2.0",
    "data": [
        {
            "title": "Normans",
            "paragraphs": [
                {
                    "context": "Rollo led them.",
                    "qas": [
                        {
                            "id": "1",
                            "question": "Who?",
                            "answers": [
                                {"text": "Rollo", "answer_start": 0},
                                {"text": "Rollo led", "answer_start": 0},
                            ],
                        },
                        {
                            "id": "2",
                            "question": "Why?",
                            "answers": [],
                            "is_impossible": True,
                            "plausible_answers": [{"text": "them", "answer_start": 10}],
                        },
                        {"id": "3", "question": "When?"},
                    ],
                }
            ],
        }
    ],
}


def test_questions_of_both_versions_of_squad_are_rows(tmp_path):
    path = tmp_path / "squad.json"
    path.write_text(json.dumps(SQUAD), encoding="utf-8")
    names = ("id", "title", "context", "answers", "answer_starts", "impossible")
    layout = squad_format(names, required=("id",))
    table = read_table(path, layout)
    about = ("Normans", "Rollo led them.")
    rows = [
        ("1", *about, '["Rollo", "Rollo led"]', "[0, 0]", "false"),
        ("2", *about, "[]", "[]", "true"),
        ("3", *about, "", "", "false"),
    ]
    assert texts(table) == rows
    assert table.lines == [1, 2, 3]
    strict = read_table(path, squad_format(("question", "answers")))
    (bad,) = strict.bad_rows
    assert str(bad) == (
        f"{path}:3: the question with id '3', data[0].paragraphs[0].qas[2]: no key "
        "'answers'; the keys are 'title', 'context', 'impossible', 'id', 'question'"
    )
    assert bad.text_excerpt == "When?"


@pytest.mark.parametrize(
    ("question", "why"),
    [
        ({"is_impossible": "no"}, "'is_impossible': wanted true or false, found text"),
        (
            {"is_impossible": True, "answers": [{"text": "a", "answer_start": 0}]},
            "'is_impossible' is true, but there are 1 answers",
        ),
        ({"answers": [{"text": "a", "answer_start": True}]}, "'answers': wanted a list of objects"),
    ],
)
def test_a_question_that_contradicts_itself_is_a_bad_row(question, why):
    article = {"paragraphs": [{"context": "a", "qas": [{"question": "a?", **question}]}]}
    data = json.dumps({"data": [article, "text", {"paragraphs": 3}]}).encode()
    table = read_table(io.BytesIO(data), squad_format(("question",)))
    assert str(table.bad_rows[2]).startswith("<stream>:3: data[2]: 'paragraphs'")
    assert table.bad_rows[0].reason.startswith(f"data[0].paragraphs[0].qas[0]: {why}")
    assert [row.reason for row in table.bad_rows[1:]] == [
        "data[1]: wanted an object, found text",
        "data[2]: 'paragraphs': wanted a list, found a number",
    ]
    assert (table.count.good, table.count.total) == (0, 3)


def test_ids_that_are_there_twice_are_counted(tmp_path, caplog):
    names = ["a", "b", "b", "a", "b", ["a"], 3, 3]
    questions = [{"id": name, "question": "?", "answers": []} for name in names]
    content = {"data": [{"paragraphs": [{"context": "c", "qas": questions}]}]}
    (path := tmp_path / "q.json").write_text(json.dumps(content))
    data = TextRows.Config(path=path, columns=("question", "context")).build()
    assert len(data.rows()) == len(data) == 8
    said = "3 of the questions have the id of one before them, the first 'b'; all were kept."
    warned = [r.getMessage() for r in caplog.records if r.levelname == "WARNING"]
    assert warned == [f"{path}: {said}"]
