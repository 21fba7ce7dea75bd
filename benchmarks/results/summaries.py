"""``make results RESULTS=summaries``: sentences that sum up abstracts, beside those nobody learnt.

SciTLDR's dev rows (Cachola et al. 2020), scored by stems against the reference that is best by
ROUGE-1: the first sentence, the best one, what two models choose, and what one writes.
"""

import statistics
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from benchmarks.results.found import FailedError
from benchmarks.results.jobs import JOBS, Job
from benchmarks.results.lead import OneSentence
from benchmarks.results.ledger import Ledger
from benchmarks.results.measuring import (
    Bench,
    baseline_line,
    measure_baseline,
    measure_textmill,
    say,
    textmill_line,
)
from benchmarks.results.table import markdown, write

BEGIN = "<!-- made by make results RESULTS=summaries: begin -->"
END = "<!-- made by make results RESULTS=summaries: end -->"
COLUMNS = ("summary", "ROUGE-1", "ROUGE-2", "ROUGE-L", "CPU s")
WRITTEN = replace(next(job for job in JOBS if job.name == "scitldr"), seeds=3)
CHOSEN = replace(WRITTEN, name="scitldr-lstm", experiment="summarization/extractive-lstm")
BY_MINILM = replace(
    WRITTEN, name="scitldr-minilm", experiment="summarization/extractive", encoder=True
)
JOBS_OF_SUMMARIES = (CHOSEN, BY_MINILM, WRITTEN)
"""From the cheap one to the dear one."""
BASELINES = (OneSentence(), OneSentence(best=True))


def baseline_rows(bench: Bench) -> Iterator[list[str]]:
    """A row for each sentence that no model chooses."""
    files = bench.files(WRITTEN)
    for baseline in BASELINES if files else ():
        assert files is not None
        line = baseline_line(bench, baseline, WRITTEN, files)
        if line is not None:
            scores = [
                " ± ".join(
                    f"{line[kind][figure.metric]:.2f}" for kind in ("values", "standard_errors")
                )
                for figure in WRITTEN.figures
            ]
            yield [f"the {baseline.name}", *scores, ""]


def textmill_rows(bench: Bench, job: Job) -> Iterator[list[str]]:
    """A row for an experiment, its mean over the seeds that were trained."""
    files = bench.files(job)
    found = (
        [textmill_line(bench, job, files, seed) for seed in bench.seeds_of(job)] if files else []
    )
    lines = [line for line in found if line is not None]
    if not lines:
        return
    scores = []
    for figure in job.figures:
        values = [100 * line["values"][figure.metric] for line in lines]
        deviation = f" ± {statistics.stdev(values):.2f}" if len(values) > 1 else ""
        scores.append(f"{statistics.mean(values):.2f}{deviation} ({len(values)})")
    seconds = f"{statistics.mean(line['cpu_s'] for line in lines):,.0f}"
    encoder = " with MiniLM" if job.encoder else ""
    yield [f"`{job.experiment}`{encoder}", *scores, seconds]


def main(
    data: Path, out: Path, page: Path, *, seeds: int, threads: int, measured: bool = True
) -> list[str]:
    """Measures what is missing, where ``measured``, and writes the table; what failed."""
    bench = Bench(data, out, Ledger(out / "results.jsonl"), threads=threads, seeds=seeds)
    files, failed = bench.files(WRITTEN), list[str]()
    if files is None:
        say(f"summaries: no data ({data / WRITTEN.train} is not there)")
        return failed
    try:
        for baseline in BASELINES if measured else ():
            measure_baseline(bench, baseline, WRITTEN, files)
        for job in JOBS_OF_SUMMARIES if measured else ():
            for seed in bench.seeds_of(job):
                try:
                    measure_textmill(bench, job, files, seed)
                except FailedError as error:
                    say(str(error))
                    failed.append(str(error))
    finally:
        own = [row for job in JOBS_OF_SUMMARIES for row in textmill_rows(bench, job)]
        text = "\n".join(markdown(COLUMNS, [*baseline_rows(bench), *own]))
        write(page, text, begin=BEGIN, end=END)
    return failed
