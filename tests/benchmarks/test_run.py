"""The benchmarks run, each on generated pairs; what they measure is not looked at here."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from tests.pretrained_checkpoints import save_encoder
from tests.warm_textmill import warm_programs

RUN = Path(__file__).parents[2] / "benchmarks" / "run.py"


def bench(folder, *words):
    command = [
        warm_programs() / "warm-python",
        str(RUN),
        "--out",
        str(folder / "out.jsonl"),
        *words,
    ]
    environment = {k: v for k, v in os.environ.items() if k != "TEXTMILL_TEST_DATA"}
    return subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, check=False
    )


def test_a_quick_run_prints_a_table_and_keeps_every_measurement(tmp_path):
    done = bench(tmp_path, "memory", "--quick")
    assert done.returncode == 0, done.stderr
    assert "generated pairs" in done.stdout
    assert "### Memory" in done.stdout
    shares = dict(
        re.findall(r"^\| (.+?) \| 1 \| [\d,]+ \| ([\d.]+) \|$", done.stdout, re.MULTILINE)
    )
    assert shares.keys() == {"textmill", "bare, token budget"}
    assert shares["bare, token budget"] == "1.00"
    lines = [json.loads(row) for row in (tmp_path / "out.jsonl").read_text().splitlines()]
    assert [line["peer"] for line in lines] == ["textmill", "bare, token budget"]
    for line in lines:
        assert line["tok_s"] > 0
        assert 0 <= line["padding"] < 1
        assert line["others"] >= 0
        assert line["peak_mb"] > 50


@pytest.mark.slow
def test_the_loops_of_the_tiny_job_run(tmp_path):
    script = RUN.parent / "overhead.py"
    for peer in ("textmill", "bare", "bare, the same model"):
        command = [sys.executable, str(script), "--peer", peer, "--steps", "5"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        assert json.loads(done.stdout.splitlines()[-1])["us_step"] > 0


def test_the_loops_of_taggers_count_the_words_of_their_steps(monkeypatch):
    monkeypatch.syspath_prepend(str(RUN.parent))
    import tagging

    rows = tagging.sentences(4 * tagging.ROWS)
    every = sum(len(row["words"].split()) for row in rows)
    for crf, loops in ((True, (tagging.bare,)), (False, (tagging.bare, tagging.textmill))):
        task = tagging.made(rows, crf=crf)
        for loop in loops:
            meter = tagging.Meter(4)  # of which the first is not counted
            way = {"by_length": True} if loop is tagging.bare else {}
            loop(task, rows, meter, **way)
            assert every / 2 < meter.words <= every
            assert min(meter.read().values()) >= 0


def test_the_loops_that_fine_tune_count_the_tokens_of_their_steps(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(str(RUN.parent))
    import pretrained
    import tagging

    model = save_encoder(tmp_path / "bert", "bert", max_position_embeddings=512)
    monkeypatch.setattr(pretrained, "ROWS", 4)
    rows = pretrained.rows_of(model, 16, texts="messages")
    assert pretrained.rows_of(model, 16, texts="messages") == rows
    every = sum(len(row["text"].split()) + 2 for row in rows)
    for loop in pretrained.LOOPS:
        meter = tagging.Meter(4)  # of which the first is not counted
        if loop == "Trainer":
            pretrained.trainer(rows, meter, model)
        else:
            pretrained.textmill(rows, meter, model, loop)
        assert every / 2 < meter.words < every
        assert min(meter.read().values()) >= 0


@pytest.mark.parametrize("model", ["OPUS-MT", "GPT-2"])
def test_the_loops_of_generators_count_the_tokens_of_their_steps(model, tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(str(RUN.parent))
    import pretrained_generators as generators
    import tagging

    monkeypatch.setitem(generators.ROWS, model, 2)
    generators.save(tmp_path, model, quick=True)
    rows = generators.ids_of(model, 4)
    every = sum(len(row[-1]) + 1 for row in rows)
    for loop in (generators.textmill, generators.trainer):
        meter = tagging.Meter(4)  # of which the first is not counted
        loop(rows, meter, model, tmp_path)
        assert every / 2 < meter.words < every
        assert min(meter.read().values()) >= 0


def test_peers_of_decoding_have_the_same_ids_from_the_same_weights(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(str(RUN.parent))
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
    assert len({tuple(row) for row in found[0]}) > 1


def test_answers_are_timed_beside_what_computes_them(monkeypatch):
    monkeypatch.syspath_prepend(str(RUN.parent))
    import answers

    class Session:
        asked = 0

        def run(self, names, arrays):
            self.asked += 1
            return [names, arrays]

    class Exported:
        graph = SimpleNamespace(session=Session())

        def __call__(self, given):
            return self.graph.session.run(None, {"text": given})

    exported, session = Exported(), Exported.graph.session
    texts = ["one", "two words", "and three words"]
    assert answers.latency(len, texts, 0).keys() == {"p50_us"}
    found = answers.latency(exported, texts, 0.01)
    assert min(found.values()) > 0
    assert found.keys() == {"p50_us", "engine_us"}
    assert session.asked >= 2
    assert session.asked % 2 == 0
    for parts in (texts, [texts, texts[:1]]):
        assert answers.rate(len, parts, 0.001) > 0
    assert answers.tags("Ann fell") == ["B-name", "O"]


@pytest.mark.slow
@pytest.mark.parametrize("peer", ["textmill run, classifier", "textmill export, tagger"])
def test_a_model_is_made_and_its_answers_are_timed(tmp_path, peer):
    pairs = (f"The cat number {i} sleeps .\tLe chat numéro {i} dort .\n" for i in range(300))
    (tmp_path / "train.tsv").write_text("".join(pairs), encoding="utf-8")
    words = ["--peer", peer, "--data", str(tmp_path / "train.tsv"), "--cache", str(tmp_path)]
    command = [sys.executable, str(RUN.parent / "answers.py"), *words, "--seconds", "0.1"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    found = json.loads(done.stdout.splitlines()[-1])
    assert min(found["one"], found["many"], found["p50_us"]) > 0
    assert ("engine_us" in found) == ("export" in peer)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["speed"], "unknown benchmark 'speed'; known: train, overhead, startup, memory, data"),
        (["--threads", "0"], "--threads and --repetitions are at least 1"),
        (["--data", "nowhere"], "--data nowhere: there is no train.tsv in it."),
    ],
)
def test_what_cannot_be_measured_is_said(tmp_path, words, message):
    done = bench(tmp_path, *words)
    assert done.returncode != 0
    assert message in done.stderr
