"""Two runs side by side: what differs is named, what is equal is not."""

import json
import os

import pytest

from tests.runs.made_runs import made_run
from textmill.cli.main import main
from textmill.errors import UserError
from textmill.run_folder.diff import compare, previous_run
from textmill.run_folder.record import Record


def lines_of(first, second, kind):
    found = compare(Record.read(first), Record.read(second))
    return {
        line.name: (line.first, line.second, line.change) for line in found if line.kind == kind
    }


def test_a_run_and_its_copy_differ_in_nothing(tmp_path):
    first, second = (made_run(tmp_path / name) for name in ("a", "b"))
    found = compare(Record.read(first), Record.read(second))
    assert {line.kind for line in found} == {"result"}
    assert {line.change for line in found} == {"="}


def test_each_kind_of_difference_is_named(tmp_path):
    first = made_run(tmp_path / "a")
    second = made_run(tmp_path / "b", lr=0.003, data={"train_data": "e" * 64})
    (second / "recipe.py").write_text("model = 2\n")
    (second / "own.py").write_text("")
    info = json.loads((second / "run.json").read_text())
    info["starts"][0]["versions"]["torch"] = "2.14.0"
    info["starts"][0]["git"]["commit"] = "b" * 40
    (second / "run.json").write_text(json.dumps(info))
    assert lines_of(first, second, "setting") == {"optimizer.lr": ("0.001", "0.003", "")}
    assert lines_of(first, second, "version") == {"torch": ("2.13.0", "2.14.0", "")}
    assert lines_of(first, second, "git") == {"commit": ("a" * 40, "b" * 40, "")}
    assert lines_of(first, second, "data") == {"train_data": ("d" * 12, "e" * 12, "")}
    code = lines_of(first, second, "code")
    assert set(code) == {"recipe.py", "own.py"}
    assert code["own.py"][0] == "-"
    assert code["recipe.py"][0] != code["recipe.py"][1]


def test_results_have_their_change(tmp_path):
    first = made_run(tmp_path / "a")
    second = made_run(tmp_path / "b", result={"steps": 30, "best": {"step": 30, "bleu": 30.25}})
    assert lines_of(first, second, "result")["best.bleu"] == ("28.50", "30.25", "+1.750")
    assert lines_of(second, first, "result")["best.bleu"] == ("30.25", "28.50", "-1.750")
    assert lines_of(first, second, "result")["best.step"] == ("20", "30", "+10")


def test_results_are_those_of_the_weights_that_are_kept(tmp_path):
    first, second, unfinished, nothing = (
        made_run(tmp_path / "a", best=10),
        made_run(tmp_path / "b", best=30),
        made_run(tmp_path / "c", best=20, finished=False),
        made_run(tmp_path / "d", best=None, result={"steps": 30}),
    )
    found = lines_of(first, second, "result")
    assert found["valid.loss"] == ("3.500", "1.500", "-2.000")
    assert found["train.loss"] == ("3.000", "1.000", "-2.000")
    found = lines_of(unfinished, nothing, "result")
    assert found["valid.loss"] == ("2.500", "1.500", "-1.000"), "best.json; else the last"
    used = {"steps": 30, "best": {"step": 20, "bleu": 28.5}, "weights": {"step": 10}}
    other = made_run(tmp_path / "e", best=20, result=used)
    assert lines_of(first, other, "result")["valid.loss"] == ("3.500", "3.500", "=")


def test_a_change_is_in_percent_where_both_values_are(tmp_path):
    first, second, third = (
        made_run(tmp_path / name, result={"steps": 30, "best": {"step": 30, "f1": value}})
        for name, value in (("a", 0.5), ("b", 0.75), ("c", 12.5))
    )
    assert lines_of(first, second, "result")["best.f1"] == ("50.0 %", "75.0 %", "+25.0 %")
    assert lines_of(first, third, "result")["best.f1"] == ("50.0 %", "12.50", "+12.00")
    fourth = made_run(tmp_path / "d", result={"steps": 30, "best": {"step": 30, "f1": 12.0}})
    assert lines_of(third, fourth, "result")["best.f1"] == ("12.50", "12.00", "-0.5000")


def test_the_command(tmp_path, capsys):
    first, second = made_run(tmp_path / "a"), made_run(tmp_path / "b", lr=0.003, finished=False)
    assert main(["runs", "compare", str(first), str(second)]) == 0
    out = capsys.readouterr().out
    assert out.startswith(f"A  {first} (finished)\nB  {second} (not finished)\n")
    assert "\nsettings          A      B\noptimizer.lr  0.001  0.003\n" in out
    assert "\nCode: the same\n" in out
    assert "best.bleu   28.50      -\n" in out


def test_what_is_no_run(tmp_path, capsys):
    run = made_run(tmp_path / "a")
    assert main(["runs", "compare", str(run), str(tmp_path)]) == 2
    assert capsys.readouterr().err == (
        f"error: {tmp_path} is not a run folder (no run.json and config.yaml in it). "
        "'textmill runs list' shows the runs there are.\n"
    )


def test_a_damaged_record_is_a_clear_error(tmp_path):
    run = made_run(tmp_path / "a")
    (run / "run.json").write_text("{")
    with pytest.raises(UserError, match="is not the JSON a run writes"):
        Record.read(run)


@pytest.mark.parametrize("name", ["config.yaml", "run.json", "metrics.jsonl", "recipe.py"])
def test_a_pipe_in_a_run_folder_is_not_waited_for(tmp_path, name, capsys):
    run = made_run(tmp_path / "a")
    (run / name).unlink(missing_ok=True)
    os.mkfifo(run / name)
    for words in (["list", str(tmp_path)], ["compare", str(run), str(run)], ["report", str(run)]):
        main(["runs", *words])
    assert "bug" not in capsys.readouterr().err


def test_the_previous_run_is_the_one_written_last(tmp_path):
    first, second, third = (made_run(tmp_path / name) for name in "abc")
    for age, run in enumerate((third, first, second)):
        os.utime(run / "run.json", (1e9 - age, 1e9 - age))
    assert previous_run(third) == first
    assert previous_run(first) == third
    assert previous_run(tmp_path / "none" / "x") is None
