"""A measurement that fails is named at the end, and the rest is printed; on scripts that say so."""

import json
import sys
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
FIGURES = dict.fromkeys(
    (
        "tok_s",
        "tok_cpu_s",
        "padding",
        "gflops",
        "gflops_cpu",
        "us_step",
        "cpu_us_step",
        "peak_mb",
        "gflops_whole",
        "gpu_mb",
    ),
    2.0,
)
SCRIPT = """
import json, sys
words = sys.argv
peer = words[words.index("--peer") + 1] if "--peer" in words else "textmill"
if peer in {broken!r}:
    sys.exit(f"{{peer}} is broken")
if peer not in {silent!r}:
    print(json.dumps({figures!r} | {{"peer": peer, "others": {others!r}.get(peer, 0.0)}}))
"""


@pytest.fixture
def bench(tmp_path, monkeypatch, capsys):
    """Runs benchmarks whose scripts print made-up figures, but those of broken or silent peers."""
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    import run

    data = tmp_path / "train.tsv"
    data.write_text("a\tb\n", encoding="utf-8")
    (tmp_path / "dev.tsv").write_text("a\tb\n", encoding="utf-8")
    monkeypatch.setattr(run, "HERE", tmp_path)
    monkeypatch.setattr(run.Lab, "has", lambda *_: True)
    monkeypatch.setattr(run.machine, "peak_gflops", lambda _: {"torch": 4.0})

    def ran(*words, broken=(), silent=(), others=None, **figures):
        made = {"bench": "made", "rows": [1, 2], **FIGURES, **figures}
        values = {"broken": broken, "silent": silent, "others": others or {}, "figures": made}
        for name in ("train", "overhead", "decode", "data", "quality"):
            (tmp_path / f"{name}.py").write_text(SCRIPT.format(**values), encoding="utf-8")
        out = ["--out", str(tmp_path / "out.jsonl"), "--data", str(tmp_path)]
        monkeypatch.setattr(sys, "argv", ["run.py", *words, "--repetitions", "1", *out])
        code = None
        try:
            run.main()
        except SystemExit as error:
            code = error.code
        return capsys.readouterr().out, code

    yield ran
    for name in ("run", "lab", "train", "overhead", "decode", "decode_peers", "bare", "machine"):
        sys.modules.pop(name, None)
    sys.modules.pop("pairs", None)


def rows(text):
    return [line.split(" | ")[0].removeprefix("| ") for line in text.splitlines() if "| " in line]


def test_nothing_is_said_of_failures_where_all_is_measured(bench):
    text, code = bench("memory", "overhead", "startup", "--threads", "1")
    assert code is None
    assert "No table" not in text
    assert text.count("wall-clock counts.") == 1  # of overhead; the other two count none


def test_a_peer_that_fails_is_named_and_the_others_have_their_rows(bench):
    text, code = bench("overhead", "memory", broken=("accelerate",))
    assert "overhead.py --peer accelerate --steps 1000: it ended with 1: accelerate is br" in code
    assert code.startswith("\nThese measurements failed and are missing from the tables:\n  ")
    assert "accelerate" not in text
    assert rows(text.partition("### Memory")[0])[1:] == [
        *("textmill", "bare, the same model", "bare", "transformers", "lightning")
    ]
    assert rows(text.partition("### Memory")[2])[1:] == ["textmill", "bare, token budget"]


@pytest.mark.parametrize(
    ("words", "base"),
    [
        (["train"], "textmill"),
        (["overhead"], "bare"),
        (["startup"], "bare"),
        (["memory"], "bare, token budget"),
        (["decode"], "textmill"),
    ],
)
def test_a_table_without_what_it_compares_with_is_a_line(bench, words, base):
    broken = (base, *(["transformers"] if words == ["decode"] else []))
    text, code = bench(*words, "memory", broken=broken)
    assert f"{base} is broken" in code
    assert f"No table: it compares with {base}, which was not measured." in text
    assert "### Memory" in text


def test_where_textmill_cannot_be_measured_no_table_has_it(bench):
    text, code = bench("overhead", "memory", "decode", broken=("textmill",))
    assert code.count("textmill is broken") == 4  # decode has two searches
    assert "textmill" not in rows(text)
    assert rows(text).count("transformers") == 3


def test_where_nothing_is_measured_nothing_counts(bench):
    everything = (
        "textmill",
        "bare",
        "bare, the same model",
        "transformers",
        "lightning",
        "accelerate",
    )
    text, code = bench("overhead", broken=everything)
    assert code.count("is broken") == 6
    assert "counts" not in text
    assert rows(text) == []


def test_a_measurement_that_prints_no_figures_failed(bench):
    _, code = bench("memory", silent=("textmill",))
    assert code.endswith("it printed no figures")


def test_a_benchmark_that_compares_by_itself_names_its_failures(bench, tmp_path):
    text, code = bench("data", failed="no such module")
    assert code.endswith("\n  data.py --peer textmill: no such module")
    assert "### Data" in text
    assert not (tmp_path / "out.jsonl").exists()


def test_a_disturbed_row_does_not_spoil_the_others(bench):
    text, code = bench("train", "--threads", "2", others={"lightning": 0.7, "bare": 0.05})
    assert code is None
    said = "Others used 0.1 cores or more beside lightning (0.70): these rows do NOT count, "
    assert said + "wall-clock of the rest." in text
    cells = {row[2:].split(" | ")[0]: row.split(" | ") for row in text.splitlines() if "| " in row}
    assert cells["lightning"][4:7] == ["-", "200.0 %", "-"]
    assert cells["bare"][4:7] == ["1.00 times", "200.0 %", "50.0 %"]


def test_a_disturbed_row_of_one_thread_counts_by_the_processors_clock(bench):
    text, _ = bench(
        "train", "--threads", "1", others={"bare": 0.7}, tok_s=8.0, tok_cpu_s=2.0, gflops=1.0
    )
    assert "beside bare (0.70): of these the CPU second counts, wall-clock of the rest." in text
    cells = {row[2:].split(" | ")[0]: row.split(" | ") for row in text.splitlines() if "| " in row}
    assert cells["bare"][6] == "50.0 %"
    assert cells["transformers"][6] == "25.0 %"


def test_the_figures_are_kept(bench, tmp_path):
    bench("memory", broken=("textmill",))
    lines = [json.loads(line) for line in (tmp_path / "out.jsonl").read_text().splitlines()]
    assert [line["peer"] for line in lines] == ["bare, token budget"]


def test_the_table_of_a_gpu_has_its_rows_and_says_what_is_not_known(bench):
    text, code = bench("train", "--device", "cpu", "--threads", "1")
    assert code is None
    table = text.partition("### Training in bfloat16 on no GPU")[2]
    assert rows(table)[1:] == [
        *("textmill", "bare", "bare, token budget", "transformers", "transformers, by length"),
        "lightning",
    ]
    assert "| textmill | 1 | 2 | 1.00 times | 200.0 % | n/a | 2 |" in table
    assert "no peak of it is known" in table


def test_where_no_gpu_is_its_table_is_not_asked_for(bench, monkeypatch):
    import machine

    monkeypatch.setattr(machine, "has_gpu", lambda: False)
    assert "bfloat16" not in bench("train", "--threads", "1")[0]


def test_the_share_of_a_known_gpus_peak(bench, monkeypatch):
    import machine

    monkeypatch.setattr(machine, "gpu_name", lambda device: "NVIDIA H100 80GB HBM3")
    text, _ = bench("train", "--device", "cpu", "--threads", "1", gflops_whole=494_500.0)
    assert "| textmill | 1 | 2 | 1.00 times | 200.0 % | 50.0 % | 2 |" in text
    assert "its peak is 989 TFLOP/s" in text


@pytest.mark.parametrize(
    ("name", "peak"),
    [
        ("NVIDIA A100-SXM4-80GB", 312e3),
        ("NVIDIA A10", 125e3),
        ("NVIDIA A10G", None),
        ("NVIDIA H100 PCIe", 756e3),
        ("NVIDIA H200", 989e3),
        ("NVIDIA L40S", 362e3),
        ("NVIDIA L4", 121e3),
        ("Tesla V100-SXM2-32GB", None),
    ],
)
def test_peaks_are_found_by_whole_names(monkeypatch, name, peak):
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    import machine

    assert machine.gpu_peak(name) == peak


def test_attentions_products_are_counted(monkeypatch):
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    import bare

    # 2 rows of 10 and 10: 100 pairs of the encoder, 50 of the decoder, 100 across, each.
    found = bare.attention_flops(20, 20, 2)
    assert found == 12 * bare.LAYERS * bare.DIM * 2 * 250
    assert bare.attention_flops(0, 0, 0) == 0
