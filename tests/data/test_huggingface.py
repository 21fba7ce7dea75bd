"""Pairs of a Hugging Face data set: an object or a folder, every row accounted for."""

import sys

import pytest

from textmill.data.bad_rows import BadRow, BadRowsError
from textmill.data.batching import Batching
from textmill.data.huggingface import HuggingFacePairs
from textmill.data.store.tokens import chunks_of
from textmill.data.text_pairs import TextPairs
from textmill.errors import DataError, MissingExtraError, UserError
from textmill.recipes import registries

datasets = pytest.importorskip("datasets")

PAIRS = [{"translation": {"en": f"Hi {n}.", "fr": f"Salut {n} é."}, "id": n} for n in range(2500)]
COLUMNS = {"source": "translation.en", "target": "translation.fr"}


@pytest.fixture(scope="module")
def dataset():
    return datasets.Dataset.from_list(PAIRS)


def wanted(numbers):
    return [{"source": f"Hi {n}.", "target": f"Salut {n} é."} for n in numbers]


def test_an_objects_rows_are_read_where_they_are(dataset):
    data = HuggingFacePairs.of(dataset, columns=COLUMNS, max_tokens=99)
    rows = data.rows()
    assert list(data) == list(rows) == wanted(range(2500))
    assert [rows[0], rows[-1], *rows[999:1002]] == wanted([0, 2499, 999, 1000, 1001])
    assert (len(data), str(data.count)) == (2500, "2500 rows: 2500 good, 0 bad")
    assert data.batching == Batching(max_tokens=99)
    with pytest.raises(IndexError):
        rows[2500]
    parts = list(chunks_of(rows, ["source", "target"], 2400))
    assert [row for part in parts for row in part] == wanted(range(2400, 2500))


def test_a_saved_folder_is_the_same(dataset, tmp_path):
    dataset.save_to_disk(str(tmp_path / "one"))
    datasets.DatasetDict({"train": dataset, "dev": dataset.select(range(9))}).save_to_disk(
        str(tmp_path / "two")
    )
    made = registries.datasets.get("huggingface_pairs").Config
    one = made(path=tmp_path / "one", columns=COLUMNS).build()
    dev = made(path=tmp_path / "two", split="dev", columns=COLUMNS).build()
    assert one.fingerprint() == HuggingFacePairs.of(dataset, columns=COLUMNS).fingerprint()
    assert list(dev) == wanted(range(9))
    assert dev.fingerprint() != one.fingerprint()


def test_the_fingerprint_of_lists_of_words_is_that_of_before_lists_were_read():
    def fingerprint(words):
        rows = datasets.Dataset.from_dict({"words": words, "tags": ["X Y", "Z"]})
        return HuggingFacePairs.of(rows, columns=("words", "tags")).fingerprint()

    known = "d3604a6000e0ae3b69e74fe24ea26e98f59d8d537cf3c0beb284c56a738322d8"
    assert fingerprint([["a", "dog"], ["so"]]) == known
    cut = [["a b", "c"], ["a", "b c"], ["a", "b", "c"], ["a b c"]]
    assert len({fingerprint([words, ["so"]]) for words in cut}) == len(cut)


@pytest.mark.parametrize("at", [0, 1, 2], ids=["first", "middle", "last"])
def test_a_bad_row_is_left_out_with_its_number_and_reason(at):
    texts = ["a", "b", "c"]
    texts[at] = None
    rows = datasets.Dataset.from_dict({"source": texts, "target": ["x", "y", "z"]})
    bad = BadRow(
        "<Dataset>",
        at + 1,
        0,
        "'source': wanted text, a number or a list of them, found null",
        repr({"source": None, "target": "xyz"[at]}),
    )
    with pytest.raises(BadRowsError) as error:
        HuggingFacePairs.of(rows).read(ingredient="valid_data")
    assert error.value.bad_rows == (bad,)
    assert "valid_data.max_bad_rows=1" in str(error.value)
    data = HuggingFacePairs.of(rows, max_bad_rows=1)
    assert [row["source"] for row in data] == [text for text in texts if text]
    assert (list(data.bad_rows), str(data.count)) == ([bad], "3 rows: 2 good, 1 bad")


def test_what_cannot_be_is_said(dataset, tmp_path, monkeypatch):
    dataset.select(range(2)).save_to_disk(str(tmp_path / "one"))
    datasets.DatasetDict({"train": dataset.select([1])}).save_to_disk(str(tmp_path / "two"))
    make = HuggingFacePairs.Config
    cases = {
        "columns: wanted the column 'en' of <Dataset>, found translation, id.": (
            lambda: HuggingFacePairs.of(dataset, columns={"source": "en"})
        ),
        "dataset: wanted a datasets.Dataset with a length, found <IterableDataset>. Of an iterable "
        "one, give ready batches, or the rows of list(dataset.take(n)).": (
            lambda: HuggingFacePairs.of(dataset.to_iterable_dataset())
        ),
        f"path: wanted a folder that save_to_disk wrote; {tmp_path / 'no'} is none.": (
            lambda: make(path=tmp_path / "no").build()
        ),
        f"split: {tmp_path / 'two'} has train; found 'dev'.": (
            lambda: make(path=tmp_path / "two", split="dev").build()
        ),
        f"split: {tmp_path / 'one'} has no splits; leave split=dev out.": (
            lambda: make(path=tmp_path / "one", split="dev").build()
        ),
    }
    for text, use in cases.items():
        with pytest.raises(UserError) as error:
            use()
        assert str(error.value) == text
    with pytest.raises(UserError, match=r"is no data set that save_to_disk wrote: "):
        make(path=tmp_path).build()
    with pytest.raises(DataError, match=r"^<Dataset>: wanted rows, found 0 bad ones only\.$"):
        HuggingFacePairs.of(dataset.select([]), columns=COLUMNS).read()
    monkeypatch.setitem(sys.modules, "datasets", None)
    with pytest.raises(MissingExtraError) as missing:
        make(path=tmp_path / "one").build()
    assert str(missing.value) == (
        "huggingface_pairs needs the package 'datasets', which is not installed. "
        "Install it with: pip install 'textmill[huggingface]'"
    )


def test_rows_are_held_out_by_the_same_hash_as_those_of_a_file(dataset, tmp_path):
    def side(held_out, rows=dataset):
        return HuggingFacePairs.of(rows, columns=COLUMNS, holdout=0.1, held_out=held_out).read()

    train, held = side(False), side(True)
    assert sorted([*train, *held], key=lambda row: int(row["source"][3:-1])) == wanted(range(2500))
    assert 190 <= len(held) <= 310
    assert held.rows()[0] == next(iter(held))
    assert held.place_of(0) == f"<Dataset>:{int(held.rows()[0]['source'][3:-1]) + 1}"
    lines = "".join(f"Hi {n}.\tSalut {n} é.\n" for n in range(2500))
    (tmp_path / "pairs.tsv").write_text(lines, encoding="utf-8")
    of_file = TextPairs.Config(path=tmp_path / "pairs.tsv", holdout=0.1, held_out=True).build()
    assert [*of_file.rows()] == [*held]
    assert [*side(True, dataset.select(range(900)))] == [*held][
        : len(side(True, dataset.select(range(900))))
    ]
    assert len({data.fingerprint() for data in (train, held)}) == 2


def test_bad_rows_are_those_of_the_training_side():
    rows = datasets.Dataset.from_dict(
        {"source": [f"a{n}" for n in range(60)] + [""], "target": ["b"] * 61}
    )
    train, held = (
        HuggingFacePairs.of(rows, max_bad_rows=1, holdout=0.5, held_out=side).read()
        for side in (False, True)
    )
    assert (train.count.bad, held.count.bad, len(held.bad_rows)) == (1, 0, 0)
    assert train.count.good + held.count.good == 60
    with pytest.raises(BadRowsError, match=r"train_data\.max_bad_rows"):
        HuggingFacePairs.of(rows, holdout=0.5, held_out=True).read(ingredient="valid_data")


def test_a_label_of_one_row_stays_in_training():
    rows = datasets.Dataset.from_dict(
        {"label": [f"l{n}" for n in range(40)], "text": [f"t{n}" for n in range(40)]}
    )
    held = {"columns": ("label", "text"), "holdout": 0.5, "held_out": True}
    assert len(HuggingFacePairs.of(rows, **held).read())
    with pytest.raises(DataError, match="none of 40 rows is held out"):
        HuggingFacePairs.of(rows, **held, stratify="label").read()
