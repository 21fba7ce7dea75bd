import io
import json
import re
import sys
import types
from pathlib import Path

import pytest

from textmill.metrics.reporters.console import Console, ValuesTable
from textmill.metrics.reporters.reporter import RunInfo

PROGRESS = {
    "step": 1200,
    "total": 20000,
    "epoch": 2.31,
    "examples": 76800,
    "time": {"elapsed": 100.0, "eta": 754.0, "target_tokens_per_second": 7431.8},
}
VALUES = {"loss": 3.1418, "lr": 0.0012, "padding": 0.0191}


class Screen(io.StringIO):
    """A terminal as far as ``isatty`` goes."""

    def isatty(self):
        return True


@pytest.fixture(autouse=True)
def plain_environment(monkeypatch):
    for name in ("NO_COLOR", "FORCE_COLOR", "TTY_COMPATIBLE", "TTY_INTERACTIVE", "COLORTERM"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setenv("COLUMNS", "120")
    return


def shown(stream, **settings):
    console = Console.Config(**settings).build(stream=stream)
    directions = {"loss": "lower", "bleu": "higher"}
    console.start(RunInfo(recipe="tatoeba.py", folder=Path("runs/t"), directions=directions))
    console.tick({"step": 1})
    console.report("train", PROGRESS, VALUES)
    console.report("valid", PROGRESS, {"loss": 2.871, "bleu": 28.337})
    console.report("valid", {**PROGRESS, "step": 2400}, {"loss": 2.5, "bleu": 30.0})
    console.end({"step": 2400, "bleu": 30.0, "best": {"step": 2400}})
    console.close()
    return stream.getvalue()


def test_lines_off_a_terminal():
    assert shown(io.StringIO()) == (
        "tatoeba.py · runs/t\n"
        "step 1,200 · epoch 2.3 · loss 3.142 · lr 0.0012 · padding 1.9 % · "
        "7,432 target tokens/s · eta 12m\n"
        "valid at step 1,200 · loss 2.871 · bleu 28.34 · 7,432 target tokens/s\n"
        "valid at step 2,400 · loss 2.500 · bleu 30.00 · 7,432 target tokens/s\n"
        "done · step 2,400 · bleu 30.00\n"
    )


def test_a_bar_and_a_table_on_a_terminal():
    text = shown(Screen())
    assert "1,200/20,000 steps · eta 12m · loss 3.142 · lr 0.0012 · 7,432 target tokens/s\n" in text
    assert "split    step  epoch    loss    bleu" in text
    assert text.count("split ") == 1
    assert "valid   1,200    2.3   2.871   28.34" in text
    assert "\x1b[1m  30.00\x1b[0m" in text  # the best so far is bold
    assert text.endswith("done · step 2,400 · bleu 30.00\n")
    assert text.rindex("\x1b[?25h") > text.rindex("\x1b[?25l")  # the cursor is shown again


def test_a_notebook_has_one_output_that_is_drawn_anew(monkeypatch):
    drawn = list[dict[str, str]]()

    class Handle:
        def update(self, made, *, raw):
            assert raw
            drawn.append(made)

    def display(made, *, raw, display_id):
        assert raw
        assert display_id
        assert not drawn
        drawn.append(made)
        return Handle()

    module = types.ModuleType("IPython.display")
    module.display = display
    monkeypatch.setitem(sys.modules, "IPython", types.ModuleType("IPython"))
    monkeypatch.setitem(sys.modules, "IPython.display", module)
    kernel = type("OutStream", (io.StringIO,), {"__module__": "ipykernel.iostream"})
    assert shown(kernel()) == ""
    assert any(
        '<progress value="1200" max="20000"></progress> 1,200/20,000' in each["text/html"]
        for each in drawn
    )
    last = drawn[-1]["text/plain"].splitlines()
    assert last[0] == "tatoeba.py · runs/t"
    assert last[2:4] == [
        "valid   1,200    2.3   2.871   28.34",
        "valid   2,400    2.3   2.500   30.00",
    ]
    assert "2.3 <b>  2.500</b> <b>  30.00</b>\ndone" in drawn[-1]["text/html"]
    assert shown(kernel(), mode="lines").startswith("tatoeba.py · runs/t\nstep 1,200")


def test_no_color_is_respected(monkeypatch):
    monkeypatch.setenv("NO_COLOR", "1")
    text = shown(Screen())
    assert "1,200/20,000 steps" in text
    assert "\x1b[3" not in text.replace("\x1b[?", "")


MEASURED = {"loss": 0.07, "accuracy": 0.9, "macro_precision": 0.9, "macro_recall": 0.9}
MEASURED |= {"macro_f1": 0.9, "micro_f1": 0.9, "mcc": 0.97}
RATES = {"eta": 4.2, "steps_per_second": 147.0, "examples_per_second": 4_700.0}


@pytest.mark.parametrize("columns", [80, 45])
def test_a_bar_and_a_row_fit_the_terminal(columns, monkeypatch):
    monkeypatch.setenv("COLUMNS", str(columns))
    screen = Screen()
    console = Console.Config().build(stream=screen)
    console.start(RunInfo(recipe="demo", selected="mcc"))
    progress = {"step": 84, "total": 504, "epoch": 1.0, "time": RATES}
    console.report("train", progress, {"loss": 0.4331, "lr": 0.00174})
    console.report("valid", progress, MEASURED)
    console.close()
    lines = re.split(r"[\r\n]+", re.sub(r"\x1b\[[?0-9;]*[a-zA-Z]", "", screen.getvalue()))
    rows = [line for line in lines if not line.startswith("not shown: ")]
    assert max(map(len, rows)) <= columns
    bars = [line for line in lines if "84/504 steps · eta 5s" in line]
    assert bars
    assert all("━━━━" in line for line in bars)
    (row,) = (line for line in lines if line.startswith("valid"))
    assert row.endswith("0.9700"), "what selects is shown in any width"
    if columns == 80:
        assert [line for line in lines if line not in bars][1:4] == [
            "                                          macro   macro   macro   micro        ",
            "split    step  epoch    loss accuracy precision  recall      f1      f1     mcc",
            "valid      84    1.0 0.07000   90.0 %    90.0 %  90.0 %  90.0 %  90.0 %  0.9700",
        ]
        assert bars[-1].endswith("· loss 0.4331 · lr 0.00174 · 147 steps/s")
    else:
        assert any(line.startswith("not shown: ") for line in lines)


def test_the_mode_is_a_setting(monkeypatch):
    assert shown(Screen(), mode="lines") == shown(io.StringIO())
    assert "1,200/20,000 steps" in shown(io.StringIO(), mode="bar")
    monkeypatch.setenv("TERM", "dumb")
    assert shown(Screen()) == shown(io.StringIO())


LABELS = {"accuracy": 0.75, "label/ham/f1": 0.5, "label/ham/support": 3.0}


def labelled(summary, *splits, mode="lines"):
    stream = io.StringIO()
    console = Console.Config(mode=mode).build(stream=stream)
    for split, step, f1 in splits:
        console.report(split, {"step": step}, {**LABELS, "label/ham/f1": f1})
    console.end(summary)
    return stream.getvalue()


def test_values_of_labels_are_a_table_at_the_end_and_not_in_the_line():
    best = {"best": {"step": 1, "accuracy": 0.75}}
    text = labelled(best, ("valid", 1, 0.5), ("valid", 2, 0.25))
    assert text == (
        "valid at step 1 · accuracy 75.0 %\n"
        "valid at step 2 · accuracy 75.0 %\n"
        "labels of valid_data, step 1 (the best):\n"
        "label      f1  support\n"
        "ham    50.0 %        3\n"
        "done\n"
    )
    last = labelled({}, ("valid", 1, 0.5), ("valid", 2, 0.25))
    assert "labels of valid_data, step 2:\nlabel      f1  support\nham    25.0 %" in last
    test = labelled(best, ("valid", 1, 0.5), ("test", 2, 0.125))
    assert "labels of test_data, the weights of step 1 (the best):\n" in test
    assert "12.5 %" in test
    older = labelled({"best": {"step": 2}, "weights": {"step": 1}}, ("test", 2, 0.125))
    assert "labels of test_data, the weights of step 1:\n" in older  # those of step 2 are damaged
    assert "labels of test_data, step 2:\n" in labelled({}, ("test", 2, 0.125))
    assert "label/" not in labelled(best, ("valid", 1, 0.5), mode="bar")


def test_the_best_labels_of_before_an_interruption_are_shown(tmp_path):
    lines = [
        {"split": "train", "step": 1, "loss": 2.0},
        {"split": "valid", "step": 1, "label/ham/f1": 0.5, "label/spam/f1": "NaN"},
        {"split": "valid", "step": [], "label/ham/f1": 0.5},  # damaged
    ]
    text = "".join(json.dumps(line) + "\n" for line in lines)
    (tmp_path / "metrics.jsonl").write_text(text + '{"split": "valid", "st')
    stream = io.StringIO()
    console = Console.Config().build(stream=stream)
    console.start(RunInfo(recipe="demo", step=1, folder=tmp_path))
    console.report("valid", {"step": 2}, {**LABELS, "label/ham/f1": 0.25})
    console.end({"best": {"step": 1, "accuracy": 0.75}})
    assert stream.getvalue().splitlines()[-5:-1] == [
        "labels of valid_data, step 1 (the best):",
        "label      f1",
        "ham    50.0 %",
        "spam        -",
    ]


def test_the_last_line_has_the_epoch_of_the_line_above():
    stream = io.StringIO()
    console = Console.Config().build(stream=stream)
    console.report("train", {"step": 20, "epoch": 0.23}, {"loss": 2.5})
    console.end({"steps": 20, "epochs": 0})
    assert stream.getvalue().splitlines() == [
        "step 20 · epoch 0.2 · loss 2.500",
        "done · steps 20 · epoch 0.2",
    ]


def test_a_step_is_drawn_ten_times_a_second_at_most():
    screen = Screen()
    console = Console.Config().build(stream=screen)
    for step in range(3000):
        console.tick({"step": step, "total": 3000})
    console.close()
    assert screen.getvalue().count("/3,000 steps") < 50


def test_a_terminal_in_another_encoding_does_not_end_the_run():
    raw = io.BytesIO()
    stream = io.TextIOWrapper(raw, encoding="ascii")
    console = Console.Config().build(stream=stream)
    console.start(RunInfo(recipe="é.py", facts={"rows": 3}))
    assert raw.getvalue() == b"?.py | rows 3\n"


def test_the_best_is_bold_and_nan_never_is():
    table = ValuesTable({"loss": "lower", "bleu": "higher"})
    rows = [
        table.add("valid", {"step": i}, {"loss": loss, "bleu": bleu, "other": 1.0})[-1]
        for i, (loss, bleu) in enumerate([(3.0, 1.0), (float("nan"), 2.0), (2.0, 2.0), (4.0, 1.0)])
    ]
    assert [[row.plain[s.start : s.end].strip() for s in row.spans] for row in rows] == [
        [],
        ["2.000"],
        ["2.000"],
        [],
    ]
