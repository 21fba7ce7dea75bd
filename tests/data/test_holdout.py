"""Rows held out by a hash: a row's side is its own, whatever stands around it."""

import random
from collections import Counter

import pytest

from textmill.data import text_pairs
from textmill.data.holdout import Holdout
from textmill.data.rows import Rows
from textmill.data.text_lines import TextLines
from textmill.data.text_rows import TextRows
from textmill.errors import DataError, UserError

LABELS = ["ham", "spam", "spam", "eggs"]
ROWS = [f"{LABELS[n % 4]}\ttext {n * n}" for n in range(1000)]


def written(path, rows=ROWS):
    path.write_text("".join(f"{row}\n" for row in rows), encoding="utf-8")
    return path


def sides(path, share=0.1, kind=TextRows, **settings):
    """The rows for training, and those held out, each as they stand in the file."""
    found = []
    for held_out in (False, True):
        config = kind.Config(path=path, holdout=share, held_out=held_out, **settings)
        found.append(["\t".join(row.values()) for row in config.build().rows()])
    return found


def test_each_row_is_on_one_side_in_the_order_of_the_file(tmp_path):
    train, held = sides(written(tmp_path / "all.tsv"))
    assert sorted(train + held) == sorted(ROWS)
    assert [row for row in ROWS if row in {*train}] == train
    assert [row for row in ROWS if row in {*held}] == held


@pytest.mark.parametrize(
    "share", [0.1, *(pytest.param(share, marks=pytest.mark.slow) for share in (0.05, 0.3, 0.5))]
)
def test_the_share_is_kept_in_all_rows_and_in_those_of_each_label(tmp_path, share):
    """Within four standard deviations of what as many tosses of a coin give."""
    rows = [f"{LABELS[n % 4]}\ttext {n}" for n in range(20_000)]
    _, held = sides(written(tmp_path / "all.tsv", rows), share)
    every, found = (Counter(row.partition("\t")[0] for row in part) for part in (rows, held))
    for label in (*every, None):
        n = every[label] if label else len(rows)
        k = found[label] if label else len(held)
        assert abs(k - share * n) < 4 * (share * (1 - share) * n) ** 0.5


def test_added_rows_change_no_rows_side_wherever_they_are_added(tmp_path):
    before = [{*side} for side in sides(written(tmp_path / "all.tsv"), stratify="label")]
    draw = random.Random(1)
    more = [*ROWS, *(f"toast\tnew {n}" for n in range(300))]
    draw.shuffle(more)
    after = sides(written(tmp_path / "all.tsv", more), stratify="label")
    assert [{*side} & {*ROWS} for side in after] == before
    fewer = draw.sample(ROWS, 500)
    after = sides(written(tmp_path / "all.tsv", fewer))
    assert [{*side} for side in after] == [side & {*fewer} for side in before]


def test_rows_that_are_the_same_are_on_one_side(tmp_path):
    train, held = sides(written(tmp_path / "all.tsv", ROWS * 3), 0.3)
    assert not {*train} & {*held}
    assert {*Counter(train).values(), *Counter(held).values()} == {3}


def test_of_each_label_a_row_is_kept_for_training(tmp_path):
    rows = [f"rare {n // 2}\ttext {n}" for n in range(400)]  # two of each, a quarter of which go
    path = written(tmp_path / "all.tsv", rows)
    lost = {row.partition("\t")[0] for row in rows}
    train, held = sides(path, 0.5)
    assert len(lost - {row.partition("\t")[0] for row in train}) > 30, "else it tells nothing"
    train, held = sides(path, 0.5, stratify="label")
    assert {row.partition("\t")[0] for row in train} == lost
    assert len(held) > 100
    twins = Rows({"label": ["rare"] * 5, "text": ["one"] * 5})
    assert [*Holdout(0.999, held_out=False, label="label").of(twins)] == [0, 1, 2, 3, 4]


@pytest.mark.parametrize("held_out", [False, True])
def test_a_file_that_is_not_held_in_memory_is_divided_alike(tmp_path, monkeypatch, held_out):
    path = written(tmp_path / "all.tsv")
    config = TextRows.Config(path=path, holdout=0.2, held_out=held_out, stratify="label")
    held = config.build().read()
    monkeypatch.setattr(text_pairs, "HELD_BYTES", 0)
    monkeypatch.setattr("textmill.data.rows.NEAR", 16)
    monkeypatch.setenv("TEXTMILL_CACHE", str(tmp_path / "cache"))
    mapped = config.build()
    assert type(mapped.rows()) is not type(held.rows())
    assert [*mapped.rows()] == [*held.rows()]
    assert [mapped.rows()[n] for n in range(len(held))] == [*held.rows()]
    for part in (slice(None), slice(3, 40), slice(-5, None), slice(0, 0)):
        assert [*mapped.rows()[part]] == [*held.rows()[part]]
    assert [mapped.rows().place_of(n) for n in range(9)] == [held.place_of(n) for n in range(9)]
    assert mapped.lines == held.lines
    assert mapped.fingerprint() == held.fingerprint()
    assert mapped.count == held.count
    with pytest.raises(IndexError):
        mapped.rows()[len(held)]


def test_rows_are_counted_once_and_bad_ones_on_the_training_side(tmp_path):
    path = written(tmp_path / "all.tsv", [*ROWS, "no text"])
    both = [
        TextRows.Config(path=path, holdout=0.1, held_out=side, max_bad_rows=1).build()
        for side in (False, True)
    ]
    counts = [data.count for data in both]
    assert [count.bad for count in counts] == [1, 0]
    assert sum(count.total for count in counts) == 1001
    assert [len(data.bad_rows) for data in both] == [1, 0]
    for data in both:
        rows = path.read_text(encoding="utf-8").splitlines()
        assert [rows[line - 1] for line in data.lines] == ["\t".join(r.values()) for r in data]
        assert data.place_of(3) == f"{path}:{data.lines[3]}"


def test_a_side_without_rows_is_refused(tmp_path):
    path = written(tmp_path / "all.tsv", ROWS[:2])
    with pytest.raises(DataError, match=r"none of 2 rows is held out by holdout=0\.01"):
        TextRows.Config(path=path, holdout=0.01, held_out=True).build().read()
    with pytest.raises(UserError, match=r"^stratify: there is no column 'tag'; there are label, t"):
        TextRows.Config(path=path, holdout=0.5, stratify="tag").build().read()


def passages(*numbers):
    """Passages of one to three lines, a blank line behind each, or two."""
    return [
        line
        for n in numbers
        for line in [f"{n} begins", *["goes on"] * (n % 3), *[""] * (1 + n % 2)]
    ]


def texts(path, *, held_out, share=0.3):
    config = TextLines.Config(path=path, holdout=share, held_out=held_out)
    return [row["text"] for row in config.build().rows()]


def test_of_a_text_whole_passages_are_held_out(tmp_path):
    path = written(tmp_path / "play.txt", passages(*range(200)))
    train, held = (texts(path, held_out=side) for side in (False, True))
    begun = [[int(line.split()[0]) for line in side if "begins" in line] for side in (train, held)]
    assert [passages(*numbers) for numbers in begun] == [train, held]
    assert sorted(begun[0] + begun[1]) == [*range(200)]
    assert 40 <= len(begun[1]) <= 80  # 60 in expectation, 6.5 a standard deviation
    more = written(path, passages(*range(300, 340), *range(200), *range(400, 410)))
    grown = texts(more, held_out=True)
    assert {line for line in grown if "begins" in line and int(line.split()[0]) < 200} == {
        line for line in held if "begins" in line
    }
    same = written(path, [*passages(*range(50)), "0 begins", "", *passages(*range(50)), "6 begins"])
    sides = [{*texts(same, held_out=side)} - {"goes on", ""} for side in (False, True)]
    assert sides[0].isdisjoint(sides[1])


def test_of_a_text_without_blank_lines_each_line_is_a_passage(tmp_path, monkeypatch):
    lines = [f"line {n * n}" for n in range(500)]
    path = written(tmp_path / "lines.txt", lines)
    train, held = (texts(path, held_out=side) for side in (False, True))
    assert sorted(train + held) == sorted(lines)
    assert [line for line in lines if line in {*held}] == held
    assert 110 <= len(held) <= 190
    monkeypatch.setattr(text_pairs, "HELD_BYTES", 10)
    assert texts(path, held_out=True) == held
