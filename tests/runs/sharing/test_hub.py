"""Push and pull with the client of ``huggingface_hub``, by a stand-in for a hub."""

import os
from pathlib import Path

import huggingface_hub
import pytest
from huggingface_hub import HfFileSystem, constants

import textmill
from tests.runs.sharing.hub import TOKEN, serving
from tests.runs.sharing.test_push_and_pull import TEXT, killed_when
from textmill.cli.main import main
from textmill.runs.sharing.pushed import LISTED, Pushed, ShareError
from textmill.runs.sharing.stores import open_store

PLACE = "hf://ann/topics"
pytestmark = pytest.mark.filterwarnings("ignore:Use 'content=:DeprecationWarning")  # the client's


@pytest.fixture
def hub(monkeypatch, tmp_path):
    with serving() as made:
        template = f"{made.url}/{{repo_id}}/resolve/{{revision}}/{{filename}}"
        monkeypatch.setattr(constants, "ENDPOINT", made.url)
        monkeypatch.setattr(constants, "HUGGINGFACE_CO_URL_TEMPLATE", template)
        monkeypatch.setattr(constants, "HF_HUB_DISABLE_XET", True)
        for name, value in environment(made, tmp_path).items():
            monkeypatch.setenv(name, value)
        HfFileSystem.clear_instance_cache()
        yield made


def environment(hub, tmp_path):
    return {
        "HF_ENDPOINT": hub.url, "HF_TOKEN": TOKEN, "HF_HUB_DISABLE_XET": "1",
        "HF_HOME": str(tmp_path / "hf"),
    }  # fmt: skip


def test_a_model_goes_to_a_hub_and_comes_back(run, hub, tmp_path, capsys):
    assert main(["push", str(run), PLACE, "--license", "mit"]) == 0
    assert hub.repos["ann/topics"]["private"]
    files = hub.files("ann/topics")
    assert huggingface_hub.ModelCard(files["README.md"].decode()).data.license == "mit"
    assert LISTED in files
    assert not [name for name in files if "optimizer" in name or name.startswith("predictions")]
    assert main(["pull", PLACE, str(tmp_path / "pulled")]) == 0
    assert textmill.load(tmp_path / "pulled")(TEXT) == textmill.load(run)(TEXT)
    assert main(["runs", "verify", str(tmp_path / "pulled")]) == 0
    before = hub.files("ann/topics")
    hub.uploads.clear()
    assert main(["push", str(run), PLACE]) == 0
    assert hub.uploads == []
    (run / "metrics.jsonl").write_text("")
    assert main(["push", str(run), f"{PLACE}@next"]) == 0
    assert not [name for name in hub.uploads if name.endswith("config.yaml")]
    assert hub.files("ann/topics") == before
    assert not hub.files("ann/topics", "next")["metrics.jsonl"]
    assert main(["pull", f"{PLACE}@next", str(tmp_path / "next")]) == 0
    assert not (tmp_path / "next" / "metrics.jsonl").read_bytes()
    sha = hub.repos["ann/topics"]["branches"]["main"]
    assert main(["pull", f"{PLACE}@{sha}", str(tmp_path / "sha")]) == 0
    assert (tmp_path / "sha" / "metrics.jsonl").read_bytes()


def test_of_two_pushes_at_once_the_second_is_refused(run, hub):
    first = open_store(PLACE, to_push=True)
    textmill.push(run, PLACE)
    before = hub.files("ann/topics")
    made = Pushed(files={}, source={"recipe": "other", "key": "x"}, left_out=[])
    with pytest.raises(ShareError, match="412"):
        first.put({}, [], made, made, lambda size: None)
    assert hub.files("ann/topics") == before


def test_a_public_place_is_asked_for(run, hub, capsys):
    assert main(["push", str(run), PLACE, "--public"]) == 0
    assert not hub.repos["ann/topics"]["private"]
    assert main(["push", str(run), PLACE]) == 2
    assert "everyone would see the model" in capsys.readouterr().err
    hub.repos["ann/other"] = {
        "private": True, "branches": {"main": "a" * 40}, "commits": {"a" * 40: {"model.bin": b"x"}}
    }  # fmt: skip
    assert main(["push", str(run), "hf://ann/other"]) == 2
    assert "holds other files" in capsys.readouterr().err


def test_what_a_hub_refuses_is_said(run, hub, tmp_path, monkeypatch, capsys):
    out = str(tmp_path / "pulled")

    def said(asked):
        assert main(asked) == 1
        text = capsys.readouterr().err
        assert "Traceback" not in text
        return text

    assert "no permission" in said(["pull", "hf://ann/never", out]) or "no such place"
    assert main(["push", str(run), PLACE]) == 0
    assert "no such place" in said(["pull", f"{PLACE}@never", out])
    for status, text in ((401, "hf auth login"), (403, "no permission"), (404, "no such place")):
        hub.wrong = lambda method, path, status=status: status
        assert text in said(["pull", PLACE, out])
        assert text in said(["push", str(run), PLACE])
    hub.wrong = lambda method, path: 500 if "resolve" in path and "model.saf" in path else None
    monkeypatch.setattr("huggingface_hub.utils._http.time.sleep", lambda seconds: None)
    assert "cannot be reached" in said(["pull", PLACE, out])
    hub.wrong = lambda method, path: None
    assert not Path(out).exists()
    assert main(["pull", PLACE, out]) == 0
    monkeypatch.delenv("HF_TOKEN")
    HfFileSystem.clear_instance_cache()
    assert "no permission" in said(["pull", PLACE, str(tmp_path / "other")])
    assert "no permission" in said(["push", str(run), "hf://ann/third"])
    monkeypatch.setattr(constants, "ENDPOINT", "http://127.0.0.1:9")
    assert "cannot be reached" in said(["pull", PLACE, str(tmp_path / "other")])


@pytest.mark.slow
def test_a_killed_push_leaves_nothing_that_is_pulled_and_goes_on(run, hub, tmp_path, capsys):
    (run / "pretrained").mkdir()
    for number in range(8):
        (run / "pretrained" / f"{number}.bin").write_bytes(os.urandom(1 << 20))
    asked = ["push", str(run), PLACE]
    assert killed_when(asked, lambda: len(hub.uploads) > 2, **environment(hub, tmp_path))
    assert main(["pull", PLACE, str(tmp_path / "pulled")]) == 1
    assert "nothing was pushed there" in capsys.readouterr().err
    first = set(hub.uploads)
    hub.uploads.clear()
    assert main(asked) == 0
    assert first.isdisjoint(hub.uploads), "what is there does not travel again"
    assert main(["pull", PLACE, str(tmp_path / "pulled")]) == 0
    assert (tmp_path / "pulled" / "pretrained" / "7.bin").stat().st_size == 1 << 20
