"""``make bench`` and the scripts beside it run; what they measure is not looked at here."""

import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from tests.warm_textmill import warm_programs
from textmill.runtime import devices

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
SCRIPT = """
import json, sys
words = sys.argv
peer = words[words.index("--peer") + 1] if "--peer" in words else "textmill"
if peer == "accelerate":
    sys.exit("accelerate is broken")
figures = dict.fromkeys({figures!r}.split(), 2.0)
print(json.dumps(dict(figures, bench="made", rows=[1, 2], peer=peer, others=0.0)))
"""
FIGURES = (
    "tok_s tok_cpu_s padding gflops gflops_cpu us_step cpu_us_step peak_mb gflops_whole gpu_mb"
)


def run(script, *words, folder):
    environment = {k: v for k, v in os.environ.items() if k != "TEXTMILL_TEST_DATA"}
    return subprocess.run(
        [warm_programs() / "warm-python", str(BENCHMARKS / script), *words],
        cwd=folder,
        env={**environment, "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.slow
def test_a_quick_run_prints_a_table_and_keeps_every_measurement(tmp_path):
    out = ["--out", str(tmp_path / "out.jsonl")]
    done = run("run.py", "memory", "--quick", *out, folder=tmp_path)
    assert done.returncode == 0, done.stderr
    rows = re.findall(r"^\| (.+?) \| 1 \| [\d,]+ \| ([\d.]+) \|$", done.stdout, re.MULTILINE)
    assert dict(rows).keys() == {"textmill", "bare, token budget"}
    lines = [json.loads(row) for row in (tmp_path / "out.jsonl").read_text().splitlines()]
    assert [line["peer"] for line in lines] == ["textmill", "bare, token budget"]
    assert all(line["tok_s"] > 0 and line["peak_mb"] > 50 for line in lines)
    done = run("run.py", "speed", folder=tmp_path)
    assert (done.returncode, "unknown benchmark 'speed'" in done.stderr) == (2, True)


def test_a_peer_that_fails_is_named_and_the_others_have_their_rows(tmp_path, monkeypatch, capsys):
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    import run as benches

    for name in ("train.tsv", "dev.tsv"):
        (tmp_path / name).write_text("a\tb\n", encoding="utf-8")
    for name in ("train", "overhead", "decode"):
        (tmp_path / f"{name}.py").write_text(SCRIPT.format(figures=FIGURES), encoding="utf-8")
    monkeypatch.setattr(benches, "HERE", tmp_path)
    monkeypatch.setattr(benches.Lab, "has", lambda *_: True)
    monkeypatch.setattr(benches.machine, "peak_gflops", lambda *_: {"torch": 4.0})
    monkeypatch.setattr(devices, "processor", lambda: "a processor amx_bf16")
    words = ["overhead", "startup", "memory", "decode", "train", "--repetitions", "1"]
    words += ["--device", "cpu", "--data", str(tmp_path), "--out", str(tmp_path / "out.jsonl")]
    monkeypatch.setattr(sys, "argv", ["run.py", *words])
    with pytest.raises(SystemExit) as ended:
        benches.main()
    assert "overhead.py --peer accelerate --steps 1000: it ended with 1: accelerate is" in str(
        ended.value.code
    )
    tables = capsys.readouterr().out.split("\n### ")[1:]
    (answer,) = [table for table in tables if "textmill predict" in table]
    assert "No table: it compares with the run itself" in answer  # no script here trains it
    tables.remove(answer)
    assert len(tables) == 9  # three of training, one on a GPU, two searches
    for table in tables:
        assert "| textmill | 1 |" in table
        assert "accelerate" not in table


def test_peers_of_decoding_have_the_same_ids_from_the_same_weights(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    import decode_peers

    for name, size in (("LAYERS", 2), ("VOCABULARY", 200), ("NEW", 6)):
        monkeypatch.setattr(decode_peers, name, size)
    weights = tmp_path / "weights.safetensors"
    decode_peers.write_weights(weights)
    source = [[*range(4 + 3 * i, 9 + 5 * i), 3] for i in range(9)]
    peers = (
        decode_peers.textmill(2, weights, fast=True),
        decode_peers.textmill(2, weights, fast=False),
        decode_peers.transformers(2, weights),
    )
    found = [peer(source) for peer in peers]
    assert found[0] == found[1] == found[2]
    assert [len(row) for row in found[0]] == [6] * 9


PAIRS = "--data train.tsv --cache . "
SCRIPTS = {
    "overhead.py": "--peer textmill --steps 5",
    "tagging.py": "--peer 'textmill, LSTM' --threads 1 --steps 20",
    "data.py": "--data train.tsv --repetitions 1",
    "decode.py": f"{PAIRS} --threads 1 --sentences 2 --beam 1 --peer textmill",
    "answers.py": f"{PAIRS} --peer 'textmill export, tagger' --seconds 0.1",
    "rows.py": "--rows 3e4 --cache . --repetitions 1",
    "language.py": "--data text.txt --batch 4 --block 7 --steps 9 --lines 1000",
    "translate.py": f"{PAIRS} --threads 1 --steps 5 --sentences 8 --repetitions 1",
    "serve.py": f"{PAIRS} --seconds 0.5 --peer 'textmill serve'",
    "ranks.py": f"{PAIRS} --dev train.tsv --steps 6 --warmup 3 --peer '1 process, 2 threads'",
}


@pytest.mark.slow
@pytest.mark.parametrize("script", SCRIPTS)
def test_a_script_prints_its_figures(script, tmp_path):
    names = (f"{i**5:x}".translate(str.maketrans("0123456789", "ghijklmnop")) for i in range(900))
    pairs = (f"The cat {name} sleeps .\tLe chat {name} dort .\n" for name in names)
    (tmp_path / "train.tsv").write_text("".join(pairs), encoding="utf-8")
    (tmp_path / "text.txt").write_text("to be or not to be that is the question\n" * 60)
    done = run(script, *shlex.split(SCRIPTS[script]), folder=tmp_path)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout.splitlines()[-1])
