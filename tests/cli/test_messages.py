"""Wrong use: exit code 2, no traceback, and a text that says what was wanted and what to do."""

import contextlib
import fcntl
import json
import os
import pty
import shutil
import signal
import subprocess
import sys
import termios
import time

import pytest

from tests.preflight.test_check import SCRIPT
from tests.warm_textmill import warm_programs
from textmill.cli.main import main


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A folder with a recipe and a finished run of it."""
    folder = tmp_path_factory.mktemp("place")
    words = ["un", "deux", "trois", "quatre", "cinq"]
    rows = [f"{a} {b}\t{b} {a}" for a in words for b in words]
    (folder / "train.tsv").write_text("\n".join(rows) + "\n")
    (folder / "dev.tsv").write_text("\n".join(rows[:4]) + "\n")
    (folder / "recipe.py").write_text(SCRIPT)
    (folder / "doc.py").write_text('"""Nothing yet."""\n')
    (folder / "empty").mkdir()
    (folder / "broken.py").write_text("x = \n")
    with contextlib.chdir(folder):
        assert main(["train", "recipe.py", "--run-dir", "run"]) == 0
    return folder


@pytest.fixture
def use(place, monkeypatch, capsys):
    """Gives words to textmill in that folder; returns its exit code, stdout and stderr."""
    monkeypatch.chdir(place)
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setattr(sys, "argv", ["textmill"])

    def command(*words):
        capsys.readouterr()
        code = main([*words])
        out, err = capsys.readouterr()
        assert "Traceback" not in err
        return code, out, err

    return command


WRONG = {
    "help recpie.py": "recpie.py: no such script in {folder}. Did you mean 'recipe.py'?\n",
    "help empty": "empty is a folder, but not one that textmill train has written (no run.json",
    "help translation/tatoba": "no recipe is called 'translation/tatoba'. Did you mean",
    "help broken.py": "error: broken.py:1:5: not Python: invalid syntax.\n",
    "check doc.py": "3 problems:\n  no 'module' is specified, and task, optimizer need it. Define",
    "check recipe.py lr=abc foo=1 model": "3 problems:\n  command line: model: wanted name.setting",
    "check recipe.py --config none.yaml": "none.yaml: cannot be read: No such file or directory.\n",
    "check recipe.py --device toaster": "The device must be auto, cpu, cuda, cuda:N or mps, but is",
    "test doc.py -f module": "nothing was run.\n  no 'module' is specified. Define module in the",
    "train run lr=1e-3": "run/config.yaml:1:9: this run was made by the script run/recipe.py, and",
    "train recipe.py --run-dir recipe.py": "the run folder recipe.py cannot be made: File exists.",
    "train recipe.py --run-dir run max_steps=1": (
        "max_steps=1 sets trainer.max_steps\nerror: run is longer already: it has 2 steps"
    ),
    "evaluate run model.dim=3": "error: 'model.dim=3' cannot be set here: wanted settings of",
    "runs verify empty": "empty is not a run folder (no run.json and config.yaml in it). 'text",
    "show adamx": "error: nothing is registered as 'adamx'. Did you mean 'adam'? 'textmill list'",
}


@pytest.mark.parametrize("line", WRONG)
def test_wrong_use_is_said_with_what_is_meant(use, place, line):
    code, _, err = use(*line.split())
    assert WRONG[line].replace("{folder}", str(place)) in err
    assert code == 2


ENDS = {
    "train": "textmill train: error: the following arguments are required: recipe\n",
    "test recipe.py": "error: the following arguments are required: -f/--ingredient\n",
    "train recipe.py --agian": "error: no option '--agian'; did you mean '--again'?",
    "train recipe.py --epochs 3": "no option '--epochs'. In textmill it is trainer.max_epochs=3.\n",
    "train recipe.py --batch_size=8": "In textmill it is train_data.batch_size=8.\n",
    "train recipe.py --gpus 1": "In textmill it is the option --device cuda.\n",
    "train recipe.py --run_dir x": "no option '--run_dir'; did you mean '--run-dir'?\n",
    "train recipe.py --mode continuous_eval": "In textmill it is the command textmill watch RUNS.",
    "train recipe.py --verbose": "A setting is a word without dashes, after the others: name.sett",
    "continuous_eval a": "no command is called 'continuous_eval'; in textmill it is textmill watch",
    "predict run a b": "textmill predict: error: argument setting=value: found 'b'\n",
    "trian recipe.py": "textmill: error: no command is called 'trian'; did you mean 'train'? ",
}


@pytest.mark.parametrize("line", ENDS)
def test_a_wrong_command_line_shows_its_usage_and_what_is_wrong(use, line):
    code, out, err = use(*line.split())
    assert (code, out) == (2, "")
    assert err.startswith("usage: textmill")
    assert ENDS[line] in err


def test_a_run_is_found_by_its_config_and_repeats(use, place):
    code, out, err = use("train", "run", "--allow-code")
    assert (code, out) == (0, use("train", "recipe.py", "--run-dir", "run")[1])
    assert err == "This run is finished: run\n"
    code, out, _ = use("train", "run/config.yaml", "--allow-code")
    assert code == 0
    assert "run: runs/recipe/" in out
    assert (place / "run" / "checkpoints").is_dir()


def test_a_foreign_folder_does_not_end_the_list_of_runs(use, tmp_path, place):
    shutil.copytree(place / "run", tmp_path / "good")
    good = json.loads((place / "run" / "run.json").read_text())
    unreadable = ["[]", "{}", "{", "\xff"]
    odd = [json.dumps({**good, "result": {"best": best}}) for best in ([1], {"bleu": "high"})]
    for number, content in enumerate([*unreadable, *odd]):
        (tmp_path / f"bad{number}").mkdir()
        (tmp_path / f"bad{number}" / "run.json").write_text(content, encoding="latin-1")
    code, out, _ = use("runs", "list", str(tmp_path))
    assert code == 0
    assert out.count("unreadable") == len(unreadable)
    assert all(f"/bad{number} " in out for number in range(len(unreadable) + len(odd)))
    assert "good" in out


def test_verify_reads_the_pointers_too(use, tmp_path, place):
    def verify(name, change):
        shutil.copytree(place / "run", tmp_path / name)
        folder = tmp_path / name / "checkpoints"
        change(folder)
        code, out, _ = use("runs", "verify", str(tmp_path / name))
        return code, out

    assert verify("good", lambda folder: None)[0] == 0
    code, out = verify("missing", lambda folder: (folder / "last.json").unlink())
    assert (code, "last.json: missing\n" in out) == (1, True)
    code, out = verify("damaged", lambda folder: (folder / "best.json").write_text("{}"))
    assert code == 1
    assert "best.json" in out
    code, out = verify("dangling", lambda folder: shutil.rmtree(folder / "step-00000002"))
    assert (code, "last.json: it points to step-00000002, which is gone\n" in out) == (1, True)
    code, out = verify("empty", lambda folder: [shutil.rmtree(p) for p in folder.glob("step-*")])
    assert code == 1
    code, out = verify("none", shutil.rmtree)
    assert (code, out) == (1, "best.json: missing\n")  # run.json tells of a best one


def test_text_is_utf8_whatever_the_locale(tmp_path):
    plain = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    (tmp_path / "accents.py").write_text('print("déjà")\n', encoding="utf-8")
    command = [sys.executable, "-m", "textmill", "list", "tokenizer", "--include", "accents"]
    found = subprocess.check_output(command, cwd=tmp_path, env={**os.environ, **plain})
    assert found.startswith("déjà\n".encode())


@pytest.mark.parametrize("ending", [b"\x04", b"\x03"], ids=["Ctrl-D", "Ctrl-C"])
def test_predict_on_a_terminal_answers_each_line(place, ending):
    ours, theirs = pty.openpty()
    command = [warm_programs() / "textmill", "predict", "run"]
    process = subprocess.Popen(
        command, cwd=place, stdin=theirs, stdout=theirs, stderr=theirs, start_new_session=True,
        preexec_fn=_take_terminal,  # noqa: PLW1509
    )  # fmt: skip
    os.close(theirs)
    try:
        said = read_until(ours, b"> ")
        assert b"Type a line; an empty line, Ctrl-D or Ctrl-C ends." in said
        os.write(ours, b"un deux\n")
        assert read_until(ours, b"> ").count(b"\n") >= 2
        time.sleep(0.5)  # Python may print its prompt just before it listens to signals
        os.write(ours, ending)
        assert process.wait(120) == 0
    finally:
        process.kill()
        process.wait()
        os.close(ours)


def _take_terminal():
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # a shell's background jobs ignore it


def read_until(descriptor, end):
    found, start = b"", time.monotonic()
    while not found.endswith(end):
        assert time.monotonic() - start < 120, found
        found += os.read(descriptor, 4096)
    return found
