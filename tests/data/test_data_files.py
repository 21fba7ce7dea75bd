"""Several files are one set of rows: the order is stated, and every row keeps its place."""

from pathlib import Path

import pytest

from textmill.data import text_pairs
from textmill.data.data_files import first_file
from textmill.data.text_rows import TextRows
from textmill.errors import DataError, UserError

COUNTS = {"b.tsv": 3, "a.tsv": 2, "c.tsv": 4}
NAMES = tuple(COUNTS)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Three files of 3, 2 and 4 rows."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TEXTMILL_CACHE", str(tmp_path / "cache"))
    for name, count in COUNTS.items():
        lines = [f"{'ham' if n % 2 else 'spam'}\ttext {n} of {name}\n" for n in range(count)]
        (tmp_path / name).write_text("".join(lines))
    return tmp_path


def texts(names):
    return [f"text {n} of {name}" for name in names for n in range(COUNTS[name])]


@pytest.mark.parametrize("held", [1 << 20, 0])
@pytest.mark.parametrize(
    ("path", "order"),
    [
        (NAMES, NAMES),
        (["c.tsv", "a.tsv"], ["c.tsv", "a.tsv"]),
        ("*.tsv", sorted(NAMES)),
        (["c.tsv", "[ab].tsv"], ["c.tsv", "a.tsv", "b.tsv"]),
        (".", sorted(NAMES)),
        ("a.tsv", ["a.tsv"]),
    ],
)
def test_rows_are_in_the_order_of_the_list_or_of_the_names(folder, monkeypatch, held, path, order):
    monkeypatch.setattr(text_pairs, "HELD_BYTES", held)
    data = TextRows.Config(path=path).build()
    wanted = texts(order)
    rows = data.rows()
    assert [row["text"] for row in data] == wanted == [row["text"] for row in rows]
    assert [rows[at]["text"] for at in range(-len(rows), len(rows))] == wanted * 2
    for start, stop, step in ((0, 99, 1), (1, 4, 1), (2, 3, 1), (0, 9, 2), (8, 0, -3), (3, 3, 1)):
        assert rows[start:stop:step].column("text") == wanted[start:stop:step]
    with pytest.raises(IndexError):
        rows[len(rows)]
    assert len(data) == data.count.total == len(wanted)
    assert data.name == (order[0] if len(order) == 1 else f"{order[0]} and {len(order) - 1} more")
    numbered = [f"{name}:{n + 1}" for name in order for n in range(len(texts([name])))]
    assert [data.place_of(at) for at in range(len(data))] == numbered
    assert [rows.place_of(at) for at in range(len(data))] == numbered
    assert data.lines == [int(place.partition(":")[2]) for place in numbered]


@pytest.mark.parametrize("held", [1 << 20, 0])
def test_bad_rows_are_of_their_files_and_counted_together(folder, monkeypatch, held, caplog):
    monkeypatch.setattr(text_pairs, "HELD_BYTES", held)
    Path("a.tsv").write_text("ham\tok\nbad\n")
    Path("c.tsv").write_text("bad\nham\tok\n")
    with pytest.raises(DataError) as caught:
        TextRows.Config(path=NAMES).build().read()
    assert str(caught.value) == (
        "2 of 7 rows are bad, and 0 are allowed:\n"
        "  a.tsv:2: wanted 2 columns, found 1\n"
        "  c.tsv:1: wanted 2 columns, found 1\n"
        "Correct the file, or leave such rows out with train_data.max_bad_rows=2."
    )
    data = TextRows.Config(path=NAMES, max_bad_rows=2).build()
    assert (data.count.good, data.count.bad, data.place_of(4)) == (5, 2, "c.tsv:2")
    assert caplog.messages[-1].startswith("2 of the 7 rows of b.tsv and 2 more are bad")


def test_the_fingerprint_is_of_all_files_in_their_order(folder, monkeypatch):
    found = {
        TextRows.Config(path=path).build().fingerprint()
        for path in (NAMES, NAMES[::-1], NAMES[:2], "a.tsv")
    }
    assert len(found) == 4
    one = TextRows.Config(path=("a.tsv",)).build().fingerprint()
    assert one == TextRows.Config(path="a.tsv").build().fingerprint()
    assert one == TextRows.Config(path="[a].tsv").build().fingerprint()
    monkeypatch.setattr(text_pairs, "HELD_BYTES", 0)
    assert TextRows.Config(path=NAMES).build().fingerprint() in found


def test_each_file_has_its_header(folder, monkeypatch):
    Path("a.csv").write_text("label,text\nham,one\n")
    Path("b.csv").write_text("text,label\ntwo,spam\n")
    data = TextRows.Config(path="?.csv", header=True).build()
    assert list(data) == [{"label": "ham", "text": "one"}, {"label": "spam", "text": "two"}]
    Path("b.csv").write_text("spam,two\n")
    monkeypatch.setattr(text_pairs, "read_files", None)  # all headers are looked at before
    with pytest.raises(DataError, match=r"^b\.csv:1: wanted a header with 'label', 'text', found"):
        TextRows.Config(path="?.csv", header=True).build().read()
    Path("a.csv").write_text("kind,sms\nham,one\n")
    placed = {"label": 0, "text": 1}
    said = r"^b\.csv:1: wanted the header of a\.csv, 'kind', 'sms'.* each of several files has it"
    with pytest.raises(DataError, match=said):
        TextRows.Config(path="?.csv", header=True, columns=placed).build().read()


@pytest.mark.parametrize(
    ("path", "problem"),
    [
        (("a.tsv", "*.tsv"), "path: a.tsv is there twice; each of its rows would count twice."),
        ((), "path: wanted a file, or several, found an empty list."),
        ("none/*.tsv", "path: there is no file none/*.tsv (the working folder is "),
        (("a.tsv", "d.tsv"), "path: there is no file d.tsv (the working folder is "),
        (
            ("a.tsv", "x.csv"),
            "path: wanted files of one format, found tsv (a.tsv) and csv (x.csv); or say it: ",
        ),
    ],
)
def test_what_cannot_be_read_as_one_is_refused(folder, path, problem):
    Path("x.csv").write_text("ham,one\n")
    with pytest.raises(UserError) as caught:
        TextRows.Config(path=path).build()
    assert str(caught.value).startswith(problem)


def test_a_folder_is_the_files_directly_in_it_whose_names_are_not_hidden(folder):
    for name in (".hidden", "_SUCCESS", "more/d.tsv"):
        path = folder / name
        path.parent.mkdir(exist_ok=True)
        path.write_text("no row")
    assert [row["text"] for row in TextRows.Config(path=folder).build()] == texts(sorted(NAMES))
    assert first_file(folder) == folder / "a.tsv"
    for name in NAMES:
        (folder / name).unlink()
    with pytest.raises(UserError) as caught:
        TextRows.Config(path=".").build()
    assert str(caught.value) == "path: the folder . has no files; folders in it are not read."


def test_an_empty_or_unreadable_file_of_several_is_refused_by_its_name(folder, monkeypatch):
    Path("b.tsv").write_bytes(b"")
    with pytest.raises(UserError) as caught:
        TextRows.Config(path=".").build()
    assert str(caught.value) == (
        "path: b.tsv, one of 3 files, is empty, as after a copy that failed. Put it back as it "
        "was, or take it out."
    )
    opened = Path.open

    def refusing(self, *args, **kwargs):
        if self.name == "a.tsv":
            raise PermissionError(13, "Permission denied")
        return opened(self, *args, **kwargs)

    monkeypatch.setattr(Path, "open", refusing)
    for path in (".", "a.tsv"):
        with pytest.raises(UserError) as caught:
            TextRows.Config(path=path).build()
        assert str(caught.value) == "path: a.tsv cannot be read: Permission denied."
