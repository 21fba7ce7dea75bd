"""``textmill predict --output`` goes on after any end, and writes what an undisturbed one does."""

import io
import itertools
import os
import subprocess
import sys
import tracemalloc
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.cli.killed_prediction import Together, command, write_place
from tests.cli.test_predict_formats import rows_of
from textmill.cli import predict
from textmill.cli.main import main
from textmill.cli.prediction import row_progress
from textmill.runs import prediction_file
from textmill.runs.partial_predictions import PartialPredictions


@pytest.fixture
def place(tmp_path, monkeypatch):
    """A folder with a file of 2,000 rows, one in nine bad, and a predictor in a run's place."""
    monkeypatch.chdir(tmp_path)
    write_place(tmp_path)
    monkeypatch.setattr(predict, "load_predictor", lambda _: Together())
    return tmp_path


def stopped(monkeypatch, row, *words, to="out.csv"):
    """What the command says that is stopped before the rows with that one are answered."""
    with monkeypatch.context() as patch:
        patch.setattr(Together, "stop_at", row)
        assert command(*words, to=to) == 130


@pytest.mark.parametrize("to", ["out.csv", "out.jsonl", "out.parquet"])
def test_a_command_that_was_stopped_goes_on_and_writes_the_same_bytes(
    place, monkeypatch, capsys, to
):
    assert command(to=to) == 1
    expected = Path(to).read_bytes()
    Path(to).unlink()
    for row, answers in ((300, 256), (1200, 1024), (1201, 1024), (1999, 1792)):
        capsys.readouterr()
        stopped(monkeypatch, row, to=to)
        assert capsys.readouterr().err == (
            f"\n{to}.part has {answers:,} answers; the same command goes on after them.\n\n"
        )
        assert not Path(to).exists()
    asked = []
    monkeypatch.setattr(
        Together,
        "check",
        lambda self, row, old=Together.check: (asked.append(row["text"]), old(self, row)),
    )
    assert command(to=to) == 1
    said = capsys.readouterr()
    assert said.out == f"{to}: 2,000 rows\n"
    assert said.err == "222 of 2,000 rows could not be answered: the column 'error' says why.\n"
    assert Path(to).read_bytes() == expected
    assert len(asked) == 2000 - 1792
    assert not Path(f"{to}.part").exists()


def test_what_is_stopped_before_its_first_answers_leaves_nothing(place, monkeypatch):
    stopped(monkeypatch, 1)
    assert {path.name for path in place.iterdir()} == {"rows.txt", "run"}


def test_an_output_that_is_there_is_not_replaced_unasked(place, monkeypatch, capsys):
    Path("out.csv").write_text("mine")
    assert command() == 2
    assert capsys.readouterr().err == (
        "error: --output out.csv: it is there already. Give another name, or let it be replaced: "
        "--overwrite.\n"
    )
    stopped(monkeypatch, 1200, "--overwrite")
    assert Path("out.csv").read_text() == "mine"
    assert command("--overwrite") == 1
    assert len(Path("out.csv").read_text().splitlines()) == 2001


def test_another_model_setting_or_file_is_refused_and_restart_begins_anew(
    place, monkeypatch, capsys
):
    stopped(monkeypatch, 300)
    capsys.readouterr()
    again = "Go on as it was begun, or begin anew: --restart.\n"

    assert main(["predict", "run", "rows.txt", "--output", "out.csv"]) == 2
    assert capsys.readouterr().err == (
        "error: out.csv.part has rows that were read with --lines, and this command reads them "
        f"with no settings. {again}"
    )
    Path("run", "export.json").write_text("{ }")
    assert command() == 2
    assert capsys.readouterr().err == (
        f"error: out.csv.part has answers of run, which was another model than run is now. {again}"
    )
    Path("run", "export.json").write_text("{}")
    text = Path("rows.txt").read_text()
    for other in (text.replace("row 7\n", "row 8\n"), text[:1000]):
        Path("rows.txt").write_text(other)
        assert command() == 2
        assert capsys.readouterr().err == (
            "error: out.csv.part has answers to 256 rows that are not the first of rows.txt. Go on "
            "with the file that they were read of, or begin anew: --restart.\n"
        )
    assert command("--restart") == 1
    assert rows_of(Path("out.csv"))[0]["prediction"] == "row 0: one of 130 from row 0"


def test_rows_that_were_added_are_answered_too(place, monkeypatch):
    stopped(monkeypatch, 1200)
    with Path("rows.txt").open("a") as file:
        file.write("one more\n")
    assert command() == 1
    assert len(rows_of(Path("out.csv"))) == 2001


def test_a_file_of_another_making_is_left_alone(place, capsys):
    part = Path("out.csv.part")
    for content in (b"mine\n", b"{}", b'{"format": "other"}\n'):
        part.write_bytes(content)
        for words in ((), ("--restart",)):
            assert command(*words) == 2
            assert capsys.readouterr().err == (
                "error: out.csv.part is not an unfinished file of textmill predict, which would "
                "write its answers there until they are complete. Move it away, or give another "
                "--output.\n"
            )
            assert part.read_bytes() == content
    part.unlink()
    part.symlink_to("rows.txt")
    assert command() == 1
    assert "it is a symbolic link" in capsys.readouterr().err


@pytest.mark.parametrize(
    "torn", [b"", b'{"digest": "12', b'{"digest"\n', b"\0" * 5000, b'\0\n{"rows": 1}\n']
)
def test_what_a_power_cut_leaves_is_cut_off(place, monkeypatch, torn):
    stopped(monkeypatch, 1200)
    with Path("out.csv.part").open("ab") as file:
        file.write(torn)
    assert command() == 1
    found = Path("out.csv").read_bytes()
    Path("out.csv").unlink()
    assert command() == 1
    assert Path("out.csv").read_bytes() == found


def test_a_file_that_changes_meanwhile_is_refused(tmp_path, monkeypatch, capsys):
    write_place(tmp_path)
    monkeypatch.chdir(tmp_path)
    rows = [{"text": f"row {n}"} for n in range(300)]
    pq.write_table(pa.Table.from_pylist(rows), "rows.parquet")

    class Changing(Together):
        def answers(self, asked):
            pq.write_table(pa.Table.from_pylist(rows[:200]), "other.parquet")
            Path("other.parquet").rename("rows.parquet")
            return super().answers(asked)

    monkeypatch.setattr(predict, "load_predictor", lambda _: Changing())
    monkeypatch.setattr(Together, "data", {"path": "rows.parquet", "columns": ["text"]})
    assert main(["predict", "run", "rows.parquet", "--output", "out.csv"]) == 2
    assert capsys.readouterr().err == (
        "error: The file that is read was changed while its rows were answered. Begin anew: "
        "--restart.\n"
    )
    assert not Path("out.csv").exists()


def test_one_process_at_a_time_writes_it(place, capsys):
    made_of = {"model": ("", ""), "reading": ""}
    with PartialPredictions(Path("out.csv"), **made_of):
        assert command() == 1
    assert capsys.readouterr().err == (
        "error: out.csv.part is being written by another process. Wait for it to end or stop it, "
        "or give another --output.\n"
    )


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (
            ["--output", "out.txt"],
            "--output out.txt: its suffix says how answers are written. Wanted .csv, .jsonl, "
            ".ndjson or .parquet, found .txt.",
        ),
        (
            ["--output", "none/out.csv"],
            "--output none/out.csv: there is no folder none. Make it first.",
        ),
        (["--output", "a.csv"], "--output a.csv: it is a folder. Name a file in it."),
        (
            ["--output", "rows.csv", "--overwrite"],
            "--output rows.csv: it is the file that is read. Give it another name.",
        ),
        (["--restart"], "--restart: is about the file of --output; name one, or leave it out."),
        (["--overwrite"], "--overwrite: is about the file of --output; name one, or leave it out."),
    ],
)
def test_what_cannot_be_written_is_said_before_a_model_is_loaded(
    place, monkeypatch, capsys, words, said
):
    monkeypatch.setattr(predict, "load_predictor", None)
    (place / "a.csv").mkdir()
    (place / "rows.csv").write_text("text\n")
    assert main(["predict", "run", "rows.csv", *words]) == 2
    assert capsys.readouterr().err == f"error: {said}\n"


def test_rows_that_are_typed_have_no_output(place, monkeypatch, capsys):
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO()))
    monkeypatch.setattr(sys.stdin, "isatty", lambda: True, raising=False)
    assert main(["predict", "run", "--output", "out.csv"]) == 2
    assert capsys.readouterr().err == (
        "error: --output: takes the answers to a file or a pipe; name a file of rows.\n"
    )


def test_a_terminal_shows_rows_rate_and_time_left(place, monkeypatch, capsys):
    monkeypatch.setattr(row_progress, "SECONDS_BETWEEN", 0)
    command()
    assert "rows/s" not in capsys.readouterr().err
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    command("--overwrite")
    said = capsys.readouterr().err
    assert "512 rows · " in said
    assert "rows/s · eta 1s" in said
    assert "writing out.csv" in said
    assert "reading the " not in said
    stopped(monkeypatch, 1200, "--overwrite")
    said = capsys.readouterr().err
    assert said.endswith(
        "\nout.csv.part has 1,024 answers; the same command goes on after them.\n\n"
    )
    command("--overwrite")
    assert "reading the 1,024 rows that are answered" in capsys.readouterr().err


def test_memory_does_not_grow_with_the_rows(place, monkeypatch):
    monkeypatch.setattr(prediction_file, "ROWS", 256)
    peaks = []
    for count in (4_000, 8_000):  # of 1 MB, which is read at once, each has more
        rows = (f"row {n} {'x' * 300}\n" for n in range(count))
        Path("rows.txt").write_text("".join(rows))
        tracemalloc.start()
        assert command("--overwrite", to="out.parquet") == 0
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[1] < 1.2 * peaks[0]


def test_every_failure_of_the_disk_leaves_what_goes_on(place, failing_disk, capsys):
    assert command() == 1
    expected = Path("out.csv").read_bytes()
    for k in itertools.count(1):
        Path("out.csv").unlink()
        with failing_disk(k) as disk:
            code = command()
        if disk.failed is None:
            break
        assert code == 1
        assert "cannot be written: No space left on device" in capsys.readouterr().err
        assert not Path("out.csv").exists() or Path("out.csv").read_bytes() == expected
        assert command("--overwrite") == 1
        assert Path("out.csv").read_bytes() == expected
        assert {path.name for path in place.iterdir()} == {"rows.txt", "run", "out.csv"}
    assert k > 15


def kill(folder, suffix, kills):
    """Kills the command at every call that changes the disk, and at random moments."""
    root = Path(__file__).parents[2]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(root), *sys.path])}
    done = subprocess.run(
        [sys.executable, "-m", "tests.cli.killed_prediction", suffix, str(kills)],
        **{"cwd": folder, "env": environment, "capture_output": True, "text": True},
        check=False,
    )
    assert done.returncode == 0, done.stderr
    calls, killed = map(int, done.stdout.split())
    assert calls > 15
    assert killed >= kills


def test_killed_at_any_call_it_goes_on_and_writes_the_same_bytes(tmp_path):
    kill(tmp_path, ".csv", 2)


@pytest.mark.slow
@pytest.mark.parametrize("suffix", [".csv", ".jsonl", ".parquet"])
def test_killed_at_random_moments_it_goes_on_and_writes_the_same_bytes(tmp_path, suffix):
    kill(tmp_path, suffix, 20)
