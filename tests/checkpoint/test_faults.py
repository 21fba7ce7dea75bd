"""Failing disks, flipped bits, truncations, kills, hostile folders: the last good one is used."""

import errno
import hashlib
import json
import multiprocessing
import os
import random
import signal
import time
from contextlib import suppress

import pytest
import torch

from tests.checkpoint.saving import Part, keep_saving, save, verify
from textmill.checkpoint import Checkpoints
from textmill.errors import CheckpointError, StorageError
from textmill.runtime.sealed import seal, unseal


def restored(folder):
    """The step that a new process would restore; checks that no half of it is from elsewhere."""
    parts = {"model": Part(-1), "optimizer": Part(-1)}
    step = Checkpoints(folder).restore(parts)
    for part in parts.values():
        assert part.step == step
        assert torch.equal(part.weight, torch.full((300,), float(step)))
    return step


@pytest.mark.parametrize(
    "code",
    [errno.ENOSPC, *(pytest.param(n, marks=pytest.mark.slow) for n in (errno.EIO, errno.EDQUOT))],
)
@pytest.mark.parametrize("lasting", [False, True])
def test_every_failing_call_of_a_save_leaves_a_good_checkpoint(
    tmp_path, failing_disk, caplog, *, code, lasting
):
    folder = tmp_path / "checkpoints"
    save(Checkpoints(folder, keep=1), 1)
    for k in range(1, 1000):
        store = Checkpoints(folder, keep=1)
        with failing_disk(k, code, lasting=lasting) as disk:
            try:
                path, message = save(store, 2), None
            except StorageError as error:
                path, message = None, str(error)
        if disk.failed is None:
            break
        if message is None:  # only the deletion of what is old may fail without ending the save
            assert disk.failed == "rename"
            assert "The old step-00000001 is not deleted" in caplog.messages[-1]
            assert restored(folder) == 2
        else:
            assert f"{folder}" in message
            assert os.strerror(code) in message
            full = code != errno.EIO
            assert ("bytes needed" in message, "bytes free" in message) == (full, full)
            step = restored(folder)
            assert step in (1, 2), k
            assert Checkpoints(folder).last().name == f"step-{step:08d}", k  # it may be the end
        assert not [name for name in os.listdir(folder) if name.startswith(".")], k
        save(Checkpoints(folder, keep=1), 1)
        save(Checkpoints(folder, keep=1), 1)
        assert restored(folder) == 1
        assert verify(folder / "step-00000001") == []
    assert k > 20
    assert path is not None
    assert restored(folder) == 2
    assert sorted(os.listdir(folder)) == ["last.json", "step-00000002"]


def test_every_failing_call_of_marking_the_best(tmp_path, failing_disk):
    store = Checkpoints(tmp_path, keep=3)
    save(store, 1)
    save(store, 2)
    store.mark_best(1)
    for k in range(1, 100):
        with failing_disk(k) as disk, suppress(StorageError):
            store.mark_best(2)
        if disk.failed is None:
            break
        assert store.best().name in ("step-00000001", "step-00000002")
        store.mark_best(1)
    assert k == 6
    assert store.best().name == "step-00000002"


def damaged_copies(data, seed, flips):
    """Seeded single-bit flips, and truncations at many lengths, of one file."""
    rng = random.Random(seed)
    for _ in range(flips):
        position, bit = rng.randrange(len(data)), rng.randrange(8)
        copy = bytearray(data)
        copy[position] ^= 1 << bit
        yield f"bit {bit} of byte {position}", bytes(copy)
    for size in {0, 1, len(data) - 1, *(rng.randrange(len(data)) for _ in range(5))}:
        yield f"cut to {size} bytes", data[:size]
    yield "a byte more", data + b"\0"
    yield "zeros at the end", data[:-8] + bytes(8)


def test_any_flipped_bit_or_truncation_is_found_and_the_previous_used(tmp_path, caplog):
    store = Checkpoints(tmp_path, keep=2)
    save(store, 1)
    newest = save(store, 2)
    files = [path for path in sorted(newest.rglob("*")) if path.is_file()]
    assert len(files) == 5
    tried = 0
    for number, path in enumerate(files):
        data = path.read_bytes()
        for what, copy in damaged_copies(data, number, flips=20):
            assert copy != data
            path.write_bytes(copy)
            name = path.relative_to(newest).as_posix()
            assert [line.startswith(f"{name}: ") for line in verify(newest)] == [True], (name, what)
            caplog.clear()
            path_found, _ = Checkpoints(tmp_path).newest_good()
            assert path_found.name == "step-00000001", (name, what)
            (line,) = caplog.messages
            assert line.startswith(f"checkpoint step-00000002 skipped: {name}: "), what
            assert line.endswith("; using step-00000001")
            tried += 1
        path.write_bytes(data)
    assert tried >= 100
    assert restored(tmp_path) == 2


def test_any_flipped_bit_in_a_pointer_is_found(tmp_path, caplog):
    store = Checkpoints(tmp_path)
    save(store, 1)
    store.mark_best(1)
    for number, name in enumerate(("last.json", "best.json")):
        data = (tmp_path / name).read_bytes()
        for what, copy in damaged_copies(data, number, flips=30):
            (tmp_path / name).write_bytes(copy)
            with pytest.raises(CheckpointError, match=name):
                store.last() if name == "last.json" else store.best()
            caplog.clear()
            assert store.newest_good()[0].name == "step-00000001", what
            assert (caplog.messages == []) == (name == "best.json")
        (tmp_path / name).write_bytes(data)


def test_another_checkpoint_of_the_same_step_is_not_the_one_pointed_to(tmp_path, caplog):
    store = Checkpoints(tmp_path / "a")
    save(store, 1)
    last = save(store, 2)
    other = Checkpoints(tmp_path / "b")
    foreign = other.save(2, {"model": Part(9)})
    for path in last.iterdir():
        if path.is_file():
            path.unlink()
    (last / "text" / "tokenizer.json").unlink()
    for path in foreign.iterdir():
        (last / path.name).write_bytes(path.read_bytes())
    assert store.newest_good()[0].name == "step-00000001"
    assert "manifest.json: it is not the one that last.json points" in caplog.messages[-1]


def forge(path, **changes):
    """A manifest with a valid digest and hostile content."""
    content = unseal((path / "manifest.json").read_bytes(), "manifest.json", CheckpointError)
    content.update(changes)
    (path / "manifest.json").write_bytes(seal(content))


ENTRY = {"size": 3, "sha256": hashlib.sha256(b"abc").hexdigest()}
NO_ENTRY = "the entry of 'a' has no valid size and sha256"


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        *[
            ({"files": {name: ENTRY}}, f"{name!r} is not a name inside the folder")
            for name in ("../x", "/etc/passwd", "text/../../x", "text//x", "a\\b", "a\0b", "")
        ],
        ({"files": {"manifest.json": ENTRY}}, "'manifest.json' is not a name inside the folder"),
        *[
            ({"files": {"a": {**ENTRY, **wrong}}}, NO_ENTRY)
            for wrong in ({"size": -1}, {"size": 1.5}, {"size": True}, {"sha256": "x"})
        ],
        ({"files": {"a": {"size": 3}}}, NO_ENTRY),
        ({"files": [1]}, "it lists no files"),
        ({"files": {str(i): ENTRY for i in range(10_001)}}, "it lists more than 10,000 files"),
        ({"versions": ["torch"]}, "versions are not text by package"),
        ({"versions": {"torch": [2]}}, "versions are not text by package"),
        ({"run": 1234567890123456}, "run is not the name of one"),
        ({"code": "import os"}, "these keys are missing or unknown: code"),
        ({"step": "1"}, "step is not a count"),
        ({"serial": -1}, "serial is not a count"),
    ],
)
def test_hostile_manifests_are_refused(tmp_path, changes, problem):
    path = save(Checkpoints(tmp_path), 1)
    forge(path, **changes)
    assert verify(path) == [f"manifest.json: {problem}"]


def test_a_huge_manifest_is_not_read(tmp_path):
    path = save(Checkpoints(tmp_path), 1)
    with (path / "manifest.json").open("wb") as file:
        file.truncate(10 << 30)
    assert verify(path) == [
        "manifest.json: 10,737,418,240 bytes are more than the 16,777,216 allowed"
    ]


def test_links_and_pipes_are_not_followed(tmp_path):
    store = Checkpoints(tmp_path / "run")
    path = save(store, 1)
    target = tmp_path / "target"
    (path / "state.json").rename(target)
    (path / "state.json").symlink_to(target)
    assert verify(path) == ["state.json: cannot be read: a symbolic link"]
    (path / "state.json").unlink()
    os.mkfifo(path / "state.json")
    assert verify(path) == ["state.json: not a regular file"]
    (path / "state.json").unlink()
    target.rename(path / "state.json")
    (path / "text").rename(tmp_path / "text")
    (path / "text").symlink_to(tmp_path / "text")
    assert "text: not listed in manifest.json" in verify(path)
    with pytest.raises(CheckpointError, match=r"text: not listed in manifest\.json"):
        store.newest_good()


def test_foreign_files_are_reported_and_a_note_beside_ours_costs_nothing(tmp_path, caplog):
    store = Checkpoints(tmp_path)
    path = save(store, 1)
    (path / "notes.txt").write_text("a good one")
    assert verify(path) == ["notes.txt: not listed in manifest.json"]
    assert store.newest_good()[0] == path
    assert caplog.messages == ["step-00000001 holds files that are not of it: notes.txt"]
    (path / "text" / "added_tokens.json").write_text("{}")
    with pytest.raises(CheckpointError, match=r"text/added_tokens\.json: not listed"):
        store.newest_good()


def test_a_state_with_a_valid_hash_and_hostile_content_is_refused(tmp_path):
    path = save(Checkpoints(tmp_path), 1)
    for text, problem in [
        ("[" * 50_000, "state.json: "),
        ('{"format_version": 1, "parts": 3}', "state.json: it holds no parts"),
        (
            '{"format_version": 1, "parts": {"model": ' + '{"a":' * 700 + "1" + "}" * 702,
            "nested too deeply",
        ),
        ('{"format_version": 1, "parts": {"model": {"$import": "os"}}}', "The form '$import'"),
    ]:
        data = text.encode()
        (path / "state.json").write_bytes(data)
        files = json.loads((path / "manifest.json").read_text())["files"]
        files["state.json"] = {"size": len(data), "sha256": hashlib.sha256(data).hexdigest()}
        forge(path, files=files)
        assert verify(path) == []
        with pytest.raises(CheckpointError) as caught:
            Checkpoints.load_part(path, "model")
        assert problem in str(caught.value)


def kill_campaign(folder, kills, seed):
    """Kills a saving process at random moments; each start must find the last state, whole."""
    processes = multiprocessing.get_context("forkserver")  # torch is imported once, not each time
    processes.set_forkserver_preload(["tests.checkpoint.saving"])
    rng = random.Random(seed)
    inside, previous = 0, 0
    for number in range(kills):
        ours, theirs = processes.Pipe(duplex=False)
        process = processes.Process(target=keep_saving, args=(folder, theirs))
        process.start()
        theirs.close()
        assert ours.recv() >= previous, number
        if number % 3 == 2:  # after a save, however slow the machine is
            ours.recv()
        time.sleep(rng.uniform(0.0, 0.08))
        process.kill()
        process.join()
        assert process.exitcode == -signal.SIGKILL
        process.close()
        ours.close()
        inside += any(".tmp-" in name for name in os.listdir(folder)) if folder.exists() else 0
        if (folder / "last.json").exists():
            last = Checkpoints(folder).last()
            assert verify(last) == []
            assert restored(folder) >= int(last.name.removeprefix("step-"))
            previous = restored(folder)
    return inside, previous


def test_killed_anywhere_the_last_checkpoint_loads(tmp_path):
    _, last = kill_campaign(tmp_path / "checkpoints", 6, seed=0)
    assert last > 0


@pytest.mark.slow
def test_killed_thirty_times_some_inside_a_save(tmp_path):
    inside, last = kill_campaign(tmp_path / "checkpoints", 30, seed=1)
    assert inside >= 5
    assert last >= 10  # so many were killed after a save
