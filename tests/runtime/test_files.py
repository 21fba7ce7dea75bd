"""Whole or not there: every failing call, every left-over, and the texts that people read."""

import errno
import hashlib
import os
import re
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest

from textmill.errors import StorageError
from textmill.runtime import disk
from textmill.runtime.disk import HashingFile
from textmill.runtime.files import (
    clean_leftovers,
    make_folder,
    new_folder,
    remove_folder,
    sha256,
    write_atomic,
    write_file,
)

pytestmark = pytest.mark.usefixtures("waiting_for_the_disk")

CODES = [errno.ENOSPC, errno.EIO, errno.EDQUOT]


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def dead_process() -> int:
    child = subprocess.Popen([sys.executable, "-c", "pass"])
    child.wait()
    return child.pid


@pytest.mark.parametrize("code", CODES)
@pytest.mark.parametrize("lasting", [False, True])
def test_write_atomic_survives_every_failing_call(tmp_path, failing_disk, code, lasting):
    path = tmp_path / "last.json"
    write_atomic(path, "old")
    texts: list[str] = []
    for k in range(1, 100):
        with failing_disk(k, code, lasting=lasting) as state:
            try:
                write_atomic(path, "new content")
            except StorageError as error:
                texts.append(str(error))
        if state.failed is None:
            break
        # only the fsync of the folder comes after the rename
        last = state.failed == "fsync" and k > 3
        assert path.read_text() == ("new content" if last else "old"), k
        assert names(tmp_path) == ["last.json"]
        write_atomic(path, "old")
    assert k == 6  # open, write, fsync, rename, fsync of the folder; the sixth passes
    assert path.read_text() == "new content"
    assert len(texts) == 5
    room = r" \([\d,?]+ bytes needed, [\d,]+ bytes free\)"
    for text in texts:
        assert re.search(rf": {os.strerror(code)}{'' if code == errno.EIO else room}\. W", text)


@pytest.mark.parametrize("replace", [False, True])
def test_new_folder_survives_every_failing_call(tmp_path, failing_disk, replace):
    final = tmp_path / "step"
    for k in range(1, 100):
        if replace:
            remove_folder(final) if final.exists() else None
            final.mkdir()
            (final / "a").write_text("old")
        elif final.exists():
            remove_folder(final)
        opening = new_folder(final, replace=replace)
        with failing_disk(k) as state, suppress(StorageError), opening as folder:
            write_file(folder / "a", "new")
            make_folder(folder / "sub")
            write_file(folder / "sub" / "b", "b")
        if state.failed is None:
            break
        assert not [name for name in names(tmp_path) if ".tmp" in name]
        clean_leftovers(tmp_path)  # the next start
        assert set(names(tmp_path)) <= {"step"}
        if replace:
            assert (final / "a").read_text() in ("old", "new")
        elif final.exists():
            assert names(final) == ["a", "sub"]
    assert k > 10
    assert (final / "a").read_text() == "new"
    assert names(final) == ["a", "sub"]


def test_the_error_names_file_bytes_needed_and_free(tmp_path, failing_disk, monkeypatch):
    monkeypatch.setattr(disk.operations, "free", lambda _: 1234)
    path = tmp_path / "model.safetensors"
    with failing_disk(2), pytest.raises(StorageError) as caught:
        write_file(path, b"x" * 5000)
    said = (
        f"{path} cannot be written: No space left on device (5,000 bytes needed, 1,234 bytes free)"
    )
    assert str(caught.value).startswith(said)


def test_the_error_says_what_to_mend(tmp_path, failing_disk, monkeypatch):
    (tmp_path / "file").write_text("")
    path = tmp_path / "file" / "sub" / "a"
    for write in (lambda: make_folder(path), lambda: write_atomic(path.parents[1] / "a", "")):
        with pytest.raises(StorageError, match=f"{tmp_path / 'file'} is no folder"):
            write()
    with failing_disk(1, errno.EIO), pytest.raises(StorageError, match="Input/output error"):
        make_folder(tmp_path / "a")
    monkeypatch.setattr(disk.os, "access", lambda folder, mode: Path(folder) != tmp_path)
    with (
        failing_disk(1, errno.EACCES),
        pytest.raises(StorageError, match=f"folder {tmp_path} is not writable"),
    ):
        make_folder(tmp_path / "a")


def test_writing_by_others_into_a_new_folder_is_reported_as_well(tmp_path):
    message = r"vocabulary cannot be written: No space left"
    with pytest.raises(StorageError, match=message), new_folder(tmp_path / "step"):
        raise OSError(errno.ENOSPC, "No space left on device", str(tmp_path / "vocabulary"))
    with pytest.raises(FileNotFoundError), new_folder(tmp_path / "step"):
        open(tmp_path / "absent")  # noqa: SIM115
    assert names(tmp_path) == []


def test_short_writes_are_continued(tmp_path, monkeypatch):
    write = disk.operations.write
    monkeypatch.setattr(disk.operations, "write", lambda fd, data, at: write(fd, data[:3], at))
    write_file(tmp_path / "a", "0123456789")
    assert (tmp_path / "a").read_text() == "0123456789"


def test_the_hash_is_that_of_the_file_for_all_sizes_of_writes(tmp_path):
    data = os.urandom(3 << 20)
    with HashingFile(tmp_path / "a") as file:
        position = 0
        for size in (1, 10, 1 << 20, 7, (1 << 20) + 1, 0, 1 << 30):
            file.write(memoryview(data)[position : position + size])
            position += size
    assert (tmp_path / "a").read_bytes() == data
    assert file.size == len(data)
    assert file.sha256 == hashlib.sha256(data).hexdigest() == sha256(tmp_path / "a")


def test_left_overs_of_the_dead_are_removed_and_those_of_the_living_stay(tmp_path):
    dead = dead_process()
    (tmp_path / f".step-1.tmp-{dead}" / "text").mkdir(parents=True)
    (tmp_path / f".last.json.tmp-{dead}").write_text("{")
    (tmp_path / f".step-2.tmp-{os.getppid()}").mkdir()  # a reused process id
    (tmp_path / ".note.tmp-x").write_text("not ours")
    with new_folder(tmp_path / "step-3") as folder:
        clean_leftovers(tmp_path)
        assert folder.is_dir()
    assert names(tmp_path) == [".note.tmp-x", "step-3"]


def test_what_was_moved_aside_comes_back_when_nothing_took_its_place(tmp_path):
    dead = dead_process()
    for name in ("step-1", "step-2"):
        aside = tmp_path / f".{name}.old-{dead}"
        aside.mkdir()
        (aside / "a").write_text("old")
    (tmp_path / "step-2").mkdir()
    clean_leftovers(tmp_path)
    assert names(tmp_path) == ["step-1", "step-2"]
    assert (tmp_path / "step-1" / "a").read_text() == "old"
    assert names(tmp_path / "step-2") == []


def test_files_are_on_the_disk_before_the_rename(tmp_path, monkeypatch):
    calls = []
    for name in ("write", "fsync", "rename", "mkdir"):
        call = getattr(disk.operations, name)

        def record(*arguments, name=name, call=call):
            target = arguments[0]
            if isinstance(target, int):
                target = Path(os.readlink(f"/proc/self/fd/{target}"))
            calls.append((name, target.name))
            return call(*arguments)

        monkeypatch.setattr(disk.operations, name, record)
    with new_folder(tmp_path / "step") as folder:
        write_file(folder / "a", "1")
        (folder / "b").write_text("by somebody else")
    tmp = folder.name
    assert calls[:3] == [("mkdir", tmp), ("write", "a"), ("fsync", "a")]
    assert sorted(calls[3:5]) == [("fsync", "a"), ("fsync", "b")]
    assert calls[5:] == [("fsync", tmp), ("rename", tmp), ("fsync", tmp_path.name)]


def test_a_folder_is_not_overwritten_unasked(tmp_path):
    (tmp_path / "step").mkdir()
    with pytest.raises(StorageError, match="exists already"), new_folder(tmp_path / "step"):
        pass
    assert names(tmp_path) == ["step"]
