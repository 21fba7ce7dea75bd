import json

import pytest

from textmill.errors import UserError
from textmill.interop.hydra.config import ConfigError
from textmill.run_folder.folder import RunFolder
from textmill.runtime.jsonl_log import read_lines

SEARCH = ["hparams_search=optuna", "trainer.max_epochs=1"]


def trials(run):
    """The settings of each run of a search, by its folder."""
    found = {}
    for path in sorted(run.folder.parent.glob("*/run.json")):
        found[path.parent.name] = json.loads(path.read_text())["words"][-2:]
    return found


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


def test_a_trial_that_was_interrupted_goes_on(train, project, monkeypatch):
    from textmill.errors import RunStoppedError
    from textmill.interop.hydra import fit as lightning_fit

    fit, calls = lightning_fit.fit, []

    def stopping(described, *, extend, begins):
        calls.append(described.settings["model"]["lr"])
        if len(calls) == 2:
            raise RunStoppedError(2, "stopped")
        return fit(described, extend=extend, begins=begins)

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


def test_what_cannot_be_searched_is_said(train):
    with pytest.raises(UserError, match="has no end of values"):
        train("model.lr=interval(0.1,0.2)", multirun=True)
    with pytest.raises(ConfigError, match=r"model\.lr: .* has no value"):
        train("model.lr=range(5,1)", multirun=True)
    with pytest.raises(ConfigError, match="nothing is searched"):
        train(multirun=True)
    with pytest.raises(UserError, match=r"has logged no such value\. Did you mean 'valid/loss'"):
        train(*SEARCH, "optimized_metric=val/lss")
    with pytest.raises(UserError, match="optimized_metric: wanted the value"):
        train(*SEARCH, "optimized_metric=null")


@pytest.mark.parametrize(
    ("word", "said"),
    [
        ("hydra.sweeper.n_trials=abc", "wanted a number of runs from 1, found 'abc'"),
        ("hydra.sweeper.n_trials=0", "wanted a number of runs from 1, found 0"),
        ("hydra.sweeper.direction=up", "wanted minimize or maximize, found 'up'"),
        ("hydra.sweeper.n_trials=${trails}", "there is no 'trails'"),
        ("+hydra.sweeper.params.seed={type: int, low: 1}", "of the type int needs high"),
        ("+hydra.sweeper.params.seed={type: foo, low: 1, high: 2}", "found 'foo'"),
        (
            "+hydra.sweeper.params.seed={type: categorical, choices: []}",
            "categorical needs choices",
        ),
        ("hydra.sweeper.params=3", "wanted values by name, found 3"),
        ("hydra.sweeper.storage='sqlite:///a.db'", "found 'sqlite:///a.db': what a study knows is"),
        ("hydra.sweeper.custom_search_space=src.x.y", "found 'src.x.y': a space that code makes"),
        ("hydra.sweeper.max_failure_rate=2", "wanted a share of the runs from 0 to 1, found 2"),
        ("+hydra.sweeper.n_trails=2", "has no 'n_trails'. Did you mean 'n_trials'?"),
        ("hydra.sweeper.sampler.seed=abc", "wanted a whole number, found 'abc'"),
    ],
)
def test_settings_of_the_sweeper_that_can_be_no_search_are_told_at_once(train, project, word, said):
    with pytest.raises(ConfigError) as error:
        train(*SEARCH, word)
    assert said in str(error.value)
    assert not (project / "runs").exists()


def test_a_study_has_its_name_and_a_place_of_its_own_and_jobs_are_told(train, caplog):
    caplog.set_level("INFO", "textmill")
    first = train(*SEARCH, "hydra.sweeper.n_trials=1")
    assert "n_jobs" not in caplog.text
    named = train(
        *SEARCH,
        "hydra.sweeper.n_trials=1",
        "hydra.sweeper.study_name=mine",
        "hydra.sweeper.n_jobs=4",
    )
    assert "hydra.sweeper.n_jobs=4: of no effect here" in caplog.text
    assert named.folder.parent != first.folder.parent
    for run, name in ((first, "hydra"), (named, "mine")):
        journal = run.folder.parent / "trials.jsonl"
        assert f'"study_name":"{name}"' in journal.read_text()


FAILING = """
from src.models.toy_module import ToyModule

class Fails(ToyModule):
    def on_fit_start(self):
        left = open("failures").read()
        open("failures", "w").write(left[1:])
        if left[:1] == "f":
            raise ValueError("by chance")
"""


def test_trials_may_fail_as_often_as_is_allowed(train, project, caplog):
    (project / "src/models/failing.py").write_text(FAILING)
    words = [*SEARCH, "model._target_=src.models.failing.Fails"]
    (project / "failures").write_text(".f.")
    with pytest.raises(ValueError, match="by chance"):
        train(*words)
    run = train(*words)  # the one that failed is made again
    assert list(trials(run)) == ["000", "001", "002"]
    (project / "failures").write_text("f..")
    words.append("hydra.sweeper.max_failure_rate=0.4")
    run = train(*words, "hydra.sweeper.study_name=other")
    assert run.folder.name in ("001", "002")
    assert "Trial 0 failed: ValueError: by chance" in caplog.text
    (project / "failures").write_text("ff")
    words[-1] = "hydra.sweeper.max_failure_rate=1"
    with pytest.raises(UserError, match="each of the 2 trials failed"):
        train(*words, "hydra.sweeper.study_name=third", "hydra.sweeper.n_trials=2")


def test_a_name_that_is_searched_and_not_there_leaves_nothing(train, project):
    config = project / "configs/hparams_search/optuna.yaml"
    written = config.read_text()
    config.write_text(written.replace("model.lr:", "model.lrr:"))
    with pytest.raises(ConfigError, match=r"model\.lrr'\. .* Did you mean 'model\.lr'"):
        train(*SEARCH)
    config.write_text(written + "      model.lrr: {type: categorical, choices: [1, 2]}\n")
    with pytest.raises(ConfigError, match=r"Did you mean 'model\.lr'"):
        train(*SEARCH)
    with pytest.raises(ConfigError, match=r"model\.lrr=1: .* Did you mean 'model\.lr'"):
        train("model.lrr=1,2", multirun=True)
    assert not [*project.glob("runs/toy/*")]


def test_a_sampler_that_is_none_leaves_nothing(train, project):
    with pytest.raises(UserError, match="has no 'TPESamplr'"):
        train(*SEARCH, "hydra.sweeper.sampler._target_=optuna.samplers.TPESamplr")
    assert not [*project.glob("runs/toy/*")]


def test_settings_of_the_sweeper_may_name_others(train):
    run = train(*SEARCH, "+trials=1", "hydra.sweeper.n_trials=${trials}")
    assert [*trials(run)] == ["000"]
