"""A run whose folder is renamed or deleted while it trains ends with an error, and is not made."""

import shutil

import pytest

import textmill
from tests.hostile.small_run import small_run, words
from textmill.errors import StorageError
from textmill.training.loop import Trainer


@pytest.mark.parametrize("how", ["renamed", "deleted"])
@pytest.mark.parametrize("step", [1, 3])
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
