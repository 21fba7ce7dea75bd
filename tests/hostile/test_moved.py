"""A run whose folder is renamed or deleted while it trains ends with an error, and is not made."""

import shutil

import pytest

import textmill
from tests.hostile.small_run import small_run, words
from textmill.errors import StorageError
from textmill.training.loop import Trainer


def train_and(harm, run, *, step):
    """Trains into a folder to which something is done after a step; what is said of it."""
    step_of = Trainer.step

    def harmed(self, before):
        now = step_of(self, before)
        if now.steps == step:
            harm(run)
        return now

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(Trainer, "step", harmed)
        with pytest.raises(StorageError) as caught:
            textmill.train("classification/averaging", words(), run_dir=run)
    return str(caught.value)


def renamed(run):
    run.rename(run.with_name("renamed"))


def empty(run):
    for path in run.iterdir():
        shutil.rmtree(path) if path.is_dir() else path.unlink()


@pytest.mark.parametrize(("harm", "step"), [(renamed, 4), (shutil.rmtree, 2)])
def test_a_folder_that_is_gone_while_it_trains_is_not_made_again(tmp_path, harm, step):
    run = tmp_path / "run"
    said = train_and(harm, run, step=step)
    assert f" There is no folder {run}: was it renamed or deleted? " in said
    assert not run.exists()
    if harm is renamed:  # and it goes on where it is now, to the same end
        done = textmill.train(tmp_path / "renamed")
        assert done.result == textmill.train(small_run()).result


@pytest.mark.parametrize("step", [1, pytest.param(4, marks=pytest.mark.slow)])
def test_a_folder_that_is_emptied_while_it_trains_is_no_run_again(tmp_path, step):
    run = tmp_path / "run"
    assert f"There is no {run}/config.yaml any more" in train_and(empty, run, step=step)
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
