"""An export reads files and pipes as the run that it was made of."""

import io
from types import SimpleNamespace

import pytest

from tests.runs.tiny import write_recipe
from textmill.cli.main import main
from textmill.exported import load

TRAIN = [
    "translation/tatoeba/local",
    *("train_data.path=train.tsv", "valid_data.path=valid.csv"),
    *("trainer.max_steps=30", "optimizer.lr=0.01"),
    *("valid_data.columns={source: 1, target: 0}", "tokenizer.vocab_size=44"),
]


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A run whose validation data is a CSV file of another order, and its export."""
    folder = write_recipe(tmp_path_factory.mktemp("columns"))
    pairs = [line.split("\t") for line in (folder / "valid.tsv").read_text().splitlines()]
    (folder / "valid.csv").write_text("".join(f'"{b}","{a}"\n' for a, b in pairs))
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        assert main(["train", *TRAIN, "--run-dir", "run"]) == 0
        assert main(["export", "run", "--format", "ctranslate2"]) == 0
    return folder


@pytest.fixture(autouse=True)
def here(place, monkeypatch):
    monkeypatch.chdir(place)


@pytest.mark.parametrize(
    "words",
    [
        ["valid.csv"], ["valid.tsv", "columns={source: 0, target: 1}"], ["-", "--format", "csv"],
        ["-"], ["-", "columns={target: 0}"], ["valid.csv", "batch_size=3"],
    ],
)  # fmt: skip
def test_it_answers_the_same_rows_as_its_run(capsys, monkeypatch, place, words):
    found = []
    for run in ("run", "run/export/ctranslate2"):
        piped = io.BytesIO((place / "valid.csv").read_bytes())
        monkeypatch.setattr("sys.stdin", SimpleNamespace(buffer=piped, isatty=lambda: False))
        found.append((main(["predict", run, *words]), *capsys.readouterr()))
    of_run, of_export = found
    assert of_export == of_run
    answers = of_run[1].splitlines()
    assert of_run[0] or len(answers) == 5
    assert of_run[0] or len({*answers}) > 1, "else it tells nothing"


def test_it_says_how_data_was_read():
    data = load("run/export/ctranslate2").data
    assert data["path"] == "valid.csv"
    assert data["columns"] == {"source": 1, "target": 0}
