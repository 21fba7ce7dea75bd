"""``textmill new FILE``: from a messy file to a trained model, and what is not overwritten."""

import csv
import io
import json
import random
import re
import shlex
from pathlib import Path

import pytest

from tests.data.look.generated_tables import NAMES, rows_of
from textmill.cli.main import main


@pytest.fixture
def tickets(tmp_path, monkeypatch):
    """A table as a spreadsheet of Windows writes it, with empty rows and a mistyped label."""
    monkeypatch.chdir(tmp_path)
    chance = random.Random(5)
    rows = [*rows_of("label", chance, 300)]
    stream = io.StringIO()
    writer = csv.writer(stream, delimiter=";")
    writer.writerow([NAMES[name] for name in rows[0]])
    for n, row in enumerate(rows):
        writer.writerow(row.values())
        if n % 50 == 0:
            writer.writerow([""] * len(row))
    (tmp_path / "tickets.csv").write_bytes(
        stream.getvalue().replace("Billing", "Biling", 3).encode("cp1252")
    )
    return tmp_path


def test_a_file_becomes_a_model_by_one_command(tickets, capsys):
    assert main(["new", "tickets.csv", "--train"]) == 0
    out, err = capsys.readouterr()
    assert "\n  label  Category" in out
    assert "near 'Billing'" in out
    assert out.splitlines()[-1].startswith("run: runs/")
    assert err.count("are bad and left out") == 1
    lines = (tickets / "tickets.yaml").read_text().splitlines()
    settings = [line.partition("  #")[0] for line in lines if line.lstrip()[0] != "#"]
    assert settings == [
        "recipe: classification/ngrams", "train_data:", "  path: tickets.csv",
        "  encoding: cp1252", '  delimiter: ";"', "  header: true", "  columns:",
        "    text: Message", "    label: Category", "  holdout: 0.1", "  max_bad_rows: 0.02",
    ]  # fmt: skip
    run = out.splitlines()[-1].removeprefix("run: ")
    (tickets / "new.csv").write_text("id,said\n1,Where is my parcel?\n2,I was charged twice\n")
    assert main(["predict", run, "new.csv"]) == 2
    words = words_seen(capsys)
    assert words == ["delimiter=,", "header=true", "columns={text: said}"]
    assert main(["predict", run, "new.csv", *words]) == 0
    page = (tickets / "tickets-data.html").read_text()
    assert "Biling" in page
    assert "<script" not in page


def words_seen(capsys) -> list[str]:
    """The settings that an error proposes, after what the file looks like."""
    error = capsys.readouterr().err
    return shlex.split(error.split("As the file looks: ")[1].splitlines()[0])


def test_a_file_that_is_read_wrongly_is_told_with_all_its_settings_at_once(tickets, capsys):
    command = ["check", "classification/ngrams", "train_data.path=tickets.csv"]
    assert main(command) == 2
    words = words_seen(capsys)
    assert words == [
        "train_data.encoding=cp1252", "train_data.delimiter=;", "train_data.header=true",
        "train_data.columns={label: Category, text: Message}", "train_data.holdout=0.1",
    ]  # fmt: skip
    assert main([*command, *words, "train_data.max_bad_rows=0.01"]) == 2
    assert "6 of 306 rows are bad, and 3 are allowed" in capsys.readouterr().err
    assert main([*command, *words, "train_data.max_bad_rows=0.02"]) == 0


@pytest.mark.parametrize(
    ("kind", "before", "after"),
    [
        ("labels", r"labels: .*", ""),
        ("labels", "classification/ngrams", "classification/docnn"),
        ("grade", "classification/ngrams", "regression/ngrams"),
        ("pair", "pairs/ngrams", "pairs/classification"),
    ],
)
def test_a_guess_is_a_word_to_change(tmp_path, monkeypatch, kind, before, after):
    monkeypatch.chdir(tmp_path)
    chance = random.Random(5)
    rows = [*rows_of("label" if kind == "grade" else kind, chance, 120)]
    with Path("rows.jsonl").open("w") as file:
        for row in rows:
            if kind == "grade":
                row["label"] = chance.randrange(1, 6)
            file.write(json.dumps(row) + "\n")
    assert main(["new", "rows.jsonl"]) == 0
    changed, count = re.subn(before, after, Path("rows.yaml").read_text(), count=1)
    assert count == 1
    Path("rows.yaml").write_text(changed)
    assert main(["check", "rows.yaml"]) == 0


@pytest.mark.parametrize("kind", ["number", "tags"])
def test_rows_that_cannot_be_used_are_counted_and_left_out(tmp_path, monkeypatch, capsys, kind):
    monkeypatch.chdir(tmp_path)
    chance = random.Random(5)
    with Path("rows.jsonl").open("w") as file:
        for n, row in enumerate(rows_of("number", chance, 240)):
            is_odd, words = n % 80 == 0, row["text"].split()
            tags = [chance.choice("XYZ") for _ in words][is_odd:]
            number = row | {"number": "n/a"} if is_odd else row
            written = number if kind == "number" else {"words": words, "tags": tags}
            file.write(json.dumps(written) + "\n")
    assert main(["new", "rows.jsonl"]) == 0
    told = {"number": "rows whose score is no number", "tags": "rows without a tag for each word"}
    assert f"{told[kind]}  3 " in capsys.readouterr().out
    assert main(["check", "rows.yaml"]) == 0


def test_two_texts_may_have_several_labels(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    chance = random.Random(5)
    with Path("rows.jsonl").open("w") as file:
        for row in rows_of("pair", chance, 120):
            labels = [row["label"], *["odd"] * chance.randrange(2)]
            file.write(json.dumps({**row, "label": labels}) + "\n")
    assert main(["new", "rows.jsonl"]) == 0
    recipe = Path("rows.yaml").read_text()
    assert "recipe: pairs/ngrams" in recipe
    assert "labels: {multiple: true}" in recipe
    assert main(["check", "rows.yaml"]) == 0


def test_no_recipe_is_overwritten(tickets, capsys):
    for _ in "ab":
        assert main(["new", "tickets.csv"]) == 0
    before = (tickets / "tickets.yaml").read_text()
    assert main(["new", "tickets.csv", "--label", "State"]) == 0
    assert "Next: textmill train tickets-2.yaml" in capsys.readouterr().out
    assert (tickets / "tickets.yaml").read_text() == before
    assert "label: State" in (tickets / "tickets-2.yaml").read_text()
    assert {path.name for path in tickets.iterdir()} == {
        "tickets.csv", "tickets.yaml", "tickets-data.html", "tickets-2.yaml", "tickets-2-data.html"
    }  # fmt: skip


def test_a_file_of_the_recipes_name_that_is_no_text_stays(tickets):
    (tickets / "tickets.yaml").write_bytes(b"\xff")
    assert main(["new", "tickets.csv"]) == 0
    assert (tickets / "tickets.yaml").read_bytes() == b"\xff"
    assert (tickets / "tickets-2.yaml").is_file()


def test_what_is_no_file_is_said(tickets, capsys):
    assert main(["new", "ticket.csv"]) == 2
    assert "Did you mean 'tickets.csv'?" in capsys.readouterr().err
    assert main(["new", "name", "--label", "x"]) == 2
    assert "--label is for a file of rows" in capsys.readouterr().err
