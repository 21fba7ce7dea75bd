"""What textmill's other commands do with a run that Lightning trained."""

import pytest

import textmill
from textmill.cli.main import main
from textmill.errors import UserError
from textmill.launch.watch import Watch
from textmill.launch.worth import Worth


@pytest.fixture
def run(train):
    return train("callbacks=default", "trainer.max_epochs=1").folder


def test_it_is_listed_verified_compared_reported_on_and_pruned(run, capsys):
    assert main(["runs", "list"]) == 0
    listed = capsys.readouterr().out
    assert "toy" in listed
    assert "finished" in listed
    for command in (["verify"], ["compare", str(run)], ["report"]):
        assert main(["runs", command[0], *command[1:], str(run)]) == 0, capsys.readouterr()
    assert main(["runs", "prune", "--dry-run"]) == 0
    assert "Nothing to delete" in capsys.readouterr().out
    page = (run / "report.html").read_text()
    assert "src.models.toy_module.ToyModule" in page
    assert "not set" not in page  # no default of textmill's own trainer is compared with


def test_what_would_load_its_model_says_whose_it_is(run, capsys):
    for call in (textmill.load, textmill.evaluate):
        with pytest.raises(UserError, match="is a run of Lightning's"):
            call(run)
    for words in (["evaluate", run], ["serve", run], ["help", run], ["train", run, "seed=2"]):
        assert main([*map(str, words)]) == 2
        assert "safetensors.torch.load_file(" in capsys.readouterr().err


def test_a_watch_leaves_it_alone(run):
    assert Watch(run.parent, Worth([]), launcher=None, timeout=0).runs() == []


def test_only_a_test_is_a_run_too(train, run):
    """As the template's evaluation is: a checkpoint, and no fit."""
    checkpoint = run / "checkpoints/epoch_000.ckpt"
    tested = train("+train=false", f"+ckpt_path={checkpoint}")
    assert (
        tested.result["test"] == train("callbacks=default", "trainer.max_epochs=1").result["test"]
    )
    assert "best" not in tested.result


def test_a_checkpoint_of_lightnings_own_is_a_pickle_and_is_refused(train, project):
    (project / "old.ckpt").write_bytes(b"\x80\x02.")
    with pytest.raises(Exception, match="a pickle, which can execute anything"):
        train("trainer.resume_from_checkpoint=old.ckpt")


def test_of_several_processes_one_prints_the_result(project, capsys, monkeypatch):
    words = ["train", "--hydra", "configs/", "train.yaml", "trainer.max_epochs=1"]
    assert main(words) == 0
    assert "run: runs/toy/" in capsys.readouterr().out
    monkeypatch.setattr("textmill.interop.hydra.fit.is_main", lambda: False)
    assert main(words) == 0
    assert capsys.readouterr().out == ""
