"""Every experiment in its tiny variant: rows where it looks for them, one command, an answer."""

import json
from pathlib import Path

import pytest

import textmill
from tests.cli.test_predict_formats import rows_of
from tests.recipes.local_data import short, write_data
from tests.runs.report.cards import checked_card
from textmill.cli.main import main
from textmill.recipes import registries
from textmill.recipes.planning import plan_recipe

NAMES = registries.experiments.names()
LOCAL = [name for name in NAMES if name.endswith("/local")]
QUICK = {  # one of each task
    "bert/pretraining", "classification/bilstm", "embedding/pairs", "joint/bilstm-crf",
    "language/lstm", "pairs/classification", "pairs/ranking", "pairs/regression", "parsing/top",
    "parsing/mask-predict", "question/transformer", "regression/ngrams", "similarity/ngrams",
    "summarization/extractive-lstm", "summarization/scitldr", "tagging/bilstm",
    "translation/tatoeba", "trees/bilstm", "trees/rnng",
}  # fmt: skip


@pytest.mark.parametrize(
    "name",
    [
        name if name.removesuffix("/local") in QUICK else pytest.param(name, marks=pytest.mark.slow)
        for name in LOCAL
        if name != "translation/demo/local"
    ],
)
def test_it_trains_is_evaluated_and_answers(name, capsys):
    settings = write_data(name)
    words = [*short(name), "reporters.console=false", "reporters.html=false"]
    if "decoding" in settings["task"]:
        words += ["task.decoding.max_length_a=0", "task.decoding.max_length_b=5"]
    run = textmill.run_experiment(name, "train_and_evaluate", "run", words)
    assert run.result["steps"] == run.result["best"]["step"] == (2 if short(name) else 1)
    values = run.evaluations["valid_data"].values
    selected = [key for key in run.result["best"] if key != "step"]
    assert [values[key] for key in selected] == [run.result["best"][key] for key in selected]
    predictor = textmill.load("run")
    if "columns" in settings["valid_data"]:
        path, rows = settings["valid_data"]["path"], run.evaluations["valid_data"].rows
        assert main(["predict", "run", path, "--json"]) == 0
        found = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
        for row in rows:  # of translations of one source, the first; of vectors how near they are
            assert "similarity" in row or found[row["row"]]["prediction"] == row["prediction"]
        for suffix in (".jsonl", ".csv", ".parquet"):
            assert main(["predict", "run", path, "--output", f"out{suffix}"]) == 0
            written = rows_of(Path(f"out{suffix}"))
            for row, one in zip(found, written, strict=True):
                assert str(one["prediction"]) == str(row["prediction"])
                assert not one["error"]
                answer = row.keys() - {*predictor.columns}
                assert suffix != ".jsonl" or all(one[name] == row[name] for name in answer)
    row = dict.fromkeys(predictor.task.text.input_columns, "wake [MASK] at nine")
    assert predictor.answer_row(predictor(row))
    checked_card(Path("run"))


def test_every_experiment_has_a_tiny_variant_and_that_no_other():
    pretrained = ("/few", "/pretrained", "/extractive")  # no encoder of text is so small
    full = {name for name in set(NAMES) - set(LOCAL) if not name.endswith(pretrained)}
    full.remove("multitask/words")  # of the tasks that a person names
    assert {f"{name}/local" for name in full} == set(LOCAL)
    assert len(full) > 20


@pytest.mark.parametrize("name", LOCAL)
def test_it_is_over_in_seconds(name):
    settings = plan_recipe(name, targets=["trainer"]).plan.settings
    assert settings["trainer"].get("max_steps", 1) <= 150
    full = plan_recipe(name.removesuffix("/local"), targets=["trainer"]).plan.settings
    for data in ("train_data", "valid_data"):
        assert settings[data] == full[data] or settings[data]["type"] == full[data]["type"]
    assert settings["task"]["type"] == full["task"]["type"]
