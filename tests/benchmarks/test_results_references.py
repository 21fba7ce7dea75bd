"""``make results RESULTS=references``: what is held out, and the tables."""

import json
import random

import numpy as np
import pytest
from sklearn.metrics import f1_score

from benchmarks.results import references
from benchmarks.results.__main__ import main

LABELS = ("author", "title", "journal", "date")


def reference(number, **more):
    draw = random.Random(number)
    words = {
        "author": [f"{draw.choice(['Ann', 'Bob', 'Cy'])}{number},", "A."],
        "title": [f"On{number}", draw.choice(["maps.", "trees."])],
        "journal": ["Journal", "of", draw.choice(["things,", "nets,"])],
        "date": [f"{1950 + number % 70}."],
    }
    pairs = [(word, label) for label in LABELS for word in words[label]]
    tokens, tags = map(list, zip(*pairs, strict=True))
    return {"tokens": tokens, "tags": tags, **more}


@pytest.fixture
def data(tmp_path, monkeypatch):
    monkeypatch.setattr(references, "OF_CORA", 30)
    sets = {
        "cora.train": [reference(n) for n in range(20)],
        "cora.dev": [reference(n) for n in range(20, 25)],
        "flux-cim-cs": [reference(100 + n, fold=n % 10) for n in range(20)],
        "iconip": [reference(200 + n, fold=n % 10) for n in range(10)],
        # Cora's first, with five of a test part that no other file has; one is of flux.
        "anystyle.core": [reference(n) for n in [*range(30), *range(300, 350), 100]],
    }
    folder = tmp_path / "data" / "refstrings"
    folder.mkdir(parents=True)
    for name, rows in sets.items():
        (folder / f"{name}.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    return folder.parent


def test_no_row_that_scores_is_trained_on_and_none_of_coras_test_part(data, tmp_path):
    every, cora, own = references.blocks(data, tmp_path / "made")
    for block in (cora, own, every):
        scored = {references.same_row(row) for rows in block.dev.values() for row in rows}
        assert not scored & {references.same_row(row) for row in block.train}
    assert {name: len(rows) for name, rows in every.dev.items()} | {"anystyle": 0} == {
        "cora": 5, "flux-cim-cs": 2, "iconip": 1, "anystyle": 0,
    }  # fmt: skip
    names = {references.same_row(row) for row in every.train}
    assert not names & {references.same_row(reference(n)) for n in range(25, 30)}
    assert len(names) == len(every.train) == 20 + 18 + 9 + 51 - 1 - len(every.dev["anystyle"])
    assert len(own.train) + len(own.dev["anystyle"]) == 81


def test_macro_f1_is_sklearns():
    draw = random.Random(0)
    gold = [[draw.choice(LABELS) for _ in range(9)] for _ in range(20)]
    found = [[draw.choice([tag, "note"]) for tag in row] for row in gold]
    flat = [[tag for row in rows for tag in row] for rows in (gold, found)]
    score = references.MacroF1.of(gold, found)
    wanted = 100 * f1_score(*flat, labels=LABELS, average="macro")
    assert score.value == pytest.approx(wanted)
    best = references.MacroF1.of(gold, gold)
    above, error = references.more(score, [best, best], 20)
    assert above == pytest.approx(100 - wanted)
    assert 0 < error < 10
    assert references.more(best, [best], 20) == (0, 0)
    assert references.f1_of("date", *[gold, found]) == pytest.approx(
        100 * f1_score(*flat, labels=["date"], average="macro")
    )
    assert np.isfinite(score.drawn(np.eye(20)[0]))


def test_the_tables_say_what_is_reached(data, tmp_path, monkeypatch):
    def answers(block, **_):
        tags = [row["tags"] for rows in block.dev.values() for row in rows]
        return [*tags[:-1], ["note" for _ in tags[-1]]]

    monkeypatch.setattr(references, "of_textmill", answers)
    monkeypatch.setattr(references, "measure_speed", lambda *_: None)
    page = tmp_path / "page.md"
    page.write_text(f"{references.BEGIN}\n{references.END}\n")
    references.main(data, tmp_path / "out", page, seeds=2)
    table = page.read_text()
    assert "| cora (20) | cora (5) | words | 100.00 | 80.00 ± 0.00 (2) | -20.00 ± " in table
    assert table.count(" | no, by ") == 4 * 4
    rows = len(references.blocks(data, tmp_path / "out" / "data")[0].asked)
    f1 = 100 * (2 * rows - 2) / (2 * rows - 1)  # of three words each, one row's are not found
    assert f"| journal | {3 * rows} | 100.00 | {f1:.2f} |" in table


@pytest.mark.slow
def test_the_command_measures_what_is_missing_and_writes_the_tables(data, tmp_path, monkeypatch):
    monkeypatch.setattr(references, "LEAST", 0.1)
    monkeypatch.setattr(references, "EXPERIMENT", "tagging/references/local")
    page = tmp_path / "page.md"
    page.write_text(f"before\n{references.BEGIN}\n{references.END}\nafter\n")
    words = ["references", "--data", str(data), "--out", str(tmp_path / "out")]
    words += ["--page", str(page), "--seeds", "1"]
    main(words)
    ledger = tmp_path / "out" / "references.jsonl"
    lines = ledger.read_text()
    parts = [(line["job"], line["part"]) for line in map(json.loads, lines.splitlines())]
    names = ["all sets", "cora", "anystyle, its labels"]
    trained = [(name, part) for name in names for part in ("CRFsuite", "textmill")]
    assert parts == [*trained, ("all sets", "speed")]
    table = page.read_text()
    assert "| cora (20) | cora (5) | words | 100.00 |" in table
    assert "| all of these (" in table
    assert "| author | " in table
    assert "| the export | 256 at once |" in table
    main(words)
    assert ledger.read_text() == lines
