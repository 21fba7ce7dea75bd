"""``make results RESULTS=linear``: the cells of its table, and what is below is marked."""

import json
import random

import pytest

from benchmarks.results import bar
from benchmarks.results.__main__ import PAGE, main
from benchmarks.results.splits import NUMBERS, SPLITS, drawn, of_table

WORDS = {"ham": ["lunch", "home", "later"], "spam": ["prize", "free", "win"]}


def rows(count):
    chance = random.Random(count)
    return [
        (label, " ".join(chance.choices([*WORDS[label], "you", "a", f"w{number}"], k=5)))
        for number, label in enumerate(["ham", "spam"] * (count // 2))
    ]


@pytest.fixture
def data(tmp_path):
    folder = tmp_path / "data" / "sms-spam"
    folder.mkdir(parents=True)
    text = "".join("\t".join(row) + "\n" for row in rows(120))
    (folder / "train.tsv").write_text(text)
    return folder.parent


@pytest.fixture
def small(monkeypatch):
    monkeypatch.setattr(bar, "SPLITS", {"sms-spam": SPLITS["sms-spam"]})
    monkeypatch.setattr(bar, "NUMBERS", {})
    monkeypatch.setattr(bar, "SIZES", (20, 0))


def test_the_command_measures_what_is_missing_and_writes_its_table(tmp_path, data, small):
    page = tmp_path / "page.md"
    page.write_text(f"before\n{bar.BEGIN}\nold\n{bar.END}\nafter\n")
    words = ["linear", "--data", str(data), "--out", str(tmp_path / "out"), "--page", str(page)]
    main(words)
    lines = (tmp_path / "out" / "linear.jsonl").read_text().splitlines()
    jobs = [(line["job"], line["part"]) for line in map(json.loads, lines)]
    parts = (bar.SVC, bar.LOGISTIC, bar.TEXTMILL)
    halves = [f"sms-spam-{size}-{half}" for size in ("20", "all") for half in (0, 1)]
    assert jobs == [(half, part) for half in halves for part in parts]
    text = page.read_text()
    assert text.startswith("before\n")
    assert text.endswith("after\n")
    assert "| sms-spam | 20 |" in text
    assert "| mean of those with labels |" in text
    main(words)
    assert (tmp_path / "out" / "linear.jsonl").read_text().splitlines() == lines


def test_halves_share_no_text_and_rows_are_drawn_from_the_other_one(data):
    for half in bar.HALVES:
        train, asked = bar.Cell("sms-spam", 0, half).rows(data)
        assert not {row[1] for row in train} & {row[1] for row in asked}
        few, same = bar.Cell("sms-spam", 20, half).rows(data)
        assert len(few) == 20
        assert set(few) <= set(train)
        assert same == asked


def lines_of(own, svc=90, logistic=88):
    """A ledger of two halves, of a hundred rows each, so many of which are right."""
    counts = {bar.SVC: svc, bar.LOGISTIC: logistic, bar.TEXTMILL: own}
    return [
        {
            "job": bar.Cell("sms-spam", 20, half).name,
            "part": part,
            "rows": 20,
            "cpu_s": 2.0,
            "values": [100.0] * count + [0.0] * (100 - count),
        }
        for half in bar.HALVES
        for part, count in counts.items()
    ]


class Lines:
    def __init__(self, lines):
        self.lines = lines


def test_the_difference_is_to_the_better_one_and_its_error_that_of_the_same_rows(small):
    (row,) = bar.compared(Lines(lines_of(89)))
    assert row.difference == pytest.approx(-1)
    # Of 200 rows two are 100 lower, so that the variance is 99.5, over 200.
    assert row.error == pytest.approx(0.7053, abs=1e-3)
    cells = ["sms-spam", "20", "200", "90.00", "88.00", "89.00", "-1.00", "0.71", "2.0 / 2.0"]
    assert row.cells == [*cells, "below"]
    (other,) = bar.compared(Lines(lines_of(90, svc=80, logistic=90)))
    assert other.difference == 0
    assert other.cells[-1] == ""


def test_what_one_half_lacks_is_in_no_row(small):
    lines = lines_of(89)
    assert [*bar.compared(Lines(lines[:-1]))] == []


def test_numbers_are_measured_beside_a_ridge_regression(tmp_path, monkeypatch):
    monkeypatch.setattr(bar, "SPLITS", {})
    chance = random.Random(0)
    found = [(str(n), " ".join(["word"] * n + [f"w{chance.random()}"])) for n in range(1, 9)] * 9
    found = [(score, f"{text} {number}") for number, (score, text) in enumerate(found)]
    monkeypatch.setattr(bar, "NUMBERS", {"lengths": lambda data: found})
    monkeypatch.setattr(bar, "SIZES", (0,))
    ledger = bar.Ledger(tmp_path / "linear.jsonl")
    bar.measure(tmp_path, tmp_path, ledger)
    assert [line["part"] for line in ledger.lines] == [bar.RIDGE, bar.TEXTMILL] * 2
    assert bar.Cell("lengths", 0, 0).values(["2", "4"], [("2",), ("6",)]) == [100, 0]


def test_other_seeds_draw_other_rows_and_all_rows_are_all():
    every = rows(40)
    one, two = drawn(every, 20, 1), drawn(every, 20, 2)
    assert len(one) == len(two) == 20
    assert one != two
    assert drawn(every, 20, 1) == one
    assert drawn(every, 0, 1) == every


def test_every_split_gives_rows_of_a_label_and_texts(shared_data):
    for name, read in SPLITS.items():
        found = bar.shuffled(shared_data, name)
        assert len(found) > 2000
        for row in found[:50]:
            assert len(row) == (3 if name == "snli-pair" else 2)
            assert all(part.strip() for part in row)
        assert len({row[0] for row in found}) > 1
        assert read(shared_data)


def test_every_split_of_numbers_gives_numbers(shared_data):
    for read in NUMBERS.values():
        assert len({float(row[0]) for row in read(shared_data)}) > 5


def test_a_table_has_two_parts(shared_data):
    read = of_table("snips", 0, 1)
    assert read(shared_data) == read(shared_data, "train") != read(shared_data, "dev")


def test_the_page_has_a_place_for_the_table():
    text = PAGE.read_text(encoding="utf-8")
    assert f"{bar.BEGIN}\n\n| {' | '.join(bar.COLUMNS)} |" in text
    assert bar.END in text
