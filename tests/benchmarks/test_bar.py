"""``make results RESULTS=linear``: the cells of its table, and what is below is marked."""

import json
import random

import pytest

from benchmarks.results import bag_of_words, bar
from benchmarks.results.__main__ import PAGE, main
from benchmarks.results.splits import SPLITS, drawn

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
    assert "| mean |" in text
    main([*words, "--seeds", "1"])
    assert (tmp_path / "out" / "linear.jsonl").read_text().splitlines() == lines


def test_the_mean_is_of_seeds_and_what_is_below_by_more_than_an_error_is_marked():
    def lines(value, seconds):
        return [{"value": value + by, "cpu_s": seconds, "dev": 400} for by in (-1, 1)]

    made = {"LinearSVC": lines(90, 2), "its words alone": lines(80, 1), "fastText": lines(85, 1)}
    near = bar._row("a", 500, {**made, "weft": lines(88.6, 3)})
    assert near == ["a", "500", "90.00", "80.00", "85.00", "88.60", "1.50", "1.5 times", ""]
    assert bar._row("a", 0, {**made, "weft": lines(88.4, 3)})[-1] == "below"


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


def test_the_page_has_a_place_for_the_table():
    text = PAGE.read_text(encoding="utf-8")
    assert bar.BEGIN in text
    assert bar.END in text
