"""Killed at random moments, out of disk at any call: the run ends the same."""

import errno
import os
import random
import time

import pytest
import torch

from tests.runs.rank_kills import lines_written
from tests.runs.tiny import outcome, run_folder, unlike, write_recipe

SEED = 20261120


@pytest.fixture(autouse=True)
def _one_thread():
    threads = torch.get_num_threads()
    torch.set_num_threads(1)  # as the children have
    yield
    torch.set_num_threads(threads)


@pytest.fixture(scope="module")
def undisturbed(runs, tmp_path_factory):
    """What the run leaves that nothing happened to, and how long it took: the second of two."""
    found = []
    for name in ("first", "second"):
        folder = write_recipe(tmp_path_factory.mktemp(name))
        ended = runs.train(folder)
        assert ended.code == 0, ended.log
        found.append((outcome(run_folder(folder)), ended.seconds))
    assert unlike(found[0][0], found[1][0]) == []
    assert_it_can_tell(found[1][0])
    return found[1]


def assert_it_can_tell(outcome):
    """The best moves twice, and the answers that are kept are its own."""
    values = [value for _, value in outcome["selection"]["history"]]
    bests = [value for i, value in enumerate(values) if all(value < other for other in values[:i])]
    assert len(bests) >= 3
    valid = [name for name in outcome["predictions"] if name.startswith("valid")]
    assert valid == [f"valid-step-{outcome['selection']['best']:08}.jsonl"]


class Moments:
    """Random moments at which to kill: inside a save, after a step in mid-epoch, or any."""

    def __init__(self, folder, chance, seconds):
        self.folder, self.chance, self.seconds = folder, chance, seconds

    def inside_a_save(self):
        """While a checkpoint's temporary folder is there; of the second save at times."""
        for _ in range(self.chance.choice([1, 1, 2])):
            if not self.until(lambda: any(self.files("checkpoints/.step-*.tmp-*"))):
                return None
            found = next(iter(self.files("checkpoints/.step-*.tmp-*")), None)
            time.sleep(self.chance.random() * 0.02)
            if found is None or not found.exists():
                continue
        return True

    def in_mid_epoch(self):
        """Just after a step was reported that does not end an epoch of 4 steps."""
        done = lines_written(self.folder)
        after = self.chance.choice([n for n in range(1, 8) if n % 4])
        return self.until(lambda: lines_written(self.folder) >= done + after)

    def any_moment(self):
        """Uniform over the time the undisturbed run took."""
        time.sleep(self.chance.random() * self.seconds)
        return True

    def files(self, pattern):
        return self.folder.glob(f"runs/tiny/*/{pattern}")

    def until(self, happens):
        """Waits for it; None where it did not happen in the time of a whole run."""
        deadline = time.monotonic() + self.seconds
        while not happens():
            if time.monotonic() > deadline:
                return None
            time.sleep(0.0005)
        return True


def campaign(runs, undisturbed, tmp_path, kills):
    """Kills so many runs, each once or again and again, and lets each come to its end."""
    wanted, seconds = undisturbed
    chance = random.Random(SEED)
    counts = {"inside_a_save": 0, "in_mid_epoch": 0, "any_moment": 0}
    number = 0
    while sum(counts.values()) < kills:
        number += 1
        folder = write_recipe(tmp_path / f"run-{number}")
        moments = Moments(folder, chance, seconds)
        ended = None
        for _ in range(chance.choice([1, 1, 3, 6])):
            if sum(counts.values()) >= kills:
                break
            name = min(counts, key=lambda kind: counts[kind])  # a third of each
            ended = runs.train(folder, when=getattr(moments, name))
            if ended.code == 0:
                break
            assert ended.code == -9, ended.log
            counts[name] += 1
        if ended is None or ended.code:
            ended = runs.train(folder)
        assert ended.code == 0, ended.log
        assert unlike(wanted, outcome(run_folder(folder))) == [], (number, ended.log)
        left = [p.name for p in run_folder(folder).rglob(".*") if ".tmp-" in p.name]
        assert left == [], left
    return counts


def test_three_kills(runs, undisturbed, tmp_path):
    counts = campaign(runs, undisturbed, tmp_path, kills=3)
    assert min(counts.values()) == 1


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_a_hundred_kills(runs, undisturbed, tmp_path):
    counts = campaign(runs, undisturbed, tmp_path, kills=100)
    assert min(counts.values()) >= 30


def calls_that_fail(monkeypatch, k):
    """Lets the k-th call that changes the disk fail in this process; returns the counter."""
    from textmill.runtime.disk import operations

    count = [0, ""]

    def wrap(name, call):
        def counted(*arguments):
            count[0] += 1
            if count[0] == k:
                count[1] = name
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            return None if name == "fsync" else call(*arguments)  # no power fails in this test

        return counted

    for name in ("open", "write", "fsync", "truncate", "rename", "mkdir"):
        monkeypatch.setattr(operations, name, wrap(name, getattr(operations, name)))
    return count


def train_here(folder, monkeypatch, capsys, k=0):
    """``textmill train tiny.py`` in this process; exit code, what was printed, the failed call."""
    from textmill.cli.main import main

    with monkeypatch.context() as patch:
        patch.chdir(folder)
        count = calls_that_fail(patch, k)
        code = main(["train", "tiny.py"])
    return code, capsys.readouterr().err, count


def disk_full_at(step, folder, undisturbed, *, monkeypatch, capsys):
    """One run of which one call fails with ENOSPC, and the run after it."""
    code, text, count = train_here(folder, monkeypatch, capsys, k=step)
    if not count[1]:
        return False
    last = next(folder.glob("runs/tiny/*/checkpoints/last.json"), None)
    if last is not None:
        from textmill.checkpoint import Checkpoints

        assert Checkpoints(last.parent).newest_good() is not None
    if code:
        assert code == 1, text
        assert "No space left on device" in text, text
        assert "bytes needed" in text, text
        assert "bytes free" in text, text
        code, text, _ = train_here(folder, monkeypatch, capsys)
    else:  # the deletion of what is old may fail without ending the run
        assert count[1] == "rename"
        assert "is not deleted" in text
    assert code == 0, text
    assert unlike(undisturbed[0], outcome(run_folder(folder))) == [], (step, count[1])
    return True


def test_a_full_disk_at_some_call(undisturbed, tmp_path, monkeypatch, capsys):
    tools = {"monkeypatch": monkeypatch, "capsys": capsys}
    _, _, count = train_here(write_recipe(tmp_path / "all"), monkeypatch, capsys)
    assert count[0] > 100
    k = random.Random(SEED).randint(1, count[0])
    assert disk_full_at(k, write_recipe(tmp_path / str(k)), undisturbed, **tools)


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_a_full_disk_at_every_call(undisturbed, tmp_path, monkeypatch, capsys):
    tools, k = {"monkeypatch": monkeypatch, "capsys": capsys}, 1
    while disk_full_at(k, write_recipe(tmp_path / str(k)), undisturbed, **tools):
        k += 1
    assert k > 100
