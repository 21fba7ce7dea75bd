"""Several tasks by one command: planned, checked, trained, gone on with; and each answers alone."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from safetensors.numpy import load_file

import textmill
from textmill.errors import PlanError, UserError
from textmill.interop.lightning.prepared import prepare
from textmill.preflight.check import check
from textmill.preflight.ingredient_probe import try_ingredient
from textmill.recipes.planning import plan_recipe
from textmill.runtime.jsonl_log import read_lines

ROWS = 24
WORDS = [
    "tags.recipe=tagging/bilstm", "tags.train_data.path=tags.conll",
    "tags.valid_data.path=tags.conll", "kinds.recipe=classification/bilstm",
    "kinds.train_data.path=kinds.tsv", "kinds.valid_data.path=kinds.tsv", "more.like=kinds",
    "more.valid_data.path=more.tsv", "ngrams=null", "characters=null", "affixes=null",
    "model.embedding.dim=8", "model.encoder.hidden_dim=8", "trainer.max_steps=30",
    "trainer.save_every=5 steps", "trainer.evaluate_every=10 steps", "trainer.ema=null",
    "optimizer.lr=0.02", "lr_scheduler.warmup_steps=5",
]  # fmt: skip


@pytest.fixture
def data(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    tagged = "the\tD\ncat\tN\nruns\tV\n\na\tD\ndog\tN\neats\tV\n\n" * ROWS
    Path("tags.conll").write_text(tagged)
    Path("kinds.tsv").write_text("pet\tthe cat runs\nact\teats and runs\n" * ROWS)
    Path("more.tsv").write_text("pet\ta cat eats\nact\truns a bit\n" * 4)
    return tmp_path


@pytest.fixture
def run(data):
    return textmill.train("multitask/words", WORDS, run_dir="run")


def test_each_task_answers_from_a_folder_of_its_own(run):
    assert run.result["best"]["mean"] > 0.9
    lines = read_lines(Path("run/metrics.jsonl"))
    valid = [line for line in lines if line["split"] == "valid" and line["step"] == 30]
    assert valid[-1]["tags/token_accuracy"] == valid[-1]["kinds/accuracy"] == 1.0
    assert valid[-1]["more/accuracy"] > 0.5
    assert {line["source"] for line in answered()} == {"tags", "kinds", "more"}
    assert textmill.load("run/kinds")("the cat runs").label == "pet"
    assert str(textmill.load("run/tags")("the dog runs")) == "D N V"
    found = textmill.evaluate("run/tags")["valid_data"].values
    assert found["token_accuracy"] == valid[-1]["tags/token_accuracy"]
    with pytest.raises(UserError, match="Name the folder of one: run/kinds, run/tags"):
        textmill.load("run")
    with pytest.raises(UserError, match=r"goes on with the others: textmill\.train"):
        textmill.train("run/tags")


def answered():
    (path,) = Path("run/predictions").glob("valid*00000030*")
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_what_tasks_share_is_the_same_in_each_folder(run):
    (tags,) = Path("run/tags").rglob("model.safetensors")
    (kinds,) = Path("run/kinds").rglob("model.safetensors")
    one, other = load_file(tags), load_file(kinds)
    shared = [name for name in one if name.startswith(("encoder.", "embedding."))]
    assert shared
    for name in shared:
        assert (one[name] == other[f"text.{name}"]).all()


def test_a_killed_run_goes_on_to_the_same_weights(run):
    words = ["--run-dir", "killed", *WORDS]
    code = (
        "import os, sys\nfrom textmill.training.checkpoints import RunCheckpoints as R\n"
        "record = R.record\n"
        "def die(self, parts, *, best):\n"
        "    found = record(self, parts, best=best)\n"
        "    if self.clock.now.steps == 15: os._exit(9)\n    return found\n"
        "R.record = die\nfrom textmill.cli.main import main\nmain(sys.argv[1:])\n"
    )
    command = [sys.executable, "-c", code, "train", "multitask/words", *words]
    assert subprocess.run(command, env=os.environ, check=False).returncode == 9
    assert textmill.train("killed").result == run.result
    for name in ("tags", "kinds"):
        (one,), (other,) = (
            Path(each, name).rglob("model.safetensors") for each in ("run", "killed")
        )
        assert one.read_bytes() == other.read_bytes()


def test_the_same_command_finds_the_run_and_other_data_is_another(run, caplog):
    again = textmill.train("multitask/words", WORDS, run_dir="run")
    assert again.result == run.result
    Path("kinds.tsv").write_text("pet\tthe cat runs\nact\teats and runs\n" * (ROWS + 1))
    with pytest.raises(UserError, match=r"kinds\.train_data and kinds\.valid_data changed"):
        textmill.train("multitask/words", WORDS, run_dir="run")


def test_a_task_on_other_data_is_measured_on_all_of_its_rows(data):
    words = [w for w in WORDS if "kinds.valid" not in w] + ["kinds.train_data.holdout=0.25"]
    settings = plan_recipe("multitask/words", words, targets=["trainer"]).plan.settings
    assert settings["kinds"]["valid_data"]["holdout"] == 0.25
    assert settings["more"]["valid_data"]["holdout"] == 0
    assert settings["more"]["valid_data"]["path"] == "more.tsv"


def test_a_run_killed_while_its_tasks_are_written_goes_on(data, monkeypatch):
    def dies(*_):
        raise RuntimeError("power cut")

    words = [*WORDS, "trainer.max_steps=4"]
    with monkeypatch.context() as patch:
        patch.setattr("textmill.runs.task_folders.text_parts", dies)
        with pytest.raises(RuntimeError, match="power cut"):
            textmill.train("multitask/words", words, run_dir="run")
    textmill.train("multitask/words", words, run_dir="run")
    assert textmill.load("run/tags")("the cat runs")


def test_exports_are_written_for_each_task(data):
    words = [*WORDS, "trainer.export=[onnx]", "trainer.max_steps=4"]
    run = textmill.train("multitask/words", words, run_dir="run")
    assert {*run.result["exports"]} == {"tags", "kinds"}
    export = textmill.exported.load("run/kinds/export/onnx")
    assert export("the cat runs").label == textmill.load("run/kinds")("the cat runs").label


def test_it_is_checked_before_it_runs(data):
    said = []
    found = check("multitask/words", WORDS, say=said.append)
    assert not found.problems
    assert any(line.startswith("kinds: loss and backward") for line in said)
    Path("kinds.tsv").write_text("only one column\n")
    found = check("multitask/words", WORDS)
    assert any(problem.startswith("kinds: train_data") for problem in found.problems)


def test_settings_at_the_top_are_of_each_task_and_weaker_than_its_own(data):
    words = [*WORDS, "train_data.batch_size=4", "tags.train_data.batch_size=2"]
    plan = plan_recipe("multitask/words", words, targets=["trainer"]).plan
    settings = plan.settings
    assert settings["kinds"]["train_data"]["batch_size"] == 4
    assert settings["tags"]["train_data"]["batch_size"] == 2
    assert "tokenizer" not in settings["tags"]
    assert [*plan.tasks["more"].order] == ["valid_data"]
    assert not [note for note in plan.notes if "not used here" in note]
    assert settings["tokenizer"]["type"] == "fitted_words"


def test_an_ingredient_of_a_task_is_tried_by_its_name(data):
    said = []
    try_ingredient("multitask/words", "kinds.train_data", WORDS, device="cpu", say=said.append)
    assert any(line.startswith("kinds.train_data: 48 rows") for line in said)
    assert any(line.startswith("kinds.train_data, one epoch: ") for line in said)
    try_ingredient("multitask/words", "kinds.model", WORDS, device="cpu", say=said.append)
    for name in ("train_data", "kinds.modl", "kind.model"):
        with pytest.raises(UserError, match=f"no ingredient '{name}'.*as tags.train_data; of the"):
            try_ingredient("multitask/words", name, WORDS, device="cpu", say=said.append)
    Path("tags.conll").unlink()
    with pytest.raises(UserError, match=r"tags\.conll") as found:
        try_ingredient("multitask/words", "module", WORDS, device="cpu", say=said.append)
    assert found.value.__notes__[-1] == "of the task 'tags'"


def test_who_wants_one_run_is_told_before_it_trains(data):
    for call in (textmill.run_experiment, textmill.train_model):
        with pytest.raises(UserError, match="makes several runs, by its tasks or stages"):
            call("multitask/words", run_dir="run", overrides=WORDS)
    with pytest.raises(UserError, match=r"several tasks.*Train it with textmill\.train"):
        prepare("multitask/words", WORDS)
    assert not Path("run").exists()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([], "trains several tasks, and none is named"),
        (["kinds.recipe=classification/bi"], "no recipe is called 'classification/bi'. Did you"),
        (["more.like=kind"], "more.like is 'kind', which has no recipe of its own: tags, kinds."),
        (["kinds.model.depth=2"], r": kinds\.model\.depth=2: kinds: model has no setting 'depth'"),
        (["export.recipe=tagging/bilstm"], "a task cannot be called export: a run folder has"),
        (["kinds.recipe=multitask/words"], "'multitask/words' is of several tasks itself"),
    ],
)
def test_what_is_wrong_is_said_before_anything_runs(data, words, said):
    words = [*(WORDS if words else ()), *words]
    with pytest.raises((PlanError, UserError), match=said):
        textmill.train("multitask/words", words, run_dir="run")
