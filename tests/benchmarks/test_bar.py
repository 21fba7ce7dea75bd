"""``make results RESULTS=linear``: the cells of its table, and what is below is marked."""

import json
import random

import pytest

from benchmarks.results import bag_of_words, bar
from benchmarks.results.__main__ import PAGE, main
from benchmarks.results.splits import NUMBERS, SPLITS, drawn

WORDS = {"ham": ["lunch", "home", "later"], "spam": ["prize", "free", "win"]}


def rows(count):
    chance = random.Random(count)
    return [
        (label, " ".join(chance.choices([*WORDS[label], "you", "a"], k=5)))
        for label in ["ham", "spam"] * (count // 2)
    ]


@pytest.fixture
def data(tmp_path):
    folder = tmp_path / "data" / "sms-spam"
    folder.mkdir(parents=True)
    for name, count in (("train", 40), ("dev", 12)):
        text = "".join("\t".join(row) + "\n" for row in rows(count))
        (folder / f"{name}.tsv").write_text(text)
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
    main([*words, "--seeds", "1"])
    lines = (tmp_path / "out" / "linear.jsonl").read_text().splitlines()
    parts = [(line["job"], line["part"]) for line in map(json.loads, lines)]
    assert parts == [(f"sms-spam-{size}-1", part) for size in ("20", "all") for part in bar.PARTS]
    text = page.read_text()
    assert text.startswith("before\n")
    assert text.endswith("after\n")
    assert "| sms-spam | 20 |" in text
    assert "| sms-spam | all |" in text
    assert "| mean of accuracies |" in text
    main([*words, "--seeds", "1"])
    assert (tmp_path / "out" / "linear.jsonl").read_text().splitlines() == lines


def lines_of(split, size, **values):
    """The ledger's lines of two seeds; values are of both."""
    return {
        (bar.Cell(split, size, seed).name, part): {"value": value + by, "cpu_s": 2.0, "dev": 400}
        for seed, by in ((1, -1), (2, 1))
        for part, value in zip(bar.PARTS, (90, 80, 85, values["textmill"]), strict=True)
    }


def test_the_mean_is_of_seeds_and_what_is_below_by_more_than_an_error_is_marked(small):
    cells = [bar.Cell("sms-spam", 500, seed) for seed in (1, 2, 3)]
    near = bar._row(cells, lines_of("sms-spam", 500, textmill=88.6))
    means = ["90.00", "80.00", "85.00", "88.60"]
    assert near == ["sms-spam", "500", "2", *means, "1.50", "1.0 times", ""]
    assert bar._row(cells, lines_of("sms-spam", 500, textmill=88.4))[-1] == "below"


def test_a_seed_that_not_all_have_is_left_out_of_all(small):
    cells = [bar.Cell("sms-spam", 500, seed) for seed in (1, 2)]
    lines = lines_of("sms-spam", 500, textmill=88.6)
    del lines["sms-spam-500-2", bar.TEXTMILL]
    assert bar._row(cells, lines)[2:4] == ["1", "89.00"]
    del lines["sms-spam-500-1", bar.FASTTEXT]
    assert bar._row(cells, lines) is None


def test_a_linear_model_of_all_rows_stands_for_every_seed(small):
    cells = [bar.Cell("sms-spam", 0, seed) for seed in (1, 2)]
    lines = lines_of("sms-spam", 0, textmill=88.6)
    del lines["sms-spam-all-2", bar.LINEAR], lines["sms-spam-all-2", bar.WORDS]
    assert bar._row(cells, lines)[2:4] == ["2", "89.00"]


def test_numbers_are_measured_by_their_correlation_beside_a_ridge_regression(tmp_path, monkeypatch):
    monkeypatch.setattr(bar, "SPLITS", {})
    found = [(str(i % 7), " ".join(["word"] * (1 + i % 7))) for i in range(60)]
    monkeypatch.setattr(bar, "NUMBERS", {"lengths": lambda data, part: found})
    monkeypatch.setattr(bar, "SIZES", (0,))
    ledger = bar.Ledger(tmp_path / "linear.jsonl")
    bar.measure(tmp_path, tmp_path, ledger, seeds=1)
    assert [line["part"] for line in ledger.lines] == [bar.LINEAR, bar.WORDS, bar.TEXTMILL]
    assert all(-100 <= line["value"] <= 100 for line in ledger.lines)
    assert bar.Cell("lengths", 0, 1).value(["1", "2", "4"], [("2",), ("4",), ("8",)]) == 100


def test_other_seeds_draw_other_rows_and_all_rows_are_all():
    every = rows(40)
    one, two = drawn(every, 20, 1), drawn(every, 20, 2)
    assert len(one) == len(two) == 20
    assert one != two
    assert drawn(every, 20, 1) == one
    assert drawn(every, 0, 1) == every


def test_fasttexts_architecture_learns():
    train, dev = rows(200), rows(40)
    labels = [row[0] for row in train]
    found = bag_of_words.answers([r[1] for r in train], labels, [r[1] for r in dev], seed=1)
    assert sum(a == row[0] for a, row in zip(found, dev, strict=True)) >= 36


def test_every_split_gives_rows_of_a_label_and_texts(shared_data):
    for name, read in SPLITS.items():
        for row in read(shared_data, "dev")[:50]:
            assert len(row) == (3 if name == "snli-pair" else 2)
            assert all(part.strip() for part in row)
        assert len({row[0] for row in read(shared_data, "dev")}) > 1


def test_every_split_of_numbers_gives_numbers(shared_data):
    for read in NUMBERS.values():
        dev = read(shared_data, "dev")
        assert len({float(row[0]) for row in dev}) > 5


def test_the_page_has_a_place_for_the_table():
    text = PAGE.read_text(encoding="utf-8")
    assert f"{bar.BEGIN}\n\n| {' | '.join(bar.COLUMNS)} |" in text
    assert bar.END in text
