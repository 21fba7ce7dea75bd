"""The entry of the command line: exit codes, what is imported, what an error looks like."""

import importlib
import os
import subprocess
import sys
import textwrap

import pytest

from tests.trained_run import library_run
from textmill.cli.main import COMMANDS, _function, main
from textmill.errors import NonFiniteError, UserError


@pytest.fixture
def command(monkeypatch, tmp_path):
    """A command ``boom`` whose module is written by the test."""

    def add(body: str) -> None:
        text = "def add(parser):\n    parser.add_argument('words', nargs='*')\n"
        text += f"def run(args):\n{textwrap.indent(textwrap.dedent(body), '    ')}\n"
        (tmp_path / "textmill_boom.py").write_text(text)
        sys.modules.pop("textmill_boom", None)
        monkeypatch.syspath_prepend(tmp_path)
        monkeypatch.setitem(COMMANDS, "boom", ("textmill_boom", "fails"))

    return add


def test_a_command_returns_its_code(command):
    command("return 7 if args.words == ['a=b'] else 0")
    assert main(["boom", "a=b"]) == 7
    assert main(["boom"]) == 0


@pytest.mark.parametrize(("given", "taken"), [(None, "PASSIVE"), ("ACTIVE", "ACTIVE")])
def test_waiting_threads_sleep_unless_the_caller_says_otherwise(given, taken):
    asks = "import os; from textmill.cli.main import main; main()"
    asks += "; print(os.environ['OMP_WAIT_POLICY'])"
    environment = {k: v for k, v in os.environ.items() if k != "OMP_WAIT_POLICY"}
    environment |= {"OMP_WAIT_POLICY": given} if given else {}
    told = subprocess.run(
        [sys.executable, "-c", asks], env=environment, capture_output=True, text=True, check=True
    )
    assert told.stdout.splitlines()[-1] == taken


def test_options_and_settings_come_in_any_order(command, monkeypatch, tmp_path):
    command("return 7 if (args.name, args.words) == ('x', ['a=b', 'c=d']) else 1")
    module = tmp_path / "textmill_boom.py"
    add = "parser.add_argument('-f', dest='name', required=True)\n"
    module.write_text(module.read_text().replace("parser.add", f"{add}    parser.add", 1))
    assert main(["boom", "-f", "x", "a=b", "c=d"]) == 7
    assert main(["boom", "a=b", "-f", "x", "c=d"]) == 7
    assert main(["boom", "a=b", "c=d"]) == 2


@pytest.mark.parametrize("kind", [UserError, NonFiniteError])
def test_an_error_of_ours_is_its_message_and_its_code(command, capsys, kind):
    command(f"from textmill.errors import {kind.__name__} as E\nraise E('it cannot be.')")
    assert main(["boom"]) == kind.exit_code
    assert capsys.readouterr().err == "error: it cannot be.\n"


def test_an_error_of_an_ingredient_names_it_and_its_line(command, capsys, tmp_path):
    script = tmp_path / "recipe.py"
    script.write_text("def box():\n    return 1 / 0\n")
    command(
        f"""
        from pathlib import Path
        from textmill.config.ingredient import IngredientTable
        from textmill.config.planning.plan import make_plan
        from textmill.config.sources.script import load_script
        table = load_script(Path({str(script)!r}))
        make_plan(table, defaults=IngredientTable("none", {{}}), targets=["box"]).start().get("box")
        """
    )
    assert main(["boom"]) == 1
    err = capsys.readouterr().err
    assert f"  in the ingredient 'box' ({script}:1:1)\n  raised at {script}:2\n" in err


def test_an_unexpected_error_is_one_paragraph_and_debug_shows_all(command, capsys, tmp_path):
    command("raise KeyError('x')")
    assert main(["boom"]) == 1
    assert capsys.readouterr().err == (
        "error: KeyError: 'x'\n"
        f"  raised at {tmp_path / 'textmill_boom.py'}:4\n"
        "  This is a bug in textmill, or an error in the recipe; --debug shows the traceback.\n"
    )
    with pytest.raises(KeyError):
        main(["boom", "--debug"])


def test_control_c_is_130(command):
    command("raise KeyboardInterrupt")
    assert main(["boom"]) == 130


def test_every_command_is_in_the_help_and_has_its_module(capsys):
    assert main([]) == 0
    text = capsys.readouterr().out
    for name, (module, line) in COMMANDS.items():
        assert f"    {name}" in text
        assert line in " ".join(text.split())
        found = importlib.import_module(module)
        assert callable(_function(found, "add", name))
        assert callable(_function(found, "run", name))


def test_every_command_has_a_help_of_its_own(capsys):
    for name in COMMANDS:
        assert main([name, "--help"]) == 0
        assert capsys.readouterr().out.startswith(f"usage: textmill {name}")


def children_seconds():
    """Of the processor; of the clock on the wall other processes take their share."""
    used = os.times()
    return used.children_user + used.children_system


def test_the_entry_is_quick():
    code = "import sys; from textmill.cli.main import main; sys.exit(main(['--help']))"
    times = []
    for _ in range(3):
        start = children_seconds()
        found = subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, check=False
        )
        times.append(children_seconds() - start)
        assert found.returncode == 0, found.stderr
    assert min(times) < 0.3


def test_a_closed_pipe_is_no_error_text():
    code = "import sys; from textmill.cli.main import main; sys.exit(main(['list']))"
    script = f'"{sys.executable}" -c "{code}" | true'
    found = subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=False)
    assert found.stderr == ""


def test_an_error_passes_no_escape_sequence_to_the_terminal(command, capsys):
    command("from textmill.errors import UserError\nraise UserError(args.words[0])")
    assert main(["boom", "\x1b]0;x\x07\x1b[2J\r\x9b\udcff\tü\n"]) == 2
    assert capsys.readouterr().err == r"error: \x1b]0;x\x07\x1b[2J\r\x9b\udcff" + "\tü\n\n"


def test_what_the_system_refuses_about_a_file_is_no_bug(command, capsys):
    command("raise OSError(36, 'File name too long', args.words[0])")
    assert main(["boom", "x" * 400]) == 1
    assert capsys.readouterr().err == f"error: {'x' * 300}: File name too long.\n"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--nproc", "0"], "wanted a number of processes from 1, found '0'"),
        (["--max-restarts", "2"], "--max-restarts is for several processes: give --nproc too."),
        (["--nproc", "2", "--max-restarts", "2", "--again"], "--again trains in the next free"),
    ],
)
def test_what_several_processes_cannot_be_started_with(words, message, capsys):
    assert main(["train", "translation/demo/local", *words]) == 2
    assert message in capsys.readouterr().err


def test_a_run_goes_on_in_several_processes(monkeypatch):
    told = []
    monkeypatch.setattr(
        "textmill.launch.processes.launch", lambda words, **_: told.append(words) or 0
    )
    run = str(library_run())
    assert main(["train", run, "trainer.max_steps=9", "--nproc", "2"]) == 0
    assert main(["train", "--debug", run, "--nproc", "2"]) == 0
    assert told == [["train", run, "trainer.max_steps=9"], ["train", run, "--debug"]]
