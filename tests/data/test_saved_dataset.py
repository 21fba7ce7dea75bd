"""Folders that ``save_to_disk`` of Hugging Face ``datasets`` wrote, and data sets in memory."""

import pytest

from textmill.data.text_pairs import TextPairs
from textmill.errors import UserError
from textmill.tasks.batches.row_batches import rows_of

datasets = pytest.importorskip("datasets")

COLUMNS = {"source": "translation.en", "target": "translation.fr"}


@pytest.fixture(scope="module")
def dataset():
    return datasets.Dataset.from_list(
        [{"translation": {"en": f"Hi {n}.", "fr": f"Salut {n} é."}, "id": n} for n in range(50)]
    )


def wanted(numbers):
    return [{"source": f"Hi {n}.", "target": f"Salut {n} é."} for n in numbers]


def test_a_saved_folder_is_read_in_its_order(dataset, tmp_path):
    chosen = [*range(49, 0, -2)]
    dataset.select(chosen).save_to_disk(str(tmp_path / "one"), num_shards=3)
    data = TextPairs.Config(path=tmp_path / "one", columns=COLUMNS).build()
    assert list(data.rows()) == wanted(chosen)
    assert len(data.files) == 3


def test_a_split_is_a_folder_of_its_own(dataset, tmp_path):
    splits = {"train": dataset, "dev": dataset.select(range(9))}
    datasets.DatasetDict(splits).save_to_disk(str(tmp_path / "two"))
    data = TextPairs.Config(path=tmp_path / "two" / "dev", columns=COLUMNS).build()
    assert list(data.rows()) == wanted(range(9))
    with pytest.raises(UserError, match="has the splits dev, train: name the folder of one"):
        TextPairs.Config(path=tmp_path / "two").build()


def test_a_data_set_in_memory_is_rows_as_it_is(dataset):
    names = {"translation.en": "source", "translation.fr": "target"}
    rows, _ = rows_of(
        dataset.flatten().rename_columns(names).select_columns([*names.values()]), train=True
    )
    assert rows == wanted(range(50))
