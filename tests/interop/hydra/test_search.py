import json
import re

import pytest

from textmill.errors import UserError
from textmill.run_folder.folder import RunFolder
from textmill.runtime.jsonl_log import read_lines

SEARCH = ["hparams_search=optuna", "trainer.max_epochs=1"]


def trials(run):
    """The settings of each run of a search, by its folder."""
    paths = sorted(run.folder.parent.glob("*/run.json"))
    return {path.parent.name: json.loads(path.read_text())["words"][-2:] for path in paths}


def last_loss(folder):
    valid = [line for line in read_lines(folder / "metrics.jsonl") if line["split"] == "valid"]
    return valid[-1]["loss"]


def test_optuna_proposes_what_the_template_asks_for_and_goes_on(train, project):
    run = train(*SEARCH)
    found = trials(run)
    assert list(found) == ["000", "001", "002"]
    for lr, hidden in found.values():
        assert 0.0001 <= float(lr.removeprefix("model.lr=")) <= 0.1
        assert hidden in ("model.model.hidden=4", "model.model.hidden=8")
    assert len({lr for lr, _ in found.values()}) == 3
    losses = {path: last_loss(path) for path in run.folder.parent.glob("0*")}
    assert losses[run.folder] == min(losses.values())
    more = train(*SEARCH, "hydra.sweeper.n_trials=4")  # the same search, longer
    after = trials(more)
    assert {**after, **found} == after
    assert len(after) == 4
    text = (run.folder.parent / "trials.jsonl").read_text()
    assert all(json.loads(line) for line in text.splitlines())


@pytest.mark.slow
def test_a_trial_that_was_interrupted_goes_on(train, project, monkeypatch):
    from textmill.errors import RunStoppedError
    from textmill.interop.hydra import fit as lightning_fit

    fit, calls = lightning_fit.fit, []

    def stopping(run, folder, settings, *, extended, begins):
        calls.append(settings["model"]["lr"])
        if len(calls) == 2:
            raise RunStoppedError(2, "stopped")
        return fit(run, folder, settings, extended=extended, begins=begins)

    monkeypatch.setattr(lightning_fit, "fit", stopping)
    with pytest.raises(RunStoppedError):
        train(*SEARCH)
    run = train(*SEARCH)
    assert len(calls) == 4
    assert calls[1] == calls[2]
    assert RunFolder(run.folder).finished


def test_each_combination_is_a_run(train, capsys):
    words = ["model.lr=0.1,0.2", "model.model.hidden=4,8", "trainer.max_epochs=1"]
    with pytest.raises(UserError, match=r"model.lr model.model.hidden: several values"):
        train(*words)
    run = train(*words, multirun=True)
    assert trials(run) == {
        f"{n:03d}": [f"model.lr={lr}", f"model.model.hidden={hidden}"]
        for n, (lr, hidden) in enumerate([(0.1, 4), (0.1, 8), (0.2, 4), (0.2, 8)])
    }


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["model.lr=interval(0.1,0.2)"], "has no end of values"),
        ([], "nothing is searched"),
        pytest.param(
            [*SEARCH, "optimized_metric=null"],
            "optimized_metric: wanted the value",
            marks=pytest.mark.slow,
        ),
        pytest.param(
            [*SEARCH, "hydra.sweeper.n_trials=abc"], "n_trials=abc", marks=pytest.mark.slow
        ),
        pytest.param([*SEARCH, "hydra.sweeper.direction=up"], "up", marks=pytest.mark.slow),
        ([*SEARCH, "hydra.sweeper.sampler._target_=optuna.samplers.TPESamplr"], "TPESamplr"),
        ([*SEARCH, "+hydra.sweeper.params.model.lrr='choice(1,2)'"], "lrr"),
    ],
)
def test_a_search_that_cannot_be_leaves_nothing(train, project, words, said):
    with pytest.raises(UserError, match=re.escape(said)):
        train(*words, multirun=True)
    assert not [*project.glob("runs/toy/*")]


def test_a_value_that_was_not_logged_is_named(train):
    with pytest.raises(UserError, match=r"has logged no such value\. Did you mean 'valid/loss'"):
        train(*SEARCH, "optimized_metric=val/lss")


@pytest.mark.slow
def test_a_search_by_a_grid_tries_each_combination_once(train):
    grid = ["hydra.sweeper.sampler._target_=optuna.samplers.GridSampler"]
    grid += ["~hydra.sweeper.sampler.n_startup_trials", "hydra.sweeper.n_trials=9"]
    grid += ["hydra.sweeper.params={model.lr: 'choice(0.1,0.2)'}"]
    found = trials(train(*SEARCH, *grid))
    assert len({tuple(words) for words in found.values()}) == len(found) == 4
    assert trials(train(*SEARCH, *grid)) == found  # all were tried: nothing is tried again


@pytest.mark.slow
def test_settings_of_the_sweeper_name_others_and_a_study_has_a_place_of_its_own(train, caplog):
    words = [*SEARCH, "+trials=1", "hydra.sweeper.n_trials=${trials}"]
    first, named = train(*words), train(*words, "hydra.sweeper.study_name=mine")
    assert [*trials(first)] == ["000"]
    assert named.folder.parent != first.folder.parent


FAILING = """
from src.models.toy_module import ToyModule

class Fails(ToyModule):
    def on_fit_start(self):
        left = open("failures").read()
        open("failures", "w").write(left[1:])
        if left[:1] == "f":
            raise ValueError("by chance")
"""


@pytest.mark.slow
def test_a_trial_that_failed_is_made_again(train, project):
    (project / "src/models/failing.py").write_text(FAILING)
    words = [*SEARCH, "model._target_=src.models.failing.Fails"]
    (project / "failures").write_text(".f.")
    with pytest.raises(ValueError, match="by chance"):
        train(*words)
    run = train(*words)  # the one that failed is made again
    assert list(trials(run)) == ["000", "001", "002"]
