"""What is done about a step that is not finite: left out, or gone back from; bounded, resumable."""

import math
import random
import re
from contextlib import nullcontext

import pytest
import torch

from tests.training.bench import (
    KillAt,
    Killed,
    Rows,
    differences,
    metrics_of,
    outcome,
    prove,
)  # fmt: skip
from textmill.checkpoint import Checkpoints
from textmill.errors import DataError, NonFiniteError
from textmill.models.language_model import LstmLanguageModel
from textmill.runtime.devices import Env, Experiment
from textmill.tasks import Loss, Translation
from textmill.tasks.language_model import LanguageModeling
from textmill.text.tokenizers.word_tokenizer import FittedWords
from textmill.training import AdamW, Callback, Every, InverseSquareRoot, Trainer
from textmill.training.nonfinite import NonFinite

STEPS = 12


class Poisoned(Translation):
    """One row of the data breaks the loss, or the gradient, of its batch: once an epoch."""

    how, rows = "loss", (13,)

    def training_step(self, batch, examples=()):
        found = super().training_step(batch, examples)
        if not set(self.rows) & set(batch.rows.tolist()):
            return found
        if self.how == "gradient":
            found.total.register_hook(lambda gradient: gradient * math.nan)
            return found
        return Loss(found.total * math.nan, found.count, found.sums)


class Asks(Callback):
    """Which steps were taken, by the trainer's own count, and where it stood before each."""

    def __init__(self):
        self.steps = []

    def step(self, progress):
        self.steps.append(progress.steps)


@pytest.fixture
def poisoned(bench, monkeypatch, request):
    monkeypatch.setattr(Poisoned, "how", getattr(request, "param", "loss"))
    return bench.but(task_class=Poisoned, trainer={"on_nonfinite": "skip", "max_steps": STEPS})


def broken(bench):
    """The steps with the poisoned row, and the trainer's data as it is drawn."""
    trainer = bench.but(folder=bench.folder / "drawn").make()
    groups = [trainer.data.groups(step, None)[0] for step in range(1, STEPS + 1)]
    return [
        step
        for step, group in enumerate(groups, 1)
        if any(13 in taken.batch.rows for taken in group.batches)
    ]


@pytest.mark.parametrize(
    "poisoned", ["loss", pytest.param("gradient", marks=pytest.mark.slow)], indirect=True
)
def test_a_skipped_step_leaves_its_update_out_and_nothing_else(poisoned):
    steps = broken(poisoned)
    assert len(steps) == 3  # three epochs
    trainer = poisoned.make()
    trainer.fit()
    other = poisoned.but(folder=poisoned.folder / "by hand", task_class=Translation).make()
    update, taken = other.optimizer.step, []

    def by_hand():
        taken.append(1)
        if len(taken) not in steps:
            update()

    other.optimizer.step = by_hand
    other.fit()
    found, wanted = outcome(trainer), outcome(other)
    for part in ("model", "data", "steps", "last", "optimizer"):
        assert differences(wanted[part], found[part]) == [], part
    lines = [line for line in metrics_of(poisoned.folder) if line["split"] == "train"]
    assert sum(line.get("skipped_steps", 0) for line in lines) == 3
    assert not any(line.get("loss") == "NaN" for line in lines)
    told = {line["step"] for line in lines if "skipped_steps" in line}
    assert told == {next(line["step"] for line in lines if line["step"] >= s) for s in steps}


@pytest.mark.parametrize("policy", [pytest.param("skip", marks=pytest.mark.slow), "rollback"])
@pytest.mark.parametrize("steps", [(7,), pytest.param((1, 4, 11, 12), marks=pytest.mark.slow)])
def test_killed_at_any_step_it_is_the_undisturbed_run(poisoned, policy, steps):
    here = poisoned.but(trainer={**poisoned.trainer, "on_nonfinite": policy})
    prove(here, steps)


def test_a_roll_back_goes_to_the_last_evaluation_and_on_with_the_data_after(poisoned):
    alone = poisoned.but(
        valid_data=None,
        test_data=None,
        trainer={"save_every": Every(1), "evaluate_every": Every(3), "max_steps": 12},
    )
    first = broken(alone)[0]
    saved = (first - 1) // 3 * 3
    until = saved + 2  # before the next epoch breaks again
    asks = Asks()
    trainer = alone.make(asks, on_nonfinite="rollback", max_steps=until)
    trainer.fit()
    assert asks.steps == [*range(1, first), saved, saved + 1, saved + 2]
    by_hand = alone.but(folder=alone.folder / "by hand", task_class=Translation)
    if saved:
        by_hand.make(max_steps=saved).fit()

    class Forward(Callback):
        def start(self, progress):
            assert progress.steps == saved
            for _ in range(first - saved):
                next(other.data.first.groups)

    other = by_hand.make(Forward(), max_steps=until)
    other.fit()
    found, wanted = outcome(trainer), outcome(other)
    for part in ("model", "optimizer", "data", "last"):
        assert differences(wanted[part], found[part]) == [], part
    lines = [line for line in metrics_of(alone.folder) if line["split"] == "train"]
    assert sum(line.get("rollbacks", 0) for line in lines) == 1
    steps = [line["step"] for line in lines]
    assert steps == sorted(set(steps))  # lines from before are cut back


class Drawn:
    """Ready batches that do not know their place, shuffled by the global generator."""

    def __init__(self):
        self.begun = 0

    def __iter__(self):
        self.begun += 1
        order = list(range(7))
        random.shuffle(order)
        for number in order:
            yield self.batches[number]


@pytest.mark.slow
def test_a_roll_back_draws_ready_batches_once_and_a_killed_run_as_the_undisturbed(
    bench, monkeypatch
):
    monkeypatch.setattr(Poisoned, "how", "loss")
    rows = bench.but(folder=bench.folder / "rows").make().data.data
    monkeypatch.setattr(Drawn, "batches", list(rows)[:7], raising=False)
    poison = tuple(Drawn.batches[3].rows.tolist())
    monkeypatch.setattr(Poisoned, "rows", poison)
    here = bench.but(
        task_class=Poisoned,
        train_data=Drawn,
        trainer={"on_nonfinite": "rollback", "accumulate": 1, "max_steps": 14},
    )
    undisturbed = prove(here, (2, 5, 8, 11))
    assert undisturbed.updates.nonfinite.furthest
    source, groups = undisturbed.data.data.source, undisturbed.data
    assert source.begun <= groups.epochs + 2  # a look at the first batch, and one an epoch


@pytest.mark.slow
def test_where_a_roll_back_goes_does_not_depend_on_what_was_saved_when(poisoned):
    """The steps of saves are up to the clock, and rotation deletes all but the last one."""
    policy = {"on_nonfinite": "rollback", "evaluate_every": Every(4)}
    here = poisoned.but(trainer={**policy, "keep": 1, "max_steps": 10})
    found = []
    for save_every in (1, 1000):
        trainer = here.but(folder=here.folder / f"{save_every}").make(save_every=Every(save_every))
        trainer.fit()
        assert trainer.updates.nonfinite.furthest
        found.append(outcome(trainer))
    assert differences(*found) == []


class Spoils(Callback):
    """Spoils the weights in the update of one step, by data that are met once.

    It does so within the optimizer's step, whose gradient was fine.
    """

    def __init__(self, factor):
        self.factor, self.done = factor, False

    def start(self, progress):
        update, trainer = self.trainer.optimizer.step, self.trainer

        def spoilt(*arguments):
            update(*arguments)
            place = trainer.data.first.groups
            if (trainer.clock.now.steps, place.epochs, place.taken) == (5, 1, 4):
                self.done = True
                with torch.no_grad():
                    for parameter in trainer.task.module.parameters():
                        parameter.mul_(self.factor)

        trainer.optimizer.step = spoilt


@pytest.mark.parametrize(
    ("factor", "valid"),
    [
        (math.nan, True),
        (1e6, False),
        pytest.param(math.inf, True, marks=pytest.mark.slow),
        pytest.param(math.nan, False, marks=pytest.mark.slow),
        pytest.param(1e6, True, marks=pytest.mark.slow),
    ],
)
def test_weights_that_an_update_has_spoilt_are_never_gone_back_to(bench, caplog, factor, valid):
    """The update is just before an evaluation falls due, so what it has spoilt is saved there.

    The loss of weights that are 1,000,000 times as large is a number, and above the bound.
    """
    data = {} if valid else {"valid_data": None, "test_data": None}
    policy = {"on_nonfinite": "rollback", "loss_upper_bound": 50.0, "evaluate_every": Every(3)}
    here = bench.but(**data, trainer={**policy, "save_every": Every(1), "keep": 1})
    spoils = Spoils(factor)
    trainer = here.make(spoils)
    spoils.trainer = trainer
    assert trainer.fit().steps == 12
    assert spoils.done
    back = [m for m in caplog.messages if m.startswith("Back at step")]
    tried = ["Back at step 6; the data goes on after what broke."] if factor == 1e6 else []
    assert back == [*tried, "Back at step 3; the data goes on after what broke."]
    for part in ("model", "optimizer"):
        saved = Checkpoints.load_part(trainer.checkpoints.last(), part)
        numbers = saved if part == "model" else saved["state"][0]
        assert all(torch.isfinite(value).all() for value in numbers.values())
    clean = here.but(folder=bench.folder / "clean").make()
    clean.fit()
    lines = [
        [line["loss"] for line in metrics_of(t.xp.folder) if line["split"] == "train"][-1]
        for t in (trainer, clean)
    ]
    assert lines[0] == pytest.approx(lines[1], rel=0.1)


def test_a_run_that_was_spoilt_is_resumed_bitwise(bench):
    """Killed just after the spoilt update, and after the rollback to before it."""
    policy = {"on_nonfinite": "rollback", "loss_upper_bound": 50.0, "evaluate_every": Every(3)}
    here = bench.but(test_data=None, trainer={**policy, "save_every": Every(1)})

    def run(folder, *kills):
        for kill in (*kills, None):
            spoils = Spoils(1e6)
            trainer = here.but(folder=bench.folder / folder).make(spoils, *([kill] if kill else []))
            spoils.trainer = trainer
            with pytest.raises(Killed) if kill else nullcontext():
                trainer.fit()
        return outcome(trainer)

    kills = KillAt(6), KillAt(4), KillAt(7)
    assert differences(run("whole"), run("cut", *kills)) == []


def test_where_its_checkpoint_is_damaged_a_roll_back_goes_to_the_newest_good(poisoned, caplog):
    class Damages(Callback):
        def step(self, progress):
            path = folder / "checkpoints" / "step-00000000" / "model.safetensors"
            if progress.steps == first - 1:
                path.write_bytes(path.read_bytes()[:-1] + b"x")

    first = broken(poisoned)[0]
    assert first > 1
    folder = poisoned.folder
    settings = {"save_every": Every(1), "evaluate_every": Every(1000), "max_steps": first}
    trainer = poisoned.make(Damages(), on_nonfinite="rollback", **settings)
    trainer.fit()
    skipped = [m for m in caplog.messages if m.startswith("checkpoint step-00000000 skipped: ")]
    assert len(skipped) == 1
    assert f"Back at step {first - 1:,}; the data goes on after what broke." in caplog.messages
    assert trainer.updates.nonfinite.target == first - 1


@pytest.mark.parametrize("policy", ["skip", "rollback"])
def test_too_many_in_a_row_end_the_run_and_so_does_the_resumed_one(bench, monkeypatch, policy):
    monkeypatch.setattr(Poisoned, "rows", tuple(range(28)))
    here = bench.but(
        task_class=Poisoned,
        trainer={"on_nonfinite": policy, "max_nonfinite": 3, "save_every": Every(1)},
    )
    trainer = here.make()
    with pytest.raises(NonFiniteError) as caught:
        trainer.fit()
    at = 3 if policy == "skip" else 1
    assert str(caught.value).startswith(f"The loss is nan at step {at}; this step did not")
    assert "\nIt is number 3 in a row (trainer.max_nonfinite=3)" in str(caught.value)
    with pytest.raises(NonFiniteError):
        here.make().fit()
    last = trainer.checkpoints.last()
    assert last is not None
    saved = Checkpoints.load_part(last, "model")
    assert all(torch.isfinite(value).all() for value in saved.values())


class PoisonedText(LanguageModeling):
    """The loss of the sixth batch that is read is no number."""

    def __init__(self, config, **given):
        super().__init__(config, **given)
        self.before = []

    def training_step(self, batch, examples=()):
        state = self.carried.state_dict()["state"]
        self.before.append((batch.begins, state is not None))
        found = super().training_step(batch, examples)
        return Loss(found.total * math.nan, found.count) if len(self.before) == 6 else found


def test_a_roll_back_forgets_the_state_of_the_text_before(tmp_path):
    rows = [{"text": "the cat sees the dog and the dog sees the cat"}] * 6
    torch.manual_seed(0)
    tokenizer = FittedWords.Config(marks=True).build(train_data=rows)
    module = LstmLanguageModel.Config(dim=4, num_layers=1, dropout=0.0).build(tokenizer=tokenizer)
    task = PoisonedText.Config(block=4).build(module=module, tokenizer=tokenizer)
    trainer = Trainer.Config(on_nonfinite="rollback", max_steps=6, evaluate_every=Every(3)).build(
        task=task, optimizer=AdamW.Config().build(module=module, task=task),
        lr_scheduler=InverseSquareRoot.Config(warmup_steps=4).build(),
        train_data=Rows(rows, batch_size=2), reporters=[], callbacks=[], env=Env(),
        xp=Experiment(folder=tmp_path, recipe="tiny"),
    )  # fmt: skip
    trainer.fit()
    # Back from the sixth step to the third: the saved state is of another place of the text.
    assert task.before == [
        (True, False),
        *[(False, True)] * 5,
        (False, False),
        *[(False, True)] * 2,
    ]


def test_only_steps_in_a_row_count():
    nonfinite = NonFinite("rollback", limit=2)
    nonfinite.take(NonFiniteError("x"), step=9)
    nonfinite.fine(8)  # it has not come further yet
    assert nonfinite.in_a_row == 1
    nonfinite.fine(9)
    with pytest.raises(NonFiniteError, match="number 2 in a row"):
        nonfinite.take(NonFiniteError("x"), step=9)
    nonfinite.fine(10)
    assert (nonfinite.in_a_row, nonfinite.pop(), nonfinite.pop()) == (0, {"rollbacks": 2.0}, {})


def test_a_step_without_targets_is_refused_by_every_policy():
    zero = torch.tensor(0.0)
    found = {"norm": zero / zero, "total": zero, "count": zero, "examples": [{"row": 6}]}
    for policy in ("stop", "skip", "rollback"):
        with pytest.raises(DataError, match=r"^Step 4 .* train_data in this step: 7\."):
            (nonfinite := NonFinite(policy, limit=9)).take(nonfinite.broken(4, **found), step=4)


@pytest.mark.parametrize("policy", ["stop", "skip"])
def test_a_loss_above_the_bound_breaks_a_step_and_weights_are_untouched(bench, policy):
    here = bench.but(trainer={"loss_upper_bound": 0.01, "on_nonfinite": policy})
    trainer = here.make(max_steps=1)
    before = {name: value.clone() for name, value in trainer.task.module.state_dict().items()}
    if policy == "stop":
        with pytest.raises(NonFiniteError) as caught:
            trainer.fit()
        text = r"The loss is [\d.]+ a target at step 1, above trainer.loss_upper_bound=0.01; this "
        assert re.match(text, str(caught.value))
    else:
        assert trainer.fit().steps == 1
        assert trainer.updates.nonfinite.in_a_row == 1
    after = trainer.task.module.state_dict()
    assert all(torch.equal(after[name], value) for name, value in before.items())
