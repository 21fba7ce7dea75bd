"""What is seen in a file: how it is written, which column is what, and what is odd in it."""

import json
import os
import random
from collections import Counter
from pathlib import Path

import pytest
import xlsxwriter
import yaml

from tests.data.look.generated_tables import rows_of, written
from textmill.data.look import sample as sample_module
from textmill.data.look.facts import facts_of
from textmill.data.look.guess import Guess, guess, told_by
from textmill.data.look.sample import Sample, look_at, sample_of_rows
from textmill.data.text_rows import TextRows
from textmill.errors import DataError, UserError
from textmill.recipes.file_recipe import file_recipe
from textmill.text.columns.numbers import number_in


def seen(path: Path, **known: str) -> tuple[Sample, Guess]:
    sample = look_at(path)
    return sample, guess(sample, **known)


def test_files_of_every_kind_are_read_as_they_were_written(tmp_path):
    wrong = list[str]()
    for file in written(tmp_path, encodings=("utf-8-sig", "utf-16", "cp1252"), orders=1, count=120):
        sample, found = seen(file.path)
        read = (len(sample.rows), len(sample.broken), sample.settings.get("header", False))
        same = {*found.columns.values()} == {*file.places.values()}  # two texts have no order
        same &= all(found.columns.get(n) == at for n, at in file.places.items() if n[:4] != "text")
        if (read, found.task, same) != ((120, 0, file.header), file.kind, True):
            wrong.append(f"{file}: {read}, {found}")
    assert wrong == []


KNOWN = {
    "cogs/train.tsv": ("texts", "01"), "sms-spam/train.tsv": ("label", "10"),
    "snips/train.tsv": ("spans", "12"), "snli-small/train.tsv": ("pair", "120"),
    "tatoeba-en-fr/dev.tsv": ("texts", "01"),
    "ud-ewt/dev.tsv": ("tags", "01"), "scitldr/dev.jsonl": ("texts", "12"),
    "dataset-mentions/dev.conll": ("tags", "01"), "wnut17/dev.conll": ("spans", "01"),
    "refstrings/cora.train.jsonl": ("tags", "23"),
}  # fmt: skip


@pytest.mark.parametrize("name", KNOWN)
def test_published_sets_are_what_they_are(name):
    path = Path(os.environ.get("TEXTMILL_DATA", "data"), name)
    if not path.is_file():
        pytest.skip("TEXTMILL_DATA has the published sets")
    _, found = seen(path)
    assert (found.task, "".join(map(str, found.columns.values()))) == KNOWN[name]


@pytest.mark.parametrize("kind", ["jsonl", "parquet", "xlsx", "saved"])
def test_formats_with_names_are_looked_at_too(tmp_path, kind):
    rows = [*rows_of("labels", random.Random(0), 80)]
    path = tmp_path / f"rows.{kind}"
    if kind == "jsonl":
        lines = [json.dumps({"tags": row.pop("labels").split("/"), "inner": row}) for row in rows]
        path.write_text("\n".join(lines))
    elif kind == "parquet":
        import pyarrow
        from pyarrow.parquet import write_table

        write_table(pyarrow.Table.from_pylist(rows), path)
    elif kind == "saved":
        import datasets

        datasets.Dataset.from_list(rows).save_to_disk(str(path))
    else:
        with xlsxwriter.Workbook(path) as book:
            sheet = book.add_worksheet()
            for n, row in enumerate([dict.fromkeys(rows[0]), *rows]):
                sheet.write_row(n, 0, [*row.values()] if n else [*row])
    sample, found = seen(path)
    assert len(sample.rows) == 80
    assert {name: sample.names[at] for name, at in found.columns.items()} == {
        "text": "inner.text" if kind == "jsonl" else "text",
        "label": "tags" if kind == "jsonl" else "labels",
    }
    assert found.task == "labels"


def test_columns_can_be_named_and_an_error_lists_them_all(tmp_path):
    path = tmp_path / "a.csv"
    rows = "".join(
        f"{n},the words of row {n},{'xy'[n % 2]},{'pq'[n // 2 % 2]}\n" for n in range(30)
    )
    path.write_text(f"n,note,one,two\n{rows}")
    assert dict(seen(path, text="note", label="Two")[1].columns) == {"text": 1, "label": 3}
    assert dict(seen(path, label="2")[1].columns) == {"text": 1, "label": 2}
    with pytest.raises(UserError, match=r"^Found 'n' .*, 'one' .*--text COLUMN"):
        seen(path, label="note")  # it is not taken for the text, too
    with pytest.raises(UserError, match=r"'note' is named for the text and for the label"):
        seen(path, text="note", label="1")
    with pytest.raises(UserError, match=r"no column 'three'\. There are.*'two' \(2 labels\)"):
        seen(path, label="three")
    with pytest.raises(UserError, match=r"no column 'Notes'\. Is 'note' meant\? There are 'n'"):
        seen(path, text="Notes")
    path.write_text("only texts\nare in\nthis file\n" * 9)
    with pytest.raises(UserError, match=r"Name it: --text COLUMN"):
        seen(path)
    for nothing in ("", "\n \n\n"):
        path.write_text(nothing)
        with pytest.raises(DataError, match="wanted rows, found none"):
            look_at(path)


def test_lists_of_labels_are_several_even_of_only_two_names():
    names = [["new"], ["old"], ["new", "old"]]
    rows = [{"text": f"This is row {n} of some.", "label": names[n % 3]} for n in range(60)]
    assert guess(sample_of_rows(rows)).task == "labels"
    for row in rows:
        row["label"] = row["label"][:1]
    assert guess(sample_of_rows(rows)).task == "label"


def test_levels_with_digits_are_labels_and_dates_are_not():
    rows = [
        {"text": f"This is row {n} of some.", "day": f"{n % 9}.11.26", "level": f"{'AB'[n % 2]}1"}
        for n in range(60)
    ]
    assert guess(sample_of_rows(rows)).columns == {"text": 0, "label": 2}


def test_an_encoding_is_seen_or_named(tmp_path):
    path = tmp_path / "a.csv"
    path.write_bytes("".join(f"посылка {n},{'дж'[n % 2]}\n" for n in range(40)).encode("cp1251"))
    for known in (None, "cp1251"):
        sample = look_at(path, encoding=known)
        assert (sample.rows[0], sample.settings["encoding"]) == (["посылка 0", "д"], "cp1251")
    with pytest.raises(DataError, match=r"--encoding NAME"):
        look_at(path, encoding="utf-8")


def test_a_list_in_one_json_text_is_refused_with_the_command_that_helps(tmp_path):
    (tmp_path / "a.json").write_text('[{"text": "a", "label": "b"}]')
    with pytest.raises(DataError, match=r"jq -c '\.\[\]'"):
        look_at(tmp_path / "a.json")


def test_the_label_that_texts_tell_is_the_likelier_one():
    chance = random.Random(1)
    labels = [chance.choice("ab") for _ in range(400)]
    texts = [f"{'sun' if label == 'a' else 'rain'} today" for label in labels]
    assert told_by(texts, labels) > 0.3
    assert abs(told_by(texts, [chance.choice("ab") for _ in texts])) < 0.1


def test_what_the_texts_tell_is_the_label_rather_than_what_is_called_so():
    chance = random.Random(1)
    said = {
        "Billing": "paid twice refund",
        "Delivery": "parcel late where",
        "Product": "broken off",
    }
    rows = list[dict[str, str]]()
    for number in range(600):
        kind = chance.choice([*said])
        words = " ".join(chance.sample([*said[kind].split(), "please", "help", "hello", "you"], 4))
        queue = "Biling" if number in (5, 400) else kind  # a rare label has few of the words
        state, tags = chance.choice("xy"), chance.choice(["vip", "new", ""])
        rows.append({"state": state, "labels": tags, "text": words, "queue": queue})
    found = guess(sample_of_rows(rows))
    assert (found.columns["label"], "hardly tell" in found.reasons["label"]) == (3, False)
    named = guess(sample_of_rows(rows), label="state")
    assert named.reasons["label"].startswith("2 labels, which the words of the texts hardly tell")


def test_several_codes_are_labels_and_stars_in_words_are_numbers():
    chance = random.Random(2)
    codes = ["I10", "E11.9", "J18.9", "N39.0"]
    rows = [
        {
            "day": f"{n % 28 + 1} March, 2026",
            "text": f"This is the text of row {n}, some words.",
            "codes": "; ".join(chance.sample(codes, chance.choice([1, 2, 3]))),
            "stars": f"{n % 5 + 1}{['', '/5', ' stars', ' Stars', ' / 5'][n // 5 % 5]}",
        }
        for n in range(300)
    ]
    found = guess(sample_of_rows(rows), label="codes")
    assert (found.task, found.separator) == ("labels", ";")
    found = guess(sample_of_rows(rows), label="stars")
    assert (found.task, found.columns) == ("number", {"text": 1, "score": 3})
    assert [number_in(row["stars"], "stars", 0) for row in rows] == [n % 5 + 1 for n in range(300)]
    for other in ("4/10", "6/5", "4 stars, or 5", "/5", "1/5/26"):
        with pytest.raises(DataError):
            number_in(other, "stars", 0)


def test_other_spellings_of_a_label_are_read_as_it_and_mistyped_ones_by_a_word(tmp_path):
    (path := tmp_path / "a.csv").write_text(
        "text,kind\n"
        + "".join(f"the words of row {n},{'Billing' if n % 2 else 'Delivery'}\n" for n in range(60))
        + "some other words,BILLING\nand these words,billing \nwords again,Delivry\n"
    )
    sample, found = seen(path)
    facts = facts_of(sample, found)
    assert facts.respelled == {"BILLING": "Billing", "billing ": "Billing"}
    recipe = file_recipe(path, sample, found, facts)
    for text, mistyped in ((recipe, {"Delivry": 1}), (recipe.replace("      # ", "      "), {})):
        settings = yaml.safe_load(text)["train_data"]
        data = TextRows.Config(**settings | {"path": path, "holdout": 0.0}).build()
        wanted = {"Billing": 32, "Delivery": 31 - len(mistyped), **mistyped}
        assert Counter(row["label"] for row in data) == wanted
    assert facts.labels == {"Billing": 32, "Delivery": 30, "Delivry": 1}
    with pytest.raises(UserError, match=r"read_as: wanted names of columns \(text\), found 'kind'"):
        TextRows.Config(
            path=path, columns=("text",), header=True, read_as={"kind": {}}
        ).build().read()


def test_of_a_long_file_rows_of_all_parts_are_looked_at(tmp_path, monkeypatch):
    monkeypatch.setattr(sample_module, "MOST_ROWS", 1000)
    path = tmp_path / "a.csv"  # sorted by its labels, as exports are
    rows = [f"{n},the words of row {n},{'abcd'[n // 1000]}\n" for n in range(4000)]
    path.write_text("Title\n\nid,text,label\n" + "".join(rows) + "Total,,4000\n")
    sample, found = seen(path)
    assert (sample.count, sample.totals, sample.is_part) == (4001, [4004], True)
    assert [*sample.lines] == sorted({*sample.lines})
    for line, row in zip(sample.lines, sample.rows, strict=True):
        assert row == rows[line - 4].strip().split(",")
    kinds = Counter(row[2] for row in sample.rows[500:])
    assert min(kinds["b"], kinds["c"], kinds["d"]) > 60  # 125 each, by chance
    facts = facts_of(sample, found)
    assert facts.lines[0][:2] == ("rows", "4,001")
    assert facts.lines[0][2].endswith("of them, from all parts, were looked at")


def test_odd_rows_are_counted_as_a_loop_over_all_counts_them(tmp_path):
    chance = random.Random(2)
    rows = [{"text": row["text"], "label": row["label"]} for row in rows_of("label", chance, 400)]
    rows += [dict(chance.choice(rows)) for _ in range(30)]
    rows += [{"text": rows[n]["text"].upper(), "label": rows[n]["label"]} for n in range(50)]
    rows += [{"text": row["text"], "label": "Other"} for row in rows[:9]] + [
        {"text": "", "label": ""}
    ] * 4
    rows += [{"text": f"odd one {n} of these", "label": "Biling"} for n in range(3)]
    sample = sample_of_rows(rows)
    facts = facts_of(sample, guess(sample))
    found = {what: number for what, number, _ in facts.lines}
    good = [row for row in rows if row["text"]]
    labels = Counter(row["label"] for row in good)
    several = {
        row["text"].lower(): {
            other["label"] for other in good if other["text"].lower() == row["text"].lower()
        }
        for row in good
    }
    assert facts.labels == labels
    assert (facts.total - facts.bad, facts.bad, found["empty rows"]) == (len(good), 4, "4")
    assert found["rows that repeat another"] == str(
        len(good) - len({tuple(row.values()) for row in good})
    )
    assert found["texts with two labels"] == str(sum(len(each) > 1 for each in several.values()))
    assert found["label 'Biling'"] == "3"
    assert int(found["of these also trained on"]) > 0
