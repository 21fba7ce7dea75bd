"""What a person asks of labels of the shipped experiments: weights, several a row, none of one."""

import logging
import re

import pytest

import textmill
from textmill.cli.main import main
from textmill.preflight.check import check

CLASSIFY, TAG = "classification/averaging/local", "tagging/bilstm/local"


@pytest.fixture
def data(tmp_path):
    """Twelve rows, a label and a text each, and the words of settings that read them."""

    def write(rows, *words):
        for name in ("train", "valid"):
            text = "".join("\t".join(row) + "\n" for row in rows)
            (tmp_path / f"{name}.tsv").write_text(text)
        paths = ["train_data.path=train.tsv", "valid_data.path=valid.tsv", "trainer.max_steps=4"]
        return [*paths, *words]

    return write


HAM = [(("ham", "see you at noon"), ("spam", "win a prize now"))[i % 2] for i in range(12)]


@pytest.mark.parametrize(
    ("recipe", "rows", "words", "loss"),
    [
        (CLASSIFY, HAM, ["task.loss.weights={spam: 5}"], "CrossEntropyLoss"),
        (CLASSIFY, HAM, ["task.loss.label_smoothing=0.1"], "CrossEntropyLoss"),
        (
            CLASSIFY,
            [("a b", "see you"), ("a", "win")] * 6,
            ["task.loss.weights={b: 5}", "labels.multiple=true"],
            "BinaryCrossEntropy",
        ),
        (
            TAG,
            [("see Ann", "O B")] * 12,
            ["task.loss.weights={O: 0.2}", "train_data.columns=[words, tags]"],
            "CrossEntropyLoss",
        ),
    ],
)
def test_a_setting_of_the_loss_is_one_of_the_loss_that_the_recipe_has(
    data, recipe, rows, words, loss
):
    words = data(rows, *words)
    assert check(recipe, words, device="cpu", say=lambda _: None).problems == []
    run = textmill.train(recipe, words, run_dir="run", device="cpu")
    task = textmill.load(run.folder, device="cpu").task
    assert type(getattr(task, "head", task).criterion).__name__ == loss
    assert "type: auto" in (run.folder / "config.yaml").read_text()


def test_an_evaluation_is_a_table_of_values_and_one_of_labels(data, capsys):
    words = data(HAM, "labels.names=[ham, spam, nobody]")
    assert main(["train", CLASSIFY, *words, "--run-dir", "run"]) == 0
    assert main(["evaluate", "run"]) == 0
    said = capsys.readouterr().out.splitlines()
    (accuracy,) = {line for line in said if line.startswith("accuracy ")}
    assert re.fullmatch(r"accuracy +[0-9.]+ % +higher", accuracy)
    at = said.index("labels of valid_data")
    assert said[at - 1] == ""
    assert re.fullmatch(r"label +precision +recall +f1 +support", said[at + 1])
    assert re.fullmatch(r"ham +[0-9.]+ % +[0-9.]+ % +[0-9.]+ % +6", said[at + 2])
    assert re.fullmatch(r"nobody +- +- +- +0", said[at + 4])
    assert not any(line.startswith("label/") for line in said)
    assert main(["runs", "list", "run"]) == 0
    assert re.search(r"accuracy [0-9.]+ %", capsys.readouterr().out)


NOBODY = (
    "1 of the 3 labels in column 'label' has no example in train_data: 'nobody'. What has none is "
    "hardly ever an answer. Add rows of it, or leave it out of the declared labels."
)
ONLY = (
    "Every label in column 'label' of train_data is 'ham': a model of it answers nothing else. Add "
    "rows of other labels, or look for the labels in another column."
)


@pytest.mark.parametrize(
    ("rows", "words", "notes"),
    [
        (HAM, [], []),
        (HAM, ["labels.names=[ham, spam, nobody]"], [NOBODY]),
        (HAM[::2], [], [ONLY]),
        (HAM[::2], ["labels.names=[ham, spam]"], [ONLY]),
        ([("a", "see you")] * 6, ["labels.multiple=true"], []),  # others may have none
    ],
)
def test_a_label_without_an_example_is_said_by_check_and_at_the_start(
    data, rows, words, notes, caplog
):
    words = data(rows, *words)
    found = check(CLASSIFY, words, device="cpu", say=lambda _: None)
    assert found.problems == []
    assert [note for note in found.notes if "column 'label'" in note] == notes
    caplog.clear()
    caplog.set_level(logging.INFO, logger="textmill")
    textmill.train(CLASSIFY, words, run_dir="run", device="cpu")
    said = [(record.levelname, record.getMessage()) for record in caplog.records]
    warnings = [line for level, line in said if level == "WARNING"]
    assert [line for line in warnings if "are in train_data" not in line] == notes
