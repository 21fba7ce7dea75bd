"""``report.html``: it says what the run folder says, and no text of it does anything."""

import html
import json
import re

import pytest

from tests.runs.made_runs import made_run
from tests.runs.report.pages_of_html import HOSTILE, Page
from tests.trained_run import copy_of, library_run
from textmill.cli.main import main
from textmill.errors import UserError
from textmill.metrics.reporters.reporter import RunInfo
from textmill.recipes.planning import plan_recipe
from textmill.run_folder.folder import RunFolder, hardware
from textmill.runs.report.reporter import Html, write_report
from textmill.runs.resume import Run
from textmill.runtime.devices import Experiment


def page_of(run, **how):
    return Page(write_report(run, **how).read_text(encoding="utf-8"))


def test_a_trained_run_has_its_report(tmp_path):
    run = copy_of(library_run(), tmp_path / "run")
    assert (run / "report.html").is_file(), "written by the run itself"
    page = page_of(run)
    for title in ("Result", "Answers", "Curves", "Data", "Environment"):
        assert title in page.texts
    assert "finished" in page.texts
    info = json.loads((run / "run.json").read_text())
    assert info["starts"][0]["versions"]["torch"] in page.texts
    assert "The cat sleeps." in page.texts
    summary = info["data_summary"]["train_data"]
    assert summary["rows"] == 24
    assert summary["bad_rows"] == 0
    assert 0 < summary["padding"] < 1
    assert info["starts"][0]["hardware"] == hardware()


def test_settings_stand_beside_those_of_the_runs_own_experiment(tmp_path):
    name = "classification/docnn"
    page = page_of(made_run(tmp_path / "run", lr=0.5, recipe=name))
    own = plan_recipe(name, targets=["trainer"], draft=True).plan.settings["optimizer"]["lr"]
    rows = page.texts.index("optimizer.lr")
    assert page.texts[rows : rows + 3] == ["optimizer.lr", "0.5", str(own)]
    assert f"in {name}" in page.texts
    assert page.texts.index("All 5 settings") > rows
    assert "Settings" not in page_of(made_run(tmp_path / "other")).texts, "no such experiment"


def test_a_run_is_compared_with_the_one_chosen_or_the_one_before(tmp_path):
    first = made_run(tmp_path / "runs" / "a", lr=0.25)
    second = made_run(tmp_path / "runs" / "b", lr=0.5)
    page = page_of(second)
    assert f"Against {first} (A; this run is B)" in page.texts
    assert "0.25" in page.texts
    other = made_run(tmp_path / "elsewhere", lr=0.125)
    page = page_of(second, against=other)
    assert "0.125" in page.texts
    assert "0.25" not in page.texts
    with pytest.raises(UserError, match="is not a run folder"):
        write_report(second, against=tmp_path)


def test_labels_answers_and_loss_are_of_the_weights_that_are_kept(tmp_path):
    run = made_run(tmp_path / "run", best=20)
    with (run / "metrics.jsonl").open("a") as file:
        for step, f1 in ((10, 0.125), (20, 0.909), (30, 0.444)):
            line = {"split": "valid", "step": step, "label/ham/f1": f1, "label/ham/support": 3}
            file.write(json.dumps(line) + "\n")
    (run / "predictions").mkdir()
    rows = "".join(json.dumps({"row": i, "prediction": f"answer {i}"}) + "\n" for i in range(314))
    (run / "predictions" / "valid-step-00000020.jsonl").write_text(rows)
    texts = page_of(run).texts
    assert "90.9 %" in texts
    assert {"12.5 %", "44.4 %"}.isdisjoint(texts)
    assert texts[texts.index("valid loss") + 1] == "2.500"
    assert texts[texts.index("weights kept") + 1] == "step 20 of 30"
    assert "314 rows, the weights of step 20; less is better" in texts
    file = "predictions/valid-step-00000020.jsonl"
    assert f"200 of 314 rows. {file} has all 314 rows." in texts
    # While it runs, before the checkpoint is saved that the evaluation just made the best:
    texts = page_of(run, facts={"state": "running", "kept_step": 30}).texts
    assert "44.4 %" in texts
    assert texts[texts.index("weights kept") + 1] == "step 30 of 30"


def hostile_run(folder, word):
    """A run all of whose texts are the word."""
    safe = word.encode("utf-8", "backslashreplace").decode()
    run = made_run(folder, finished=False, recipe=safe, failed=safe, data={safe: safe})
    info = json.loads((run / "run.json").read_text())
    info["starts"] = [
        {"command": [safe], "versions": {safe: safe}, "git": {safe: safe}, "hardware": {safe: safe}}
    ] * 2
    info["data_summary"] = {
        safe: {"rows": safe, "padding": safe, "lengths": {safe: {"most": safe}}}
    }
    (run / "run.json").write_text(json.dumps(info))
    RunFolder(run).write_config(None, {safe: {safe: safe}, "task": {"type": safe}}, {}, swaps={})
    with (run / "metrics.jsonl").open("a") as file:
        file.write(json.dumps({"split": word, "step": 40, word: 1.5, "time": {word: 2}}) + "\n")
        file.write(json.dumps({"split": "valid", "step": 40, word: 2.5}) + "\n")
    rows = [
        {"row": 0, "source": word, "prediction": word, word: word, "references": [word, [word]]}
    ]
    (run / "predictions").mkdir()
    for split in ("valid", "test"):
        lines = "".join(json.dumps(row) + "\n" for row in rows)
        (run / "predictions" / f"{split}-step-00000040.jsonl").write_text(lines)
    bad = {"file": word, "line": word, "reason": word, "text_excerpt": word}
    (run / "bad_rows.jsonl").write_text(json.dumps(bad) + "\n")
    return run


@pytest.mark.parametrize("word", HOSTILE)
def test_hostile_texts_of_a_run_folder_stay_texts(tmp_path, word):
    if len(word) > 50_000:
        word = word[:20_000]  # a file of settings has 256,000 bytes at most
    page = page_of(hostile_run(tmp_path / "runs" / "a", word))
    assert {"img", "iframe", "link"}.isdisjoint(page.counts)
    assert page.counts["script"] == 2
    assert page.counts["title"] == 1


def started(run, **config):
    reporter = Html.Config(**config).build(xp=Experiment(folder=run))
    reporter.start(RunInfo())
    return reporter


def test_the_reporter_says_how_the_run_stands(tmp_path, monkeypatch):
    run = made_run(tmp_path / "run", finished=False)
    reporter = started(run)
    assert not (run / "report.html").exists()
    reporter.report("train", {"step": 10}, {"loss": 1.0})
    assert not (run / "report.html").exists()
    reporter.report("valid", {"step": 10}, {"loss": 1.0})
    reporter.examples("valid", {"step": 10}, [])
    assert not (run / "report.html").exists()  # it would take too much of so short a run
    monkeypatch.setattr("textmill.runs.report.reporter.SHARE", 1e9)
    reporter.examples("valid", {"step": 10}, [])
    assert "running" in Page((run / "report.html").read_text()).texts
    reporter.close()
    assert "not finished" in Page((run / "report.html").read_text()).texts
    again = started(run)
    again.end({"steps": 30, "best": {"step": 20, "bleu": 77.25}})
    again.close()
    page = Page((run / "report.html").read_text())
    assert {"finished", "77.25"} <= set(page.texts)


def test_the_command(tmp_path, capsys):
    run = made_run(tmp_path / "run")
    assert main(["runs", "report", str(run)]) == 0
    assert capsys.readouterr().out == f"{run}/report.html\n"
    out = tmp_path / "page.html"
    assert main(["runs", "report", str(run), "--against", str(run), "--output", str(out)]) == 0
    assert f"Against {run} (A; this run is B)" in Page(out.read_text()).texts
    assert main(["runs", "report", str(tmp_path)]) == 2
    assert "is not a run folder" in capsys.readouterr().err


def test_a_page_has_at_most_400_kb(tmp_path):
    run = made_run(tmp_path / "run")
    labels = {f"label/{n:04} {'long' * 50}/f1": 0.5 for n in range(2000)}
    with (run / "metrics.jsonl").open("a") as file:
        file.write(json.dumps({"split": "valid", "step": 20, **labels}) + "\n")
    (run / "predictions").mkdir()
    with (run / "predictions" / "valid-step-00000020.jsonl").open("w") as file:
        for n in range(1000):
            file.write(
                json.dumps({"row": n, "text": "<" * 1500, "prediction": "word " * 100}) + "\n"
            )
    assert 300_000 < len(write_report(run).read_bytes()) < 400_000


def test_a_run_shows_itself_in_a_frame(tmp_path):
    shown = Run(made_run(tmp_path / "run"))._repr_html_()
    frame = re.fullmatch('<iframe sandbox="allow-scripts" srcdoc="([^"]*)" [^>]*></iframe>', shown)
    assert "tiny/made" in Page(html.unescape(frame[1])).texts
