"""Averages of the weights: their formulas, and in runs that are evaluated, stopped and resumed."""

import copy
import signal

import pytest
import torch
from torch import nn
from torch.optim.swa_utils import AveragedModel

from tests.training.bench import (
    KillAt,
    differences,
    killed_and_resumed,
    metrics_of,
    outcome,
    prove,
)  # fmt: skip
from textmill.checkpoint import Checkpoints
from textmill.checkpoint.parts import check_fit
from textmill.errors import RunStoppedError, UserError
from textmill.tasks.evaluation import evaluate
from textmill.training import Callback, Every, Trainer
from textmill.training.progress import Progress
from textmill.training.weights.average import Weights


def moved(module, seed):
    """The module with other weights, as after a step."""
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in module.parameters():
            if parameter.requires_grad:
                parameter.copy_(torch.randn(parameter.shape, generator=generator))
    return module


def begun(module, *, ema):
    """The average as a run begins it."""
    weights = Weights(module, ema=ema)
    weights.begin()
    return weights


def module_with_all():
    """A frozen parameter, a tied one, a buffer that moves, and some that are trained."""
    module = nn.ModuleDict({"a": nn.Linear(3, 3), "norm": nn.BatchNorm1d(3), "b": nn.Linear(3, 3)})
    module["b"].weight = module["a"].weight
    module["a"].bias.requires_grad_(False)
    return module


def test_only_what_is_trained_is_averaged():
    module = module_with_all()
    weights = begun(module, ema=0.5)
    for step in (1, 2):
        moved(module, step)
        module["norm"].running_mean += 1
        weights.update(Progress(step - 1), Progress(step))
    state = weights.state_dict()
    assert check_fit(module, state) == []
    own = module.state_dict()
    same = {key for key in own if torch.equal(own[key], state[key])}
    assert same == {"a.bias", "norm.running_mean", "norm.running_var", "norm.num_batches_tracked"}
    assert state["a.weight"] is not own["a.weight"]
    assert torch.equal(state["a.weight"], state["b.weight"])
    assert not any(value.requires_grad for value in state.values())


@pytest.mark.parametrize("fails", [False, True])
def test_the_weights_come_back_bitwise(fails):
    module = module_with_all()
    weights = begun(module, ema=0.5)
    for step in (1, 2):
        weights.update(Progress(step - 1), Progress(step))
        moved(module, step)
    before, average = copy.deepcopy(module.state_dict()), weights.state_dict()
    try:
        with weights.averaged():
            assert differences(dict(module.state_dict()), average) == []
            if fails:
                raise KeyboardInterrupt
    except KeyboardInterrupt:
        pass
    assert differences(dict(module.state_dict()), dict(before)) == []
    weights.finish()
    assert differences(dict(module.state_dict()), average) == []


class Seen(Callback):
    """The weights after each step, as they are trained."""

    def __init__(self):
        self.weights = {}

    def step(self, progress):
        self.weights[progress.steps] = copy.deepcopy(dict(self.module.state_dict()))


@pytest.fixture
def averaging(bench):
    return bench.but(trainer={"ema": 0.3})


def run_seen(bench, **trainer):
    seen = Seen()
    made = bench.make(seen, **trainer)
    seen.module = made.task.module
    made.fit()
    return made, seen.weights


def test_the_model_of_a_checkpoint_is_the_average_and_its_weights_are_the_trained(averaging):
    trainer, trained = run_seen(averaging, keep=20, save_every=Every(1))
    average = None
    for step in sorted(trained):
        decay = min(0.3, (step - 1) / (step + 9))  # 0.3 from the sixth step on
        now = trained[step]
        average = now if average is None else {
            key: decay * average[key] + (1 - decay) * now[key] for key in now
        }  # fmt: skip
        path = trainer.checkpoints.folder / f"step-{step:08d}"
        assert differences(Checkpoints.load_part(path, "weights"), now) == []
        torch.testing.assert_close(
            Checkpoints.load_part(path, "model"), average, rtol=1e-4, atol=1e-6
        )


def test_the_average_is_what_is_evaluated_selected_and_tested(averaging):
    trainer, _ = run_seen(averaging, keep=20)
    step, _ = trainer.selection.best
    path = trainer.checkpoints.folder / f"step-{step:08d}"
    saved = Checkpoints.load_part(path, "model")
    assert differences(dict(trainer.task.module.state_dict()), saved) == []
    found = [line for line in metrics_of(trainer.xp.folder) if line["split"] == "valid"]
    reported = next(line for line in found if line["step"] == step)
    again = evaluate(trainer.task, trainer.valid).values
    assert reported["loss"] == again["loss"]


SLOW = [
    pytest.param(at, marks=pytest.mark.slow) for at in [(1, "step"), (6, "saved"), (12, "saved")]
]


@pytest.mark.parametrize("at", [(5, "evaluated"), *SLOW])
def test_a_killed_run_is_resumed_bitwise(averaging, tmp_path, at):
    whole, cut = averaging.but(folder=tmp_path / "whole"), averaging.but(folder=tmp_path / "cut")
    wanted = whole.make()
    wanted.fit()
    found = killed_and_resumed(cut, KillAt(*at))
    assert differences(outcome(wanted), outcome(found)) == []
    weights = [Checkpoints.load_part(t.checkpoints.last(), "weights") for t in (wanted, found)]
    assert differences(*weights) == []


@pytest.fixture
def swa(bench):
    """14 batches an epoch are 7 steps: an average from step 5, of every second step."""
    return bench.but(trainer={"swa_start": Every(5), "swa_every": Every(2), "max_steps": 13})


def test_an_equal_average_is_torchs(swa):
    trainer, trained = run_seen(swa, keep=20, save_every=Every(1))
    averaged = AveragedModel(trainer.task.module, use_buffers=False)
    for step in sorted(trained):
        path = trainer.checkpoints.folder / f"step-{step:08d}"
        saved = Checkpoints.load_part(path, "model")
        assert differences(Checkpoints.load_part(path, "weights"), trained[step]) == []
        if step < 6:
            assert differences(saved, trained[step]) == []
            continue
        if step % 2 == 0:
            trainer.task.module.load_state_dict(trained[step])
            averaged.update_parameters(trainer.task.module)
        wanted = dict(averaged.module.state_dict())
        torch.testing.assert_close(saved, wanted, rtol=1e-4, atol=1e-6)
    assert averaged.n_averaged == trainer.updates.weights.taken == 4


@pytest.mark.parametrize("at", [9, *(pytest.param(n, marks=pytest.mark.slow) for n in (4, 6))])
def test_a_killed_run_with_an_equal_average_is_resumed_bitwise(swa, at):
    prove(swa, (at,))


def test_an_equal_average_can_be_of_epochs(bench):
    here = bench.but(trainer={"swa_start": Every(2, "epochs"), "max_steps": 20, "accumulate": 2})
    trainer = here.make()
    trainer.fit()
    assert trainer.clock.now.epochs == 5
    assert trainer.updates.weights.taken == 4  # after epochs 2, 3, 4 and 5


def test_an_equal_average_is_nearer_to_the_optimum_than_the_weights_that_noise_moves_about():
    """Least squares by single noisy rows at a constant rate, which never comes to rest."""
    generator = torch.Generator().manual_seed(1)
    optimum, module = torch.randn(1, 8, generator=generator), nn.Linear(8, 1, bias=False)
    weights = Weights(module, swa_start=Every(200), swa_every=Every(10))
    weights.begin()
    optimizer = torch.optim.SGD(module.parameters(), lr=0.05)
    for step in range(1, 1001):
        x = torch.randn(1, 8, generator=generator)
        wanted = x @ optimum.t() + 0.5 * torch.randn(1, 1, generator=generator)
        optimizer.zero_grad()
        (module(x) - wanted).square().sum().backward()
        optimizer.step()
        weights.update(Progress(step - 1), Progress(step))
    own = (module.weight - optimum).norm().item()
    weights.finish()
    assert (module.weight - optimum).norm().item() < 0.5 * own


def test_two_averages_and_one_by_the_clock_are_refused():
    with pytest.raises(UserError, match=r"^trainer\.ema and trainer\.swa_start are two averages\."):
        Trainer.Config(ema=0.9, swa_start=Every(1))
    with pytest.raises(UserError, match=r"are in steps, epochs or examples\.$"):
        Trainer.Config(swa_start=Every(1, "min"))


class StopWhileEvaluating(Callback):
    """Asks the run to stop when the evaluation begins, as a person does."""

    def start(self, progress):
        task, plain = self.trainer.task, self.trainer.task.validation_step

        def step(*arguments):
            signal.raise_signal(signal.SIGTERM)
            return plain(*arguments)

        task.validation_step = step


def test_a_stop_in_an_evaluation_saves_the_weights_that_were_trained(averaging, tmp_path):
    whole, cut = averaging.but(folder=tmp_path / "whole"), averaging.but(folder=tmp_path / "cut")
    wanted, trained = run_seen(whole)
    stop = StopWhileEvaluating()
    stopped = cut.make(stop)
    stop.trainer = stopped
    with pytest.raises(RunStoppedError):
        stopped.fit()
    last = stopped.checkpoints.last()
    assert last.name == "step-00000005"
    assert differences(Checkpoints.load_part(last, "weights"), trained[5]) == []
    found = cut.make()
    found.fit()
    assert differences(outcome(wanted), outcome(found)) == []
