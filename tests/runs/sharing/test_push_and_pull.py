"""Push and pull: whole or not there, only what changed, nothing that is private, whatever fails."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import fsspec
import pytest

import textmill
from tests.trained_run import copy_of, library_run
from textmill.cli.main import main
from textmill.errors import UserError
from textmill.runs.export import export
from textmill.runs.sharing import stores
from textmill.runs.sharing.pull import pull
from textmill.runs.sharing.push import push
from textmill.runs.sharing.pushed import LISTED, UNDER_WAY, Pushed, ShareError
from textmill.runtime.sealed import FileEntry

TEXT = "a b spam"


def files_in(folder):
    return {p.relative_to(folder).as_posix() for p in folder.rglob("*") if p.is_file()}


def test_what_is_pulled_answers_and_is_measured_like_the_run(run, tmp_path, capsys):
    address = str(tmp_path / "place")
    assert main(["push", str(run), address, "--license", "mit"]) == 0
    assert main(["pull", address, str(tmp_path / "pulled")]) == 0
    pulled = tmp_path / "pulled"
    assert capsys.readouterr().out.splitlines()[-1] == str(pulled)
    found = files_in(pulled)
    assert not [name for name in found if "optimizer" in name or name.startswith("predictions")]
    assert {"README.md", "report.html", "run.json", LISTED} <= found
    assert "a b c" not in (pulled / "report.html").read_text()
    assert textmill.load(pulled)(TEXT) == textmill.load(run)(TEXT)
    before, after = (textmill.evaluate(each)["valid_data"].values for each in (run, pulled))
    assert before == after
    assert main(["runs", "verify", str(pulled)]) == 0
    assert main(["train", str(pulled)]) == 0
    assert main(["train", str(pulled), "trainer.max_steps=8"]) == 2
    assert "without the state of its training" in capsys.readouterr().err
    assert main(["push", str(pulled), str(tmp_path / "third")]) == 0
    again = pull(str(tmp_path / "third"), tmp_path / "again")
    assert textmill.load(again)(TEXT)
    for name in ("README.md", "report.html"):  # made of the answers, which only the first run has
        assert (again / name).read_text() == (pulled / name).read_text()
    assert "95 % interval" in (again / "README.md").read_text()


def test_the_whole_run_goes_on_where_it_is_pulled(run, tmp_path):
    push(run, str(tmp_path / "place"), everything=True, rows=True)
    pulled = pull(str(tmp_path / "place"), tmp_path / "pulled")
    assert files_in(run) - files_in(pulled) <= {"lock"}
    ended = textmill.train(pulled, ["trainer.max_steps=6"])
    assert ended.result["steps"] == 6


def test_an_export_goes_with_its_run_and_alone(tmp_path):
    run = copy_of(library_run(), tmp_path / "run")
    made = export(run, "ctranslate2").folder
    push(run, "memory://exports/run")
    push(made, "memory://exports/alone")
    answer = textmill.exported.load(made)("The cat sleeps.")
    for pulled in (
        pull("memory://exports/run", tmp_path / "one") / "export" / "ctranslate2",
        pull("memory://exports/alone", tmp_path / "two"),
    ):
        assert textmill.exported.load(pulled)("The cat sleeps.") == answer
    memory = fsspec.filesystem("memory")
    assert [path for path in memory.find("/exports/run") if "/export/" in path]
    shutil.rmtree(run / "export")
    push(run, "memory://exports/run")
    assert not [path for path in memory.find("/exports/run") if "/export/" in path]


def test_only_what_changed_travels(run, tmp_path):
    place = "memory://changes/one"
    first = push(run, place)
    assert first.brought == first.files
    assert push(run, place).brought == 0
    (run / "metrics.jsonl").write_text("")
    again = push(run, place)
    assert again.brought <= 3  # the values, the report and the card that are made of them
    pulled = pull(place, tmp_path / "pulled")
    assert pull(place, pulled) == pulled
    (pulled / "metrics.jsonl").write_text("other")
    with pytest.raises(UserError, match="is there already"):
        pull(place, pulled)
    pull(place, pulled, overwrite=True)
    assert not (pulled / "metrics.jsonl").read_text()
    assert not list(tmp_path.glob(".*"))


def test_a_card_that_was_edited_there_stays(run, tmp_path):
    place = tmp_path / "place"
    push(run, str(place))
    card = place / "README.md"
    card.write_text(card.read_text() + "Edited there.\n")
    pulled = pull(str(place), tmp_path / "one")
    assert (pulled / "README.md").read_text().endswith("Edited there.\n")
    (run / "metrics.jsonl").write_text("")
    push(run, str(place))
    assert card.read_text().endswith("Edited there.\n")
    assert (pull(str(place), tmp_path / "two") / "README.md").read_text() == card.read_text()


def test_places_that_hold_something_else_are_refused(run, tmp_path):
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "thesis.tex").write_text("x")
    with pytest.raises(UserError, match="holds other files"):
        push(run, str(tmp_path / "full"))
    assert files_in(tmp_path / "full") == {"thesis.tex"}
    push(run, str(tmp_path / "place"))
    info = json.loads((run / "run.json").read_text())
    (run / "run.json").write_text(json.dumps({**info, "key": "another"}))
    with pytest.raises(UserError, match="another model"):
        push(run, str(tmp_path / "place"))
    push(run, str(tmp_path / "place"), overwrite=True)


def test_only_a_model_gives_way_to_what_is_pulled(run, tmp_path, monkeypatch):
    place, empty = tmp_path / "places" / "one", tmp_path / "empty"
    push(run, str(place))
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.tex").write_text("x")
    shutil.copytree(run, tmp_path / "around")
    shutil.copytree(place, tmp_path / "around" / "place")
    for source, target in (
        (place, "mine"),
        (place, "places"),
        (tmp_path / "around/place", "around"),
    ):
        before = files_in(tmp_path / target)
        with pytest.raises(UserError, match="Name another folder"):
            pull(str(source), tmp_path / target, overwrite=True)
        assert files_in(tmp_path / target) == before
    empty.mkdir()
    monkeypatch.chdir(empty)
    with pytest.raises(UserError, match="in which you"):
        pull(str(place), ".")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "link").symlink_to(empty)
    pull(str(place), tmp_path / "link")
    assert (tmp_path / "link").is_symlink()
    assert (empty / LISTED).is_file()


def test_a_folder_is_not_pushed_into_itself(run, tmp_path):
    push(run, str(tmp_path / "place"), rows=True)
    pulled = pull(str(tmp_path / "place"), tmp_path / "pulled")
    before = files_in(pulled)
    for address in (pulled, pulled / "inside"):
        with pytest.raises(UserError, match="in the folder that is pushed"):
            push(pulled, str(address))
    assert files_in(pulled) == before


def test_hidden_files_are_not_pushed_and_no_repository_is_pulled(run, tmp_path):
    (run / ".git").mkdir()
    (run / ".git" / "config").write_text("[core]")
    (run / ".env").write_text("TOKEN=1")
    push(run, str(tmp_path / "place"), everything=True, rows=True)
    assert not [name for name in files_in(tmp_path / "place") if name.startswith(".")]
    listed = Pushed.read(tmp_path / "place")
    entry = listed.files["run.json"]
    listed = replace(listed, files={**listed.files, "a/.GIT/config": entry})
    (tmp_path / "place" / LISTED).write_bytes(listed.to_bytes())
    with pytest.raises(ShareError, match="of a repository"):
        pull(str(tmp_path / "place"), tmp_path / "pulled")


def test_a_pull_goes_on_after_one_of_another_model(run, tmp_path):
    push(run, str(tmp_path / "place"))
    half = tmp_path / ".pulled.part"
    shutil.copytree(tmp_path / "place", half)
    for path in half.rglob("*.json"):
        path.write_text("of another")
    assert textmill.load(pull(str(tmp_path / "place"), tmp_path / "pulled"))(TEXT)


def test_a_license_that_no_card_would_have_is_refused(run, tmp_path):
    (run / "README.md").write_text("# Mine\n")
    with pytest.raises(UserError, match="license"):
        push(run, str(tmp_path / "place"), license="mit")
    assert not (tmp_path / "place").exists()


def test_a_damaged_run_is_not_pushed(run, tmp_path):
    weights = next(run.glob("checkpoints/*/model.safetensors"))
    for other in run.glob("checkpoints/step-*"):
        data = bytearray((other / "model.safetensors").read_bytes())
        data[-1] ^= 1
        (other / "model.safetensors").write_bytes(data)
    assert main(["push", str(run), str(tmp_path / "place")]) == 1
    assert weights.exists()
    assert not (tmp_path / "place").exists()


def test_a_link_is_not_pushed(run, tmp_path):
    (tmp_path / "secret").write_text("x")
    (run / "metrics.jsonl").unlink()
    (run / "metrics.jsonl").symlink_to(tmp_path / "secret")
    with pytest.raises(UserError, match="is a link"):
        push(run, str(tmp_path / "place"))


def test_a_file_that_is_not_as_pushed_is_refused(run, tmp_path):
    place, pulled = tmp_path / "place", tmp_path / "pulled"
    push(run, str(place))
    weights = next(place.glob("checkpoints/*/model.safetensors"))
    data = weights.read_bytes()
    for changed in (data[:-8], data[:-1] + bytes([data[-1] ^ 1]), None):
        weights.unlink() if changed is None else weights.write_bytes(changed)
        with pytest.raises(ShareError, match=r"is not as it was pushed|no such place"):
            pull(str(place), pulled)
        assert not pulled.exists()
    weights.write_bytes(data + b"never asked for")
    assert textmill.load(pull(str(place), pulled))(TEXT)


@pytest.mark.parametrize(
    "name", ["../x", "/etc/x", "a/../../x", "a//x", ".", "a\\x", "..", LISTED, "x\0y"]
)
def test_no_name_leads_out_of_the_folder(tmp_path, name):
    place = tmp_path / "place"
    place.mkdir()
    (tmp_path / "x").write_text("mine")
    entry = FileEntry.of(tmp_path / "x")
    listed = Pushed(files={name: entry}, source={"recipe": "r", "key": "k"}, left_out=[])
    (place / LISTED).write_bytes(listed.to_bytes())
    with pytest.raises(ShareError, match="is not a name inside the folder"):
        pull(str(place), tmp_path / "pulled")
    assert not (tmp_path / "pulled").exists()


def test_a_link_in_the_half_made_folder_is_not_followed(run, tmp_path):
    push(run, str(tmp_path / "place"))
    half = tmp_path / ".pulled.part"
    half.mkdir()
    (tmp_path / "mine").write_text("mine")
    (half / "run.json").symlink_to(tmp_path / "mine")
    with pytest.raises(textmill.errors.StorageError):
        pull(str(tmp_path / "place"), tmp_path / "pulled")
    assert (tmp_path / "mine").read_text() == "mine"


def test_an_unfinished_push_is_not_pulled_and_goes_on(run, tmp_path, monkeypatch):
    memory = fsspec.filesystem("memory")
    put, count = type(memory).put_file, [0]

    def failing(self, source, target, **how):
        count[0] += 1
        if count[0] == 9:
            raise ConnectionError("cut")
        return put(self, source, target, **how)

    monkeypatch.setattr(type(memory), "put_file", failing)
    with pytest.raises(ShareError, match="The same command goes on"):
        push(run, "memory://cut/one")
    assert memory.exists(f"/cut/one/{UNDER_WAY}")
    with pytest.raises(ShareError, match="has not ended"):
        pull("memory://cut/one", tmp_path / "pulled")
    again = push(run, "memory://cut/one")
    assert again.files - 4 <= again.brought < again.files
    assert not memory.exists(f"/cut/one/{UNDER_WAY}")
    assert textmill.load(pull("memory://cut/one", tmp_path / "pulled"))(TEXT)


def test_a_file_that_changes_under_way_is_told(run, tmp_path, monkeypatch):
    memory = fsspec.filesystem("memory")
    put = type(memory).put_file

    def changing(self, source, target, **how):
        put(self, source, target, **how)
        if target.endswith("metrics.jsonl"):
            Path(source).write_text(Path(source).read_text() + "\n")

    monkeypatch.setattr(type(memory), "put_file", changing)
    with pytest.raises(ShareError, match=r"metrics\.jsonl changed while it was pushed"):
        push(run, "memory://changing/one")
    with pytest.raises(ShareError, match="has not ended"):
        pull("memory://changing/one", tmp_path / "pulled")
    monkeypatch.undo()
    push(run, "memory://changing/one")
    pulled = pull("memory://changing/one", tmp_path / "pulled")
    assert (pulled / "metrics.jsonl").read_bytes() == (run / "metrics.jsonl").read_bytes()


def killed_when(words, when, pause=0.002, **env):
    """Starts a command and kills it once ``when()`` is true, which is asked again after a pause."""
    process = subprocess.Popen(
        [sys.executable, "-m", "textmill", *words], env={**os.environ, **env},
        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip
    end = time.monotonic() + 60
    while not when() and process.poll() is None and time.monotonic() < end:
        time.sleep(pause)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    return process.returncode == -signal.SIGKILL


def with_large_file(run):
    """A run that keeps a large file, of which a push and a pull take a while."""
    (run / "pretrained").mkdir()
    (run / "pretrained" / "large.bin").write_bytes(os.urandom(1 << 20) * 200)
    return run


@pytest.mark.slow
def test_a_killed_pull_and_a_killed_push_go_on(run, tmp_path):
    place, large = tmp_path / "place", "pretrained/large.bin"
    with_large_file(run)
    words = ["push", str(run), str(place)]
    assert killed_when(words, (place / large).exists)
    assert not (place / LISTED).exists()
    assert main(["pull", str(place), str(tmp_path / "pulled")]) == 1
    assert main(words) == 0
    half = tmp_path / ".pulled.part"
    words = ["pull", str(place), str(tmp_path / "pulled")]
    seen = half / large
    assert killed_when(words, lambda: seen.exists() and seen.stat().st_size > 1 << 24)
    assert not (tmp_path / "pulled").exists()
    assert seen.stat().st_size < 200 << 20
    number = seen.stat().st_ino
    assert main(words) == 0
    assert (tmp_path / "pulled" / large).stat().st_ino == number, "it went on in the same file"
    assert not half.exists()
    assert main(["runs", "verify", str(tmp_path / "pulled")]) == 0


def test_errors_say_what_to_do(run, tmp_path, monkeypatch, capsys):
    for asked, code, text in (
        (["push", str(tmp_path), "memory://a/b"], 2, "is not a run folder"),
        (["push", str(run), "nothing://a/b"], 2, "Protocol not known"),
        (["push", str(run), ""], 2, "The address is empty"),
        (["pull", "nothing://me:secret@a/b"], 2, "nothing://...@a/b"),
        (["push", str(run), "hf://only-a-name"], 2, "wanted hf://owner/name"),
        (["push", str(run), "memory://a/b", "--public"], 2, "is for a hub"),
        (["pull", "memory://never/there", str(tmp_path / "x")], 1, "nothing was pushed there"),
        (["pull", str(tmp_path / "never"), str(tmp_path / "x")], 1, "nothing was pushed there"),
    ):
        assert main(asked) == code, asked
        said = capsys.readouterr().err
        assert text in said
        assert "secret" not in said
    monkeypatch.setattr(stores.operations, "free", lambda folder: 10, raising=False)
    push(run, str(tmp_path / "place"))
    assert main(["pull", str(tmp_path / "place"), str(tmp_path / "x")]) == 1
    assert "There is no room" in capsys.readouterr().err
    monkeypatch.setitem(sys.modules, "fsspec", None)
    monkeypatch.setitem(sys.modules, "fsspec.core", None)
    assert main(["pull", "s3://a/b", str(tmp_path / "x")]) == 2
    assert "pip install 'textmill[hub]'" in capsys.readouterr().err
