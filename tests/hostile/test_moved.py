"""A run whose folder is renamed or deleted while it trains ends with an error, and is not made."""

import shutil

import pytest

import textmill
from tests.hostile.small_run import small_run, words
from textmill.errors import StorageError
from textmill.training.loop import Trainer


@pytest.mark.parametrize(("how", "step"), [("renamed", 3), ("deleted", 1)])
def test_a_folder_that_is_gone_while_it_trains_is_not_made_again(tmp_path, monkeypatch, how, step):
    run, step_of = tmp_path / "run", Trainer.step

    def gone(self, before):
        now = step_of(self, before)
        if before.steps == step:
            if how == "renamed":
                run.rename(tmp_path / "renamed")
            else:
                shutil.rmtree(run)
        return now

    with monkeypatch.context() as patched:
        patched.setattr(Trainer, "step", gone)
        with pytest.raises(StorageError) as caught:
            textmill.train("classification/averaging", words(), run_dir=run)
    assert f" There is no folder {run}: was it renamed or deleted? " in str(caught.value)
    assert not run.exists()
    if how == "renamed":  # and it goes on where it is now, to the same end
        done = textmill.train(tmp_path / "renamed")
        assert done.result == textmill.train(small_run()).result


def empty(run):
    for path in run.iterdir():
        shutil.rmtree(path) if path.is_dir() else path.unlink()


@pytest.mark.parametrize("step", [1, pytest.param(4, marks=pytest.mark.slow)])
def test_a_folder_that_is_emptied_while_it_trains_is_no_run_again(tmp_path, monkeypatch, step):
    run, step_of = tmp_path / "run", Trainer.step

    def emptied(self, before):
        now = step_of(self, before)
        if now.steps == step:
            empty(run)
        return now

    with monkeypatch.context() as patched:
        patched.setattr(Trainer, "step", emptied)
        with pytest.raises(StorageError, match=f"There is no {run}/config.yaml any more"):
            textmill.train("classification/averaging", words(), run_dir=run)
    assert not (run / "run.json").exists()
    assert not (run / "checkpoints").exists()
    done = textmill.train("classification/averaging", words(), run_dir=run)
    assert done.result == textmill.train(small_run()).result


def test_a_folder_that_is_emptied_at_the_last_moment_is_not_called_finished(tmp_path, monkeypatch):
    run, fit = tmp_path / "run", Trainer.fit

    def emptied(self):
        fit(self)
        empty(run)

    monkeypatch.setattr(Trainer, "fit", emptied)
    with pytest.raises(StorageError, match=f"There is no {run}/run.json any more"):
        textmill.train("classification/averaging", words(), run_dir=run)
    assert not (run / "run.json").exists()
