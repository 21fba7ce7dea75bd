"""What went wrong, unsaid, in libraries that were here before; each by a public experiment."""

import json

import pytest

import textmill
from textmill.recipes import registries

QUIET = ("reporters.console=false", "reporters.html=false")


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture(scope="module")
def stopped(shared_data, tmp_path_factory):
    """PyText's case of its trainer: two batches a step, warm-up of 2, patience of 2."""
    tiny = shared_data / "pytext-tiny"
    words = [
        f"train_data.path={tiny / 'train_data_tiny.tsv'}",
        f"valid_data.path={tiny / 'test_data_tiny.tsv'}",
        "train_data.columns={label: 0, text: 2}",
        "train_data.batch_size=5",  # 10 rows: a step an epoch
        "trainer.accumulate=2",
        "trainer.seed=74",  # of which the first epoch is the best, as in the case
        "trainer.clip_norm=1.0",
        "trainer.max_epochs=10",
        "trainer.report_every=1 steps",
        "trainer.selection.metric=accuracy",
        "trainer.selection.patience=2",
        "optimizer.lr=0.001",
        "lr_scheduler.type=inverse_square_root",
        "lr_scheduler.warmup_steps=2",
        "ngrams=null",
        "model.embedding.dropout=0",
        "tokenizer.type=fitted_words",
        *QUIET,
    ]
    recipe = textmill.Recipe(
        **registries.experiments.get("classification/docnn")().ingredients,
        test_data=textmill.like("valid_data"),
    )
    run = textmill.train(recipe, words, run_dir=tmp_path_factory.mktemp("case") / "run")
    lines = (run.folder / "metrics.jsonl").read_text().splitlines()
    return run, [json.loads(line) for line in lines]


def of_split(lines, split):
    return [line for line in lines if line["split"] == split]


def test_warm_up_clipping_accumulation_and_patience_are_those_of_pytexts_case(stopped):
    run, lines = stopped
    assert [line["lr"] for line in of_split(lines, "train")] == pytest.approx(
        [5e-4, 1e-3, 1e-3 * (2 / 3) ** 0.5]
    )
    assert [line["step"] for line in of_split(lines, "valid")] == [1, 2, 3]
    assert (run.result["steps"], run.result["best"]["step"]) == (3, 1)


def test_the_test_is_of_the_best_epoch_and_not_of_the_last(stopped):
    run, lines = stopped
    best, _, last = of_split(lines, "valid")
    (test,) = of_split(lines, "test")
    names = [name for name in best if name not in ("split", "step", "total", "epoch", "examples")]
    values = {name for name in names if isinstance(best[name], float)}
    assert "loss" in values
    assert {name: test[name] for name in values} == {name: best[name] for name in values}
    assert last["loss"] != best["loss"]
    assert textmill.evaluate(run.folder)["test_data"].values["loss"] == best["loss"]
