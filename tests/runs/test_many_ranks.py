"""A run of several ranks is that of one: its values, its rows, its checkpoints, its end."""

import json
import os
import re
import signal
import subprocess
import sys
import time

import pytest
import torch

from tests.runs.many_ranks import free_port, largest_difference, lines_of, write_data
from tests.runs.rank_kills import lines_written, ranks_of
from tests.runs.tiny import alive, run_folder, unlike, write_recipe
from tests.runs.tiny import outcome as whole
from tests.waiting import wait_until
from tests.warm_textmill import warm_programs
from textmill.runtime.devices import processor

COMPARED = [
    *("train_data.path=data/train-pairs.tsv", "valid_data.path=data/dev-pairs.tsv"),
    *("train_data.columns=[text1,text2,text3,score]", "trainer.max_steps=20"),
    "model.encoder.word_dropout=0",
    *("train_data.batch_size=7", "valid_data.batch_size=4"),
]
"""Rows of one step are compared with each other; the last batch of an epoch has a single row."""
OFF = {
    "classification/docnn/local": ["model.dropout=0", "model.embedding.dropout=0"],
    "classification/averaging/local": [
        *("task.type=contrastive_classification", "train_data.batch_size=7"),
        *("model.dropout=0", "model.embedding.dropout=0", "model.encoder.word_dropout=0"),
    ],
    "tagging/bilstm-crf/local": ["model.dropout=0", "model.word_dropout=0"],
    "language/transformer/local": ["model.dropout=0"],
    "language/lstm/local": ["model.dropout=0", "trainer.max_steps=60"],
    "bert/pretraining/local": ["model.encoder.dropout=0"],
    "embedding/pairs/local": [*COMPARED, "task.negative=text3", "task.loss.symmetric=true"],
    "embedding/similarity/local": [*COMPARED, "trainer.accumulate=2"],
}


LONGER = ["trainer.max_steps=20", "--allow-code"]
SLOW = pytest.mark.slow


def outcome(folder):
    """Lines of the run's metrics, and its answered rows without what is rounded otherwise."""
    (run,) = folder.glob("runs/*/*")
    answers = {}
    for path in sorted(run.glob("predictions/*")):
        rows = [json.loads(line) for line in path.read_text().splitlines()]
        answers[path.name] = [
            {name: value for name, value in row.items() if not isinstance(value, float | dict)}
            for row in rows
        ]
    return lines_of(folder), answers


def same_run(one, other):
    (lines, answers), (others, other_answers) = one, other
    assert largest_difference(lines, others) < 1e-6
    assert {n: len(rows) for n, rows in answers.items()} == {
        n: len(rows) for n, rows in other_answers.items()
    }
    numbers = {n: [row["row"] for row in rows] for n, rows in answers.items()}
    assert numbers == {n: [row["row"] for row in rows] for n, rows in other_answers.items()}


def trained(runs, folder, *words, size):
    codes, said = runs.run(folder, "train", *words, size=size)
    assert codes == [0] * size, said
    assert [text for text in said[1:] if text] == []  # rank 0 alone prints
    return outcome(folder)


@pytest.mark.slow
@pytest.mark.parametrize("shares", ["ddp", "fsdp"])
def test_a_translator_with_fewer_rows_than_ranks_in_a_step(runs, tmp_path, shares):
    """Steps of 8 rows, the last of an epoch of 2, by 3 ranks; BLEU and all else are the same."""
    words = ["tiny.py", "model.dropout=0", "trainer.accumulate=1", "train_data.batch_size=8"]
    wanted = trained(runs, write_recipe(tmp_path / "1"), *words, size=1)
    words += [f"trainer.data_parallelism={shares}"]
    found = trained(runs, write_recipe(tmp_path / "3"), *words, size=3)
    same_run(wanted, found)
    assert wanted[1] == found[1]  # translations, too
    (run,) = tmp_path.glob("3/runs/tiny/*")
    said = (run / "log.txt").read_text(), (tmp_path / "3" / "log-0").read_text()
    assert "3 ranks train together." in said[0]
    assert "ranks 3" in said[1]
    starts = [
        json.loads((f / "run.json").read_text())["starts"] for f in tmp_path.glob("*/runs/*/*")
    ]
    assert sorted(start["ranks"] for (start,) in starts) == [1, 3]
    assert not list(run.glob("log-*"))


@pytest.mark.slow
@pytest.mark.parametrize("shares", ["ddp", "fsdp"])
@pytest.mark.parametrize("name", OFF)
def test_values_of_one_two_and_three_ranks(runs, tmp_path, name, shares):
    words = [name, "trainer.report_every=1", *OFF[name]]
    wanted = trained(runs, write_data(tmp_path / "1"), *words, size=1)
    words += [f"trainer.data_parallelism={shares}"]
    for size in (2, 3):
        same_run(wanted, trained(runs, write_data(tmp_path / str(size)), *words, size=size))


@pytest.mark.parametrize(("first", "then"), [(2, 3), pytest.param(2, 1, marks=SLOW)])
def test_a_checkpoint_of_two_ranks_goes_on_with_others(runs, tmp_path, first, then):
    """In mid-epoch and between two reports: the order, the sums and the counts go on."""
    words = ["tiny.py", "model.dropout=0", "trainer.report_every=6", "trainer.accumulate=1"]
    wanted = trained(runs, write_recipe(tmp_path / "whole"), *words, size=1)
    folder = write_recipe(tmp_path / "parts")
    trained(runs, folder, *words, "trainer.max_steps=9", size=first)
    (run,) = folder.glob("runs/tiny/*")
    codes, said = runs.run(folder, "train", str(run), *LONGER, size=then)
    assert codes == [0] * then, said
    assert "Resumed at step 9." in said[0]
    lines = [line for line in lines_of(folder) if line["step"] != 9]
    after = [
        [line for line in some if line["split"] == "valid" and line["step"] > 9]
        for some in (wanted[0], lines)
    ]
    assert largest_difference(*after) < 1e-6
    assert ("train", 18) in {(line["split"], line["step"]) for line in lines}


@pytest.mark.slow
def test_the_state_that_a_language_model_carries_goes_on_with_others(runs, tmp_path):
    name = "language/lstm/local"
    words = [name, "trainer.report_every=1", "model.dropout=0", "trainer.max_steps=14"]
    wanted = trained(runs, write_data(tmp_path / "whole"), *words, size=1)
    folder = write_data(tmp_path / "parts")
    trained(runs, folder, *words[:-1], "trainer.max_steps=7", size=2)
    (run,) = folder.glob("runs/*/*")
    codes, said = runs.run(folder, "train", str(run), "trainer.max_steps=14", size=3)
    assert codes == [0] * 3, said
    after = [
        [line for line in lines if line["split"] == "train" and line["step"] > 7]
        for lines in (wanted[0], lines_of(folder))
    ]
    assert len(after[0]) == 7
    assert largest_difference(*after) < 1e-6


def test_an_error_of_all_ranks_is_said_once(runs, tmp_path):
    codes, said = runs.run(write_recipe(tmp_path), "train", "tiny.py", "modl.dim=3", size=2)
    assert codes == [2, 2]
    assert sorted(map(bool, said)) == [False, True]
    assert "'modl' is no ingredient of this recipe. Did you mean 'model'?" in "".join(said)


@pytest.mark.parametrize("told", [signal.SIGTERM, pytest.param(signal.SIGINT, marks=SLOW)])
def test_a_signal_to_one_rank_stops_all_and_is_no_error(runs, tmp_path, told):
    folder = write_recipe(tmp_path)
    words = ["trainer.max_steps=100000", "trainer.evaluate_every=100000"]
    processes = runs.start(folder, "train", "tiny.py", *words, size=2)
    wait_until(lambda: lines_written(folder))
    os.kill(processes[1], told)
    codes, said = runs.end()
    assert codes == [128 + told] * 2
    stopped = rf"Stopped by {told.name} at step [\d,]+; everything is saved"
    assert len(re.findall(stopped, said[0])) == 1
    assert said[1] == ""
    (run,) = folder.glob("runs/tiny/*")
    assert "ERROR" not in (run / "log.txt").read_text()
    assert re.match(stopped, json.loads((run / "run.json").read_text())["stopped"])


BROKEN = """
def module(model, tokenizer, env):
    if env.rank == 1:
        raise ValueError(f"rank {env.rank} of {env.world_size} is broken")
    return model.build(tokenizer=tokenizer)
"""


def test_an_error_of_one_rank_ends_all(runs, tmp_path):
    folder = write_recipe(tmp_path)
    (folder / "tiny.py").write_text((folder / "tiny.py").read_text() + BROKEN)
    started = time.monotonic()
    codes, said = runs.run(folder, "train", "tiny.py", size=2)
    assert time.monotonic() - started < 30
    assert codes == [1, 1]
    assert "ValueError: rank 1 of 2 is broken" in said[1]
    assert "error:" not in said[0]


OWN_TABLE = """
import os
import torch
from textmill.models import fast

os.environ["TEXTMILL_CACHE"] = f"cache{os.environ['RANK']}"


def module(model, tokenizer, env):
    made = model.build(tokenizer=tokenizer)

    def note(*_):
        if torch.is_grad_enabled():
            seen = fast.now().linear, fast.now().attention, torch.is_autocast_enabled("cpu")
            Path(f"seen{env.rank}").write_text(repr(seen))

    made.encoder.layers[0].register_forward_pre_hook(note)
    return made
"""


@pytest.mark.parametrize("first", [0, 1])
def test_all_ranks_compute_by_the_table_of_the_first(runs, tmp_path, first):
    """The machines of a run may differ; with other kernels on each, a resumed run would, too."""
    folder = write_recipe(tmp_path)
    (folder / "tiny.py").write_text((folder / "tiny.py").read_text() + OWN_TABLE)
    where = {"processor": processor(), "torch": torch.__version__, "threads": 1, "spread": 1.0}
    torchs = {"fp32_torch": 1.0, "fp32_onednn": 2.0, "bf16_but_attention": 3.0, "bf16": 4.0}
    onednns = {"fp32_torch": 9.0, "fp32_onednn": 8.0, "bf16_but_attention": 2.0, "bf16": 1.0}
    for rank, times in enumerate([torchs, onednns] if first == 0 else [onednns, torchs]):
        (folder / f"cache{rank}").mkdir()
        (folder / f"cache{rank}/machine.json").write_text(json.dumps(where | times))
    codes, said = runs.run(folder, "train", "tiny.py", "trainer.max_steps=2", size=2)
    assert codes == [0, 0], said
    wanted = repr(("torch", "fp32", False) if first == 0 else ("onednn", "bf16", True))
    assert [(folder / f"seen{rank}").read_text() for rank in range(2)] == [wanted] * 2


OWN_PROCESS = """
import sys
import textmill

predictor, best = textmill.train_model(
    "tiny.py", ["trainer.max_steps=7"], dist_init_url=sys.argv[1], rank=int(sys.argv[2]),
    world_size=2, device="cpu", run_dir="mine",
)
print(best["step"], len(predictor.task.predict([{"source": "the cat sees tea"}])))
"""


@pytest.mark.slow
def test_processes_of_ones_own(tmp_path):
    """As in PyText's ``train_model``: each process calls it with its rank."""
    folder = write_recipe(tmp_path)
    url = f"tcp://127.0.0.1:{free_port()}"
    processes = [
        subprocess.Popen(
            [warm_programs() / "warm-python", "-c", OWN_PROCESS, url, str(rank)], cwd=folder,
            env={**os.environ, "OMP_NUM_THREADS": "1"}, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, text=True,
        )
        for rank in range(2)
    ]  # fmt: skip
    said = [process.communicate(timeout=90) for process in processes]
    assert [out.splitlines()[-1:] for out, _ in said] == [["7 1"], ["7 1"]], said
    assert json.loads((folder / "mine" / "run.json").read_text())["finished"]


@pytest.mark.slow
@pytest.mark.parametrize("shares", ["ddp", "fsdp"])
def test_a_killed_rank_is_started_again_and_the_run_is_the_undisturbed_one(tmp_path, shares):
    """``--nproc 2 --max-restarts 2``: the weights and values are those of no kill, bit by bit."""
    words = [
        sys.executable, "-m", "textmill", "train", "tiny.py", "--nproc", "2", "--max-restarts=2",
    ]  # fmt: skip
    words += [f"trainer.data_parallelism={shares}"]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    wanted = write_recipe(tmp_path / "wanted")
    subprocess.run(words, cwd=wanted, env=environment, check=True, capture_output=True)
    folder = write_recipe(tmp_path / "killed")
    process = subprocess.Popen(
        words, cwd=folder, env=environment, stderr=subprocess.PIPE, text=True
    )
    wait_until(lambda: any(folder.glob("runs/tiny/*/checkpoints/step-*")))
    os.kill(ranks_of(process.pid)[1], signal.SIGKILL)
    _, said = process.communicate(timeout=120)
    assert process.returncode == 0, said
    assert "was killed by SIGKILL. All processes start again: restart 1 of at most 2." in said
    assert unlike(whole(run_folder(wanted)), whole(run_folder(folder))) == []


@pytest.mark.slow
def test_ranks_stop_and_save_when_the_process_that_started_them_is_killed(tmp_path):
    folder = write_recipe(tmp_path)
    words = [sys.executable, "-m", "textmill", "train", "tiny.py", "--nproc", "2"]
    words += ["trainer.max_steps=1000000", "trainer.evaluate_every=1000000"]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    with (tmp_path / "said").open("wb") as said:
        parent = subprocess.Popen(words, cwd=folder, env=environment, stdout=said, stderr=said)
    wait_until(lambda: lines_written(folder), (tmp_path / "said").read_text)
    ranks = ranks_of(parent.pid)
    assert sorted(ranks) == [0, 1]
    parent.kill()
    parent.wait()
    wait_until(
        lambda: not any(map(alive, ranks.values())), (tmp_path / "said").read_text, seconds=20
    )
    (run,) = folder.glob("runs/tiny/*")
    assert "has died: it is stopped" in (run / "log.txt").read_text()
    stopped = json.loads((run / "run.json").read_text())["stopped"]
    step = int(re.search(r"at step ([\d,]+); everything is saved", stopped)[1].replace(",", ""))
    assert (run / "checkpoints" / f"step-{step:08}").is_dir()


@pytest.mark.parametrize(
    ("victim", "shared"),
    [
        pytest.param(0, "ddp", marks=SLOW),
        (1, "ddp"),
        # torch itself exchanges in the model's calls: its own errors are no rank's own.
        pytest.param(0, "fsdp", marks=SLOW),
        pytest.param(1, "fsdp", marks=SLOW),
    ],
)
def test_a_rank_that_is_killed_ends_all_and_is_named(runs, tmp_path, victim, shared):
    folder = write_recipe(tmp_path)
    often = ["trainer.max_steps=100000", "trainer.evaluate_every=100000"]
    often.append(f"trainer.data_parallelism={shared}")
    processes = runs.start(folder, "train", "tiny.py", *often, size=2)
    wait_until(lambda: lines_written(folder))
    time.sleep(0.2)
    os.kill(processes[victim], signal.SIGKILL)
    killed = time.monotonic()
    codes, said = runs.end()
    assert time.monotonic() - killed < 30
    assert codes[victim] == -9
    assert codes[1 - victim] == 1
    named = rf"error: rank {victim} \(process {processes[victim]} on .*\) died, or cannot be"
    assert len(re.findall(named, said[1 - victim])) == 1, said
    if victim:
        (log,) = folder.glob("runs/tiny/*/log.txt")
        assert f"rank 1 (process {processes[1]} on" in log.read_text()
    assert not any(map(alive, processes))
