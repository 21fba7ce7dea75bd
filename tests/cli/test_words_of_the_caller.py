"""What an error tells a person to do: in the words of the command line, or of Python."""

import pytest

import textmill
from textmill.cli.main import main
from textmill.errors import TextmillError, worded

EXPERIMENT = "classification/averaging/local"


def refused(call, *arguments, **more) -> str:
    with pytest.raises(TextmillError) as caught:
        call(*arguments, **more)
    return str(caught.value)


def printed(capsys, *words) -> str:
    assert main(words) == 2
    return capsys.readouterr().err.partition("error: ")[2].removesuffix("\n")


@pytest.fixture
def trained(tmp_path, monkeypatch):
    """The words of a run that is finished, in the folder ``run``."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "rows.tsv").write_text("a\tone two\nb\tthree four\n" * 4)
    words = ["train_data.path=rows.tsv", "valid_data=null", "trainer.max_steps=1"]
    textmill.train(EXPERIMENT, words, run_dir="run")
    return words


def test_a_setting_is_said_to_come_from_where_it_was_given(capsys, trained):
    said = "train_data.batch_size: wanted int, found 'x'."
    head = "1 problem in the recipe; nothing was run.\n  "
    word = "train_data.batch_size=x"
    as_words = refused(textmill.train, EXPERIMENT, [word])
    assert as_words == f"{head}overrides: {word}: {said}"
    as_dict = refused(textmill.train, EXPERIMENT, {"train_data": {"batch_size": "x"}})
    assert as_dict == f'{head}overrides: train_data.batch_size="x": {said}'
    assert printed(capsys, "train", EXPERIMENT, word) == f"{head}command line: {word}: {said}"


def test_data_that_changed(capsys, trained):
    with open("rows.tsv", "a") as file:
        file.write("a\tfive\n")
    said = (
        "train_data changed since run was finished: the files have other content. With this it "
        "is another run: the same {} trains it beside the old one. The result of the old one: {}"
    )
    called = refused(textmill.train, EXPERIMENT, trained, run_dir="run")
    assert called == said.format("call with again=True", "textmill.train('run')")
    typed = printed(capsys, "train", EXPERIMENT, *trained, "--run-dir", "run")
    assert typed == said.format("command with --again", "textmill train run")


def test_a_module_that_is_not_imported(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    said = "One of your own is known once the module that registers it is{}."
    assert refused(textmill.train, "my/own").endswith(said.format(" imported"))
    assert printed(capsys, "train", "my/own").endswith(said.format(": --include MODULE"))


def test_names_of_other_frameworks(capsys, trained):
    called = refused(textmill.train, EXPERIMENT, ["accelerator=gpu"])
    assert "In textmill it is the argument device='cuda'." in called
    typed = printed(capsys, "train", EXPERIMENT, "output_dir=out")
    assert "In textmill it is the option --run-dir." in typed


def test_a_command_that_ends_leaves_pythons_words(capsys):
    assert main(["list", "optimizers"]) == 0
    capsys.readouterr()
    assert worded("--again", "again=True") == "again=True"
