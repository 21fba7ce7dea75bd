"""Configs of PyText and Model Garden in place of a recipe: each is told a command that plans."""

import json
import shlex

import pytest

from textmill.cli.main import main
from textmill.config.foreign_recipes import GARDEN, PYTEXT, refuse_foreign
from textmill.errors import UserError
from textmill.recipes.planning import plan_recipe

SOURCE = {
    "train_filename": "a train.tsv", "eval_filename": "dev.tsv", "test_filename": "test.tsv",
}  # fmt: skip
TRAINER = {"TaskTrainer": {"epochs": 7, "optimizer": {"Adam": {"lr": "0.003"}}}}


def pytext(kind, names, *, inside="", source=SOURCE):
    data = {"source": {"TSVDataSource": {**source, "field_names": names}}}
    batcher = {"PoolingBatcher": {"train_batch_size": 5, "eval_batch_size": 9}}
    settings = {"data": {**data, "batcher": batcher}, "trainer": TRAINER, "model": {inside: {}}}
    return {"version": 23, "config": {"task": {kind: settings}}}


def command(tmp_path, content, name="theirs.json"):
    """The words after ``textmill train`` of what a person is told, and all of that."""
    path = tmp_path / name
    path.write_text(json.dumps(content), encoding="utf-8")  # which is YAML, too
    with pytest.raises(UserError) as caught:
        plan_recipe(str(path), targets=["trainer"])
    told = str(caught.value)
    words = shlex.split(told.splitlines()[1])
    assert words[:2] == ["textmill", "train"]
    return words[2:], told


@pytest.mark.parametrize(("kind", "inside", "recipe", "columns"), PYTEXT)
def test_each_task_of_pytext_has_a_command_that_plans(tmp_path, kind, inside, recipe, columns):
    pairs = [each.split(": ") for each in columns.split(", ")]
    names = ["first", *(theirs.split("|")[-1] for _, theirs in pairs)]
    made, told = command(tmp_path, pytext(f"{kind}Task", names, inside=inside))
    assert f"a config of PyText ({kind}Task)" in told
    assert made[0] == recipe.split()[0]
    settings = plan_recipe(made[0], made[1:], targets=["trainer"]).plan.settings
    data = settings["train_data"]
    assert [data["path"], settings["valid_data"]["path"]] == ["a train.tsv", "dev.tsv"]
    assert settings["test_data"]["path"] == "test.tsv"
    assert data["columns"] == {ours: names.index(t.split("|")[-1]) for ours, t in pairs}
    assert data["batch_size"] == 5
    assert settings["optimizer"]["lr"] == 0.003
    assert settings["trainer"]["max_epochs"] == 7
    assert settings["trainer"]["max_steps"] is None


@pytest.mark.parametrize(("name", "recipe"), GARDEN)
def test_each_config_of_model_garden_has_one(tmp_path, name, recipe):
    task = {
        "model": {name: [1]},
        "train_data": {"input_path": "a.tf_record", "global_batch_size": 8},
        "validation_data": {"input_path": "b.tf_record", "global_batch_size": 64},
    }
    rate = {"type": "polynomial", "polynomial": {"initial_learning_rate": 3e-05}}
    trainer = {"train_steps": 120, "optimizer_config": {"learning_rate": rate}}
    content = {"runtime": {"num_gpus": 1}, "task": task, "trainer": trainer}
    made, told = command(tmp_path, content, "params.yaml")
    assert "a config of Model Garden" in told
    assert made[0] == recipe.split()[0]
    settings = plan_recipe(made[0], made[1:], targets=["trainer"]).plan.settings
    assert settings["train_data"]["path"] == "a.tf_record"
    assert settings["train_data"]["batch_size"] == 8
    assert settings["valid_data"]["path"] == "b.tf_record"
    assert settings["optimizer"]["lr"] == 3e-05
    assert settings["trainer"]["max_steps"] == 120
    assert settings["trainer"]["max_epochs"] is None


def test_the_file_that_a_run_of_model_garden_writes(tmp_path):
    path = tmp_path / "params.yaml"
    path.write_text(
        "runtime: {num_gpus: 0}\ntask:\n  model: {num_classes: 2}\n  sizes: !!python/tuple\n"
        "  - 3\n  - 4\n",
        encoding="utf-8",
    )
    with pytest.raises(UserError, match="Model Garden, which textmill does not read"):
        plan_recipe(str(path), targets=["trainer"])


def test_an_old_config_of_pytext(tmp_path):
    data = {
        "train_path": "rows.csv", "columns_to_read": ["doc_label", "text"], "train_batch_size": 4,
    }  # fmt: skip
    task = {"data_handler": data, "optimizer": {"type": "adam", "lr": 0.05}}
    made, _ = command(tmp_path, {"task": {"DocumentClassificationTask_Deprecated": task}})
    assert made == [
        "classification/docnn", "train_data.format=tsv", "train_data.columns={label: 0, text: 1}",
        "train_data.path=rows.csv", "valid_data.path=FILE", "train_data.batch_size=4",
        "optimizer.lr=0.05",
    ]  # fmt: skip
    plan_recipe(made[0], made[1:], targets=["trainer"])


def test_columns_of_other_names_and_those_of_a_header(tmp_path):
    mapping = {"column_mapping": {"utterance": "text", "intent": "label"}}
    content = pytext("IntentSlotTask", ["intent", "slots", "utterance"], source=SOURCE | mapping)
    assert "train_data.columns={label: 0, text: 2, slots: 1}" in command(tmp_path, content)[0]
    made, _ = command(tmp_path, pytext("IntentSlotTask", None))
    assert "train_data.columns={label: label, text: text, slots: slots}" in made
    assert "train_data.header=true" in made
    plan_recipe(made[0], made[1:], targets=["trainer"])


def test_several_tasks_of_pytext(tmp_path):
    tasks = {
        "SST2": pytext("DocumentClassificationTask", ["label", "text"])["config"]["task"],
        "LM": pytext("LMTask", ["text"])["config"]["task"],
    }
    several = {"NewDisjointMultitask": {"trainer": {"epochs": 2}, "tasks": tasks}}
    made, _ = command(tmp_path, {"task": several})
    planned = plan_recipe(made[0], made[1:], targets=["trainer"])
    assert planned.plan.settings["trainer"]["max_epochs"] == 2
    assert {n: p.settings["train_data"]["columns"] for n, p in planned.plan.tasks.items()} == {
        "sst2": {"label": 0, "text": 1},
        "lm": {"text": 0},
    }


def test_a_task_of_someone_s_own_and_files_that_are_neither(tmp_path, monkeypatch, capsys):
    made, told = command(tmp_path, pytext("OurTask", ["text"]))
    assert made[:2] == ["RECIPE", "train_data.path=a train.tsv"]
    assert "textmill list experiments" in told
    for content in ([], {}, {"task": "x"}, {"task": {"type": "word_tagging"}}, {"config": 3}):
        refuse_foreign(tmp_path, content)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "rows.json").write_text('{"text": "good"}', encoding="utf-8")
    assert main(["check", "rows.json"]) == 2
    assert "'rows.json' is a file of data" in capsys.readouterr().err
    (tmp_path / "ours.yaml").write_text("task: {type: word_tagging}\n", encoding="utf-8")
    assert main(["check", "ours.yaml"]) == 2
    assert "names no recipe" in capsys.readouterr().err
