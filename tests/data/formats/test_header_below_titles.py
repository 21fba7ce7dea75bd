"""Tables as organisations export them: titles above the header, a cover sheet, merged cells."""

import csv
import io
import random

import pytest
import xlsxwriter

from textmill.data.formats.by_suffix import column_format
from textmill.data.input_files import input_layout
from textmill.data.look.guess import guess
from textmill.data.look.sample import look_at
from textmill.data.readers import read_table
from textmill.data.text_rows import TextRows
from textmill.errors import DataError

COLUMNS = {"text": "Message", "label": "Queue"}
HEAD = ["Id", "Message", "Queue", ""]
TITLES = [[], ["Export of 3 November; all queues"], ['The "new" desk', "", ""], ["Id", "Queue"]]


def made_rows(count: int) -> list[list[str]]:
    chance = random.Random(count)
    said = ["where is it?", 'it says "no",\nthen stops', "I paid twice; why?", "très lent"]
    return [[f"T-{n}", f"{chance.choice(said)} {n}", chance.choice("AB"), ""] for n in range(count)]


def as_csv(rows: list[list[str]]) -> str:
    out = io.StringIO()
    csv.writer(out, delimiter=";", lineterminator="\r\n").writerows(rows)
    return out.getvalue()


@pytest.mark.parametrize("count", range(len(TITLES) + 1))
def test_rows_below_titles_are_those_that_csv_reads_without_them(tmp_path, count, caplog):
    path, titles = tmp_path / "a.csv", TITLES[:count]
    table = as_csv([HEAD, *made_rows(40)])
    path.write_bytes((as_csv(titles) + table).encode())
    wanted = [*csv.DictReader(io.StringIO(table, newline=""), delimiter=";")]
    data = TextRows.Config(path=path, columns=COLUMNS, header=True, delimiter=";").build()
    with caplog.at_level("INFO", "textmill"):
        found = [(row["text"], row["label"]) for row in data]
    assert found == [(row["Message"], row["Queue"]) for row in wanted]
    assert any(f"{count} line" in said for said in caplog.messages) == (count > 0)
    sample = look_at(path)
    assert [row[:3] for row in sample.rows] == [[*row.values()][:3] for row in wanted]
    assert (len(sample.above), sample.settings["header"]) == (max(count - 1, 0), True)
    assert [sample.place(at) for at in guess(sample).columns.values()] == ["Message", "Queue"]
    assert sample.lines[0] == as_csv(titles).count("\n") + 2


def test_a_new_file_may_have_other_titles_and_a_file_without_the_header_is_refused(tmp_path):
    (train := tmp_path / "train.csv").write_text(as_csv([*TITLES[:2], HEAD, *made_rows(9)]))
    (new := tmp_path / "new.csv").write_text(as_csv([*TITLES, *TITLES, HEAD, *made_rows(5)]))
    config = TextRows.Config(path=train, columns=COLUMNS, header=True, delimiter=";")
    read = read_table(new, input_layout(new, config, ["text"]))
    assert read.columns["text"] == [row[1] for row in made_rows(5)]
    new.write_text(as_csv([["Title"], ["Id", "Text", "Kind"], *made_rows(30)]))
    with pytest.raises(DataError, match=r"new\.csv:2: wanted .*'Message', found 'Id', 'Text'"):
        read_table(new, input_layout(new, config, ["text"]))


def test_a_row_of_sums_says_nothing_of_the_columns(tmp_path):
    (path := tmp_path / "a.csv").write_text(as_csv([HEAD, *made_rows(40), ["Total", "", "40"]]))
    sample = look_at(path)
    assert (len(sample.rows), len(sample.totals)) == (40, 1)
    (path := tmp_path / "b.csv").write_text(as_csv([HEAD, *made_rows(40), ["T", "Total?", "B"]]))
    assert (len(look_at(path).rows), look_at(path).totals) == (41, ())
    text = ["Total loss of data, again", "", ""]
    for end, rows, totals in (
        ([["Total", "", "40"], ["Source: ERP", "", ""]], 40, 2),
        ([["Total", "", "40"], *made_rows(1)], 42, 0),
        ([text], 41, 0),
    ):
        path.write_text(as_csv([HEAD, *made_rows(40), *end]))
        sample = look_at(path)
        assert (len(sample.rows), len(sample.totals), sample.is_part) == (rows, totals, False)


def test_the_sheet_with_the_table_is_read_and_merged_cells_are_in_each_row(tmp_path):
    path = tmp_path / "book.xlsx"
    with xlsxwriter.Workbook(path) as book:
        cover, sheet, other = map(book.add_worksheet, ("Cover", "Data", "Old"))
        cover.write(0, 0, "Reviews, as they are. Ask the team of the shop before you pass them on.")
        sheet.merge_range(0, 1, 0, 3, "Reviews")
        sheet.merge_range(2, 1, 2, 2, "Customer")
        rows = made_rows(30)
        for number, row in enumerate([HEAD[:3], *[row[:3] for row in rows]], 3):
            sheet.write_row(number, 1, row[: 2 if 10 <= number <= 13 else 3])
        sheet.merge_range(10, 3, 13, 3, "C")
        other.write_row(0, 0, HEAD[:3])
        other.write_row(1, 0, ["T-0", "older", "B"])
    labels = [row[2] for row in rows]
    labels[6:10] = ["C"] * 4
    sample = look_at(path)
    assert (sample.settings["sheet"], sample.lines[0]) == ("Data", 5)
    assert [row[2] for row in sample.rows] == labels
    for sheet_name, wanted in ((None, labels), ("Data", labels), ("Old", ["B"])):
        data = TextRows.Config(path=path, columns=COLUMNS, header=True, sheet=sheet_name).build()
        assert [row["label"] for row in data] == wanted
    with pytest.raises(DataError, match=r"wanted the sheet 'Q3', found 'Cover', 'Data', 'Old'"):
        TextRows.Config(path=path, columns=COLUMNS, header=True, sheet="Q3").build().read()
    config = TextRows.Config(path=path, columns=COLUMNS, header=True, sheet="Q3")
    read = read_table(path, input_layout(path, config, ["text", "label"]))
    assert read.columns["label"] == labels


def test_positions_and_lines_without_a_header_are_read_as_before():
    layout = column_format("tsv", {"text": 0}, header=True)
    assert read_table(io.BytesIO(b"title\na\nb\n"), layout).columns["text"] == ["a", "b"]
    named = column_format("tsv", ("text",), header=True)
    assert read_table(io.BytesIO(b""), named).count.total == 0
    with pytest.raises(DataError, match=r":1: wanted a header with 'text', found 'a'"):
        read_table(io.BytesIO(b"a\n" * 50), named)
