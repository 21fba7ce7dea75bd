import json

import pytest

from weft.errors import UserError
from weft.interop.hydra.config import ConfigError
from weft.run_folder.folder import RunFolder
from weft.runtime.jsonl_log import read_lines

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
    from weft.errors import RunStoppedError
    from weft.interop.hydra import fit as lightning_fit

    fit, calls = lightning_fit.fit, []

    def stopping(described, *, extend):
        calls.append(described.settings["model"]["lr"])
        if len(calls) == 2:
            raise RunStoppedError(2, "stopped")
        return fit(described, extend=extend)

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
        ("hydra.sweeper.params=3", "wanted values by name, found 3"),
        ("hydra.sweeper.sampler.seed=abc", "wanted a whole number, found 'abc'"),
    ],
)
def test_settings_of_the_sweeper_that_can_be_no_search_are_told_at_once(train, project, word, said):
    with pytest.raises(ConfigError) as error:
        train(*SEARCH, word)
    assert said in str(error.value)
    assert not (project / "runs").exists()


def test_settings_of_the_sweeper_may_name_others(train):
    run = train(*SEARCH, "+trials=1", "hydra.sweeper.n_trials=${trials}")
    assert [*trials(run)] == ["000"]
