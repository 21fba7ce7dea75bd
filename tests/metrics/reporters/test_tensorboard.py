"""TensorBoard's own reader sees every value once, whatever happened to the run."""

import importlib.util
import math
from contextlib import suppress

import pytest
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from tests.metrics.reporters.events import scalars
from tests.trained_run import train_script
from textmill.cli.main import main
from textmill.errors import MissingExtraError, RunError, StorageError
from textmill.metrics.reporters.reporter import RunInfo
from textmill.metrics.reporters.tensorboard import EventFile, TensorBoard
from textmill.runtime.run_context import Experiment


def started(folder, *, step=0, state=None):
    reporter = TensorBoard.Config().build(xp=Experiment(folder=folder))
    if state is not None:
        reporter.load_state_dict(state)
    reporter.start(RunInfo(step=step))
    return reporter


def test_a_run_is_read_back(tmp_path):
    reporter = started(tmp_path)
    values = {"loss": 2.5, "huge": 1e300, "nan": math.nan, "-inf": -math.inf, "ünï/<b>": 1.0}
    time = {"elapsed": 3.0, "steps_per_second": 7.5}
    reporter.report("train", {"step": 10, "time": time}, values)
    reporter.report("valid", {"step": 10, "time": time}, {"bleu": 41.25})
    reporter.end({})
    reporter.close()
    reader = EventAccumulator(str(tmp_path))
    reader.Reload()
    found = {
        tag: [(e.step, e.value) for e in reader.Scalars(tag)] for tag in reader.Tags()["scalars"]
    }
    assert math.isnan(found.pop("train/nan")[0][1])
    assert found == {
        "train/loss": [(10, 2.5)],
        "train/huge": [(10, math.inf)],  # TensorBoard keeps single precision
        "train/-inf": [(10, -math.inf)],
        "train/ünï/<b>": [(10, 1.0)],
        "time/steps_per_second": [(10, 7.5)],
        "valid/bleu": [(10, 41.25)],
    }


def test_every_event_is_on_the_disk_at_once(tmp_path):
    reporter = started(tmp_path)
    reporter.report("valid", {"step": 1}, {"loss": 0.5})
    assert scalars(tmp_path) == {"valid/loss": [(1, "0.5")]}
    reporter.close()


def test_a_reader_that_looks_on_forgets_what_was_taken_back(tmp_path):
    killed = started(tmp_path)
    killed.report("valid", {"step": 1}, {"loss": 1.0})
    state = killed.state_dict()
    killed.report("valid", {"step": 2}, {"loss": 2.0})
    reader = EventAccumulator(str(tmp_path), purge_orphaned_data=True)
    reader.Reload()
    again = started(tmp_path, step=1, state=state)
    again.report("valid", {"step": 2}, {"loss": 20.0})
    reader.Reload()
    assert [(e.step, e.value) for e in reader.Scalars("valid/loss")] == [(1, 1.0), (2, 20.0)]
    killed.close()
    again.close()


def test_a_run_killed_again_and_again_from_one_checkpoint(tmp_path):
    first = started(tmp_path)
    first.report("valid", {"step": 1}, {"loss": 1.0})
    state = first.state_dict()
    first.close()
    for value in (2.0, 3.0, 4.0):
        again = started(tmp_path, step=1, state=state)
        again.report("valid", {"step": 2}, {"loss": value})
        again.close()
    assert scalars(tmp_path) == {"valid/loss": [(1, "1.0"), (2, "4.0")]}


def test_files_of_others_are_left_alone(tmp_path):
    other = tmp_path / "events.out.tfevents.1700000000.host.1.0"
    other.write_bytes(b"x")
    outside = tmp_path / "outside"
    outside.write_bytes(b"1234")
    started(tmp_path, step=1, state={"files": {"../outside": 0, "outside": 0}}).close()
    assert other.read_bytes() == b"x"
    assert outside.read_bytes() == b"1234"


def test_a_link_is_not_followed(tmp_path):
    (tmp_path / "precious").write_text("1234")
    (tmp_path / "events.out.tfevents.0000000000.textmill").symlink_to(tmp_path / "precious")
    with pytest.raises(StorageError):
        started(tmp_path, step=1, state={"files": {"events.out.tfevents.0000000000.textmill": 0}})
    assert (tmp_path / "precious").read_text() == "1234"


def test_a_file_that_became_shorter_stays_readable_as_far_as_it_goes(tmp_path):
    first = started(tmp_path)
    first.report("valid", {"step": 1}, {"loss": 1.0})
    short = first.state_dict()["files"]
    first.report("valid", {"step": 2}, {"loss": 2.0})
    state = first.state_dict()
    first.close()
    (name,) = short
    with (tmp_path / name).open("r+b") as file:
        file.truncate(short[name])
    again = started(tmp_path, step=2, state=state)
    again.report("valid", {"step": 3}, {"loss": 3.0})
    assert [step for step, _ in scalars(tmp_path)["valid/loss"]] == [1, 3]
    assert again.state_dict()["files"][name] == short[name]
    again.close()


def test_a_full_disk_leaves_whole_events(tmp_path, failing_disk):
    for k in range(1, 30):
        folder = tmp_path / str(k)
        folder.mkdir()
        with failing_disk(k) as disk, suppress(StorageError):
            reporter = started(folder)
            for step in (1, 2, 3):
                reporter.report("valid", {"step": step}, {"loss": float(step)})
            reporter.end({})
        steps = [step for step, _ in scalars(folder).get("valid/loss", [])]
        assert steps == [1, 2, 3][: len(steps)]
        if disk.failed is None:
            break
    assert k > 5
    assert steps == [1, 2, 3]


def test_a_value_after_the_end_is_refused(tmp_path):
    reporter = started(tmp_path)
    reporter.close()
    with pytest.raises(RunError) as error:
        reporter.report("valid", {"step": 1}, {"loss": 1.0})
    assert str(error.value) == (
        f"{tmp_path}/events.out.tfevents.0000000000.textmill is closed; a value came after the "
        "end of the run."
    )


MISSING = (
    "The reporter 'tensorboard' needs the package 'tensorboard', which is not installed. "
    "Install it with: pip install 'textmill[tensorboard]'"
)


@pytest.fixture
def without_tensorboard(monkeypatch):
    found = importlib.util.find_spec
    absent = lambda name, *more: None if name == "tensorboard" else found(name, *more)  # noqa: E731
    monkeypatch.setattr(importlib.util, "find_spec", absent)


def test_without_the_package_nothing_starts(tmp_path, without_tensorboard, capsys):
    with pytest.raises(MissingExtraError) as error:
        TensorBoard.Config().build(xp=Experiment(folder=tmp_path))
    assert str(error.value) == MISSING
    words = [
        "trainer.max_steps=1",
        "reporters.also=[tensorboard]",
        "--run-dir",
        str(tmp_path / "run"),
    ]
    assert main(["train", "translation/demo", *words]) == 2
    assert MISSING in capsys.readouterr().err
    assert not (tmp_path / "run" / "checkpoints").exists()


def test_an_unknown_reporter_is_named_with_its_neighbours(tmp_path, capsys):
    words = ["reporters.also=[tensorbord]", "--run-dir", str(tmp_path / "run")]
    assert main(["train", "translation/demo", *words]) == 2
    assert "Unknown reporter 'tensorbord'. Did you mean 'tensorboard'?" in capsys.readouterr().err


def test_a_real_run(tmp_path):
    run = train_script(tmp_path, words=("reporters.also=[tensorboard]",))
    found = scalars(run)
    assert [step for step, _ in found["valid/loss"]] == [2, 4]
    assert [step for step, _ in found["train/lr"]] == [2, 4]


def test_a_run_that_goes_back_again_and_again_overwrites_no_file(tmp_path):
    reporter = started(tmp_path)
    reporter.report("valid", {"step": 1}, {"loss": 1.0})
    for value in (2.0, 3.0, 4.0):
        state = reporter.state_dict()
        reporter.report("valid", {"step": 2}, {"loss": value})  # taken back
        reporter.load_state_dict(state)
        reporter.report("valid", {"step": 2}, {"loss": value * 10})
    state = reporter.state_dict()
    reporter.close()
    names = list(state["files"])
    assert names == sorted(set(names))
    resumed = started(tmp_path, step=2, state=state)
    resumed.report("valid", {"step": 3}, {"loss": 5.0})
    resumed.close()
    found = scalars(tmp_path)["valid/loss"]
    assert [value for _, value in found] == ["1.0", "20.0", "30.0", "40.0", "5.0"]


def test_a_file_that_appears_meanwhile_is_not_overwritten(tmp_path):
    path = tmp_path / "events"
    path.write_bytes(b"precious")
    with pytest.raises(StorageError):
        EventFile(path, step=0)
    assert path.read_bytes() == b"precious"
