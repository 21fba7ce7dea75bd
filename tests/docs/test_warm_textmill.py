"""The warm ``textmill`` that runs the pages' commands does what the cold one does."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.warm_textmill import warm_programs


@pytest.fixture
def run(tmp_path: Path):
    def run_line(line: str, **environment: str) -> subprocess.CompletedProcess[str]:
        path = f"{warm_programs()}{os.pathsep}{os.environ['PATH']}"
        return subprocess.run(
            ["bash", "-c", line],
            cwd=tmp_path,
            env={**os.environ, "PATH": path, "TEXTMILL_CACHE": str(tmp_path), **environment},
            capture_output=True,
            text=True,
            check=False,
        )

    return run_line


def test_it_has_the_folder_the_environment_and_the_open_files_of_the_caller(
    run, tmp_path: Path
) -> None:
    script = 'import os, sys\nprint(os.getcwd(), os.environ["X"], sys.stdin.read())\n'
    (tmp_path / "mine.py").write_text(f'"""Mine."""\n{script}')
    done = run("printf in | textmill help mine.py 2> errors > out", X="caller's")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert (tmp_path / "out").read_text().startswith(f"{tmp_path} caller's in\nMine.\n")
    assert (tmp_path / "errors").read_text() == ""


@pytest.mark.parametrize(
    ("module", "code"), [("textmill.text", 2), ("textmillless", 0), ("torch", 0)]
)
def test_what_textmill_uses_must_not_be_deprecated(
    run, tmp_path: Path, module: str, code: int
) -> None:
    warn = f'warnings.warn_explicit("old", DeprecationWarning, "a.py", 1, module="{module}")\n'
    (tmp_path / "warns.py").write_text(f'"""W."""\nimport warnings\n{warn}')
    assert run("textmill help warns.py").returncode == code


@pytest.mark.parametrize(
    ("words", "printed"),
    [
        ("-c 'import sys, one; print(sys.argv, one.X, __name__)' a", "['-c', 'a'] 1 __main__\n"),
        ("-m one b", "['{folder}/one.py', 'b'] __main__\n"),
    ],
)
def test_a_warm_python_takes_what_python_takes(
    run, tmp_path: Path, words: str, printed: str
) -> None:
    (tmp_path / "one.py").write_text(
        "import sys\nX = 1\nif __name__ != 'one':\n    print(sys.argv, __name__)\n"
    )
    for python in (sys.executable, "warm-python"):
        done = run(f"{python} {words}")
        assert (done.returncode, done.stderr) == (0, "")
        assert done.stdout == printed.format(folder=tmp_path)
        assert run(f"{python} -c 'raise SystemExit(3)'").returncode == 3
        failed = run(f"{python} -c 'import nowhere'")
        assert failed.returncode == 1
        assert failed.stderr.endswith("Error: No module named 'nowhere'\n")
