"""``textmill serve``: of a run and of an export, its messages, and what the Dockerfile does."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import textmill
from tests.pipelines import small_models
from tests.serving.served import started
from tests.trained_run import library_run
from tests.warm_textmill import warm_programs
from textmill.cli.main import main
from textmill.errors import UserError
from textmill.pipelines import ReferenceParser
from textmill.runs.export import export
from textmill.serving.server import read_token

ROOT = Path(__file__).parents[2]
DOCKERFILE = (ROOT / "examples" / "serve" / "Dockerfile").read_text()
SOURCE = "The cat sleeps."


def instructions():
    whole = re.sub(r"\\\n", " ", re.sub(r"^#.*\n", "", DOCKERFILE, flags=re.MULTILINE))
    return [line.split(maxsplit=1) for line in whole.splitlines() if line]


def textmill_command(*words):
    """The command as it is typed."""
    return [warm_programs() / "textmill", *words]


@pytest.fixture(scope="module")
def exported(tmp_path_factory):
    pytest.importorskip("ctranslate2")
    return export(library_run(), "ctranslate2", out=tmp_path_factory.mktemp("e") / "model").folder


def test_it_serves_a_run_as_the_run_answers():
    predictor = textmill.load(library_run())
    with started(textmill_command("serve", str(library_run()), "--port", "0")) as served:
        found = served.ask([SOURCE, {"source": "Go."}])
        assert found.json() == [predictor.answer_row(a) for a in predictor([SOURCE, "Go."])]
        model = served.get("model").json()
        assert (model["columns"], len(model["examples"])) == (["source"], 6)
        assert set(model["examples"][0]) == {"source"}
        assert served.end() == (0, "")


def test_it_serves_an_export(exported):  # without torch: tests/exported/test_without_torch.py
    predictor = textmill.exported.load(exported)
    with started(textmill_command("serve", str(exported), "--port", "0")) as served:
        assert served.ask(SOURCE).json() == predictor.answer_row(predictor(SOURCE))
        answer = served.get("openapi.json").json()["components"]["schemas"]["TranslatedRow"]
        assert answer["required"] == ["prediction", "score"]
        assert served.get("model").json()["examples"] == []


REFERENCES = "\n".join(text for text, _ in small_models.REFERENCES)


def test_a_pipeline_s_own_model_is_served(tmp_path, monkeypatch):
    """Texts as rows, and a file of them as the body."""
    run = small_models.reference_run()
    (tmp_path / "models").mkdir()
    (tmp_path / "models/reference-parser").symlink_to(run)
    monkeypatch.setenv("TEXTMILL_HOME", str(tmp_path))
    pipeline = ReferenceParser(run)
    with started(textmill_command("serve", "--pipeline", "reference-parser", "--port", "0")) as s:
        texts = REFERENCES.splitlines()
        wanted = [result.row() for result in pipeline(texts)]
        assert s.ask(texts).json() == [{"results": [row]} for row in wanted]
        lines = [{**row, "line": number} for number, row in enumerate(wanted, start=1)]
        assert s.send(REFERENCES).json() == {"results": lines}
        model = s.get("model").json()
        assert (model["name"], model["files"]) == ("reference-parser", [".pdf", ".txt"])
        assert set(model["examples"][0]) == {"text"}
        row = s.get("openapi.json").json()["components"]["schemas"]["ParsedReferenceRow"]
        assert row["required"] == ["text"]


@pytest.mark.slow
def test_it_serves_a_pipeline_without_torch():
    folder = small_models.exported(small_models.reference_run(), "onnx")
    words = ["serve", str(folder), "--pipeline", "reference-parser", "--port", "0"]
    code = "import sys; sys.modules['torch'] = None\n"
    code += "from textmill.cli.main import main; sys.exit(main())"
    with started([sys.executable, "-c", code, *words]) as served:
        found = served.ask(REFERENCES.splitlines()[0]).json()["results"][0]
        assert found["fields"]["author"] == "A. Lee."


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([], "Name a run or an export to serve, or --pipeline NAME."),
        (["--pipeline", "reference-parsr"], "reference-parser"),
        (["--pipeline", "summarizer"], "There is no model for summarizer"),
        (["--pipeline", "reference-parser", "--checkpoint", "last"], "takes the best checkpoint"),
    ],
)
def test_what_is_no_pipeline_is_said(words, said, capsys, monkeypatch, tmp_path):
    monkeypatch.setenv("TEXTMILL_HOME", str(tmp_path))
    assert main(["serve", *words, "--port", "0"]) == 2
    assert said in capsys.readouterr().err


def test_a_server_for_others_without_a_token_says_so(exported):
    with started(textmill_command("serve", str(exported), "--port", "0", "--host", "0.0.0.0")) as s:
        assert "0.0.0.0:" in s.url
        assert s.get("health", headers={"Host": "any.example"}).status_code == 200
        # started() reads the lines before the address
    done = subprocess.run(
        textmill_command("serve", "nowhere", "--port", "0", "--host", "0.0.0.0"),
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.stderr.startswith("Whoever reaches 0.0.0.0 can ask: there is no token.")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--port", "70000"], "127.0.0.1:70000 cannot be served at: "),
        (["--host", "192.0.2.1"], "192.0.2.1:8000 cannot be served at: "),
        (["--items", "0"], "--items is a number above 0; found 0."),
        (["--window", "-1"], "--window is a number 0 or above; found -1.0."),
        (["--token-file", "nowhere"], "The token's file cannot be used: nowhere: missing."),
    ],
)
def test_what_cannot_be_is_said_before_a_model_is_loaded(words, said, capsys):
    assert main(["serve", "no-such-run", *words]) == 2
    assert said in capsys.readouterr().err


def test_a_port_that_is_taken_is_said(exported, capsys):
    with started(textmill_command("serve", str(exported), "--port", "0")) as served:
        port = str(served.address[1])
        assert main(["serve", str(exported), "--port", port]) == 2
    assert f"127.0.0.1:{port} cannot be served at: Address already" in capsys.readouterr().err


def test_a_package_that_is_not_there_is_said_with_its_extra(capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "httptools", None)
    assert main(["serve", "run"]) == 2
    said = capsys.readouterr().err
    assert "'httptools'" in said
    assert "textmill[serve]" in said


def test_the_image_has_what_an_export_needs():  # and no torch: tests/exported/test_without_torch.py
    installs = [text for name, text in instructions() if text.startswith("pip install")]
    assert [text.split()[-1] for text in installs] == ["pip", "'.[exported,serve]'"]
    assert all("-c constraints.txt" in text for text in installs)
    for name, text in instructions():
        assert name in {
            "FROM", "WORKDIR", "COPY", "RUN", "USER", "ENV", "EXPOSE", "HEALTHCHECK", "CMD",
        }  # fmt: skip
        if name == "COPY" and "--from" not in text:
            assert all((ROOT / source).exists() for source in text.split()[:-1])
    names = [name for name, _ in instructions()]
    assert dict(instructions())["USER"] == "10001"
    assert names.index("USER") > max(i for i, name in enumerate(names) if name in ("RUN", "COPY"))


def test_the_commands_of_the_image_serve_and_look_after_it(exported):
    said = dict(instructions())
    words = json.loads(said["CMD"])
    assert words[:3] == ["textmill", "serve", "/model"]
    here = {"/model": str(exported), "8000": "0"}
    words = [here.get(word, word) for word in words[1:]]
    with started(textmill_command(*words)) as served:
        assert served.ask(SOURCE).status_code == 200
        check = json.loads(said["HEALTHCHECK"].removeprefix("CMD "))
        check = [word.replace("8000", str(served.address[1])) for word in check]
        run = subprocess.run([sys.executable, *check[1:]], check=False, env=dict(os.environ))
        assert run.returncode == 0


@pytest.mark.parametrize(
    ("text", "mode", "said"),
    [
        ("a" * 32, 0o640, "is not only yours to read (its mode is 640)"),
        ("short", 0o600, "wanted one line of 16 letters and digits or more"),
        ("two\nlines of a token", 0o600, "wanted one line of 16 letters and digits or more"),
        ("a-token.of_letters~and+digits/019==\n", 0o600, None),
    ],
)
def test_a_token_is_the_only_line_of_a_file_of_ones_own(tmp_path, text, mode, said):
    file = tmp_path / "token"
    file.write_text(text)
    file.chmod(mode)
    if said is None:
        assert read_token(file) == text.strip()
        return
    with pytest.raises(UserError) as refused:
        read_token(file)
    assert said in str(refused.value)
