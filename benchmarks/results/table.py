"""The tables of docs/results.md, from what was measured."""

import statistics
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.results.jobs import Figure, Job
from benchmarks.results.ledger import Line
from benchmarks.results.measuring import Bench, baseline_line, textmill_line

BEGIN = "<!-- made by make results: begin -->"
END = "<!-- made by make results: end -->"

COLUMNS = ("data", "figure", "baseline", "textmill", "goal", "reached", "CPU s", "wall s")


@dataclass(frozen=True)
class Measured:
    """A job with the lines that are known of it."""

    job: Job
    baselines: Sequence[Line]
    runs: Sequence[Line]
    """Of textmill, a line a seed."""
    missing: str
    """What the table says where there is no run."""

    @classmethod
    def read(cls, bench: Bench, job: Job) -> "Measured":
        """What was measured on the data as they are, by the recipe as it is."""
        files = bench.files(job)
        if files is None:
            return cls(job, (), (), "no data")
        fitted = (baseline_line(bench, baseline, job, files) for baseline in job.baselines)
        trained = (textmill_line(bench, job, files, seed) for seed in range(1, job.seeds + 1))
        baselines, runs = ([line for line in lines if line] for lines in (fitted, trained))
        return cls(job, baselines, runs, "not run")


def tables(bench: Bench, jobs: Sequence[Job]) -> str:
    """All rows, measured or not; then the baselines beside what was measured of them elsewhere."""
    all_measured = [Measured.read(bench, job) for job in jobs]
    figures = (row for measured in all_measured for row in figure_rows(measured))
    checks = (row for measured in all_measured for row in check_rows(measured))
    runs = [line for measured in all_measured for line in measured.runs]
    return "\n".join(
        [
            *markdown(COLUMNS, figures),
            "",
            circumstances(runs),
            "",
            *markdown(("data", "figure", "baseline", "dev part", "test part"), checks),
        ]
    )


def markdown(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterator[str]:
    yield f"| {' | '.join(columns)} |"
    yield "|" + "---|" * len(columns)
    for row in rows:
        yield f"| {' | '.join(row)} |"


def circumstances(runs: Sequence[Line]) -> str:
    """When and how the trainings ran."""
    if not runs:
        return "Nothing was trained."
    days = sorted({line["when"][:10] for line in runs})
    threads = sorted({line["threads"] for line in runs})
    others = statistics.mean(line["others"] for line in runs)
    return (
        f"Trainings: {len(runs)}; {days[0]}{f' to {days[-1]}' if len(days) > 1 else ''}; threads: "
        f"{', '.join(map(str, threads))}; other processes used {others:.1f} cores on average."
    )


def figure_rows(measured: Measured) -> Iterator[list[str]]:
    """A row for each figure of a job."""
    job = measured.job
    for number, figure in enumerate(job.figures):
        first = number == 0
        name = f"{job.name}: `{job.experiment}`" if first else ""
        whole = [line for line in measured.runs if not line["resumed"]]
        seconds = [mean_of(whole, "cpu_s"), mean_of(measured.runs, "wall_s")]
        seconds = seconds if first else ["", ""]
        yield [name, figure.name, *compared(figure, measured), *seconds]


def compared(figure: Figure, measured: Measured) -> list[str]:
    """A figure's baseline, textmill's value, what is wanted, and whether that is reached."""
    score, error = of_baseline(figure, measured.baselines)
    bound = figure.wanted
    limit = bound.limit(score, error) if bound else None
    base = "" if score is None else f"{score:.2f}{f' ± {error:.2f}' if error else ''}"
    wanted = "" if bound is None or limit is None else f"{bound.sign} {limit:.2f}"
    scale = 100 if figure.percent else 1
    values = [scale * line["values"][figure.metric] for line in measured.runs]
    if not values:
        return [base, measured.missing, wanted, ""]
    mean = statistics.mean(values)
    deviation = f" ± {statistics.stdev(values):.2f}" if len(values) > 1 else ""
    whole = measured.job.seeds
    count = f"{len(values)}" if len(values) == whole else f"{len(values)} of {whole}"
    verdict = ""
    if bound and limit is not None:
        verdict = "yes" if bound.reached(mean, limit) else f"no, by {abs(mean - limit):.2f}"
    return [base, f"{mean:.2f}{deviation} ({count})", wanted, verdict]


def of_baseline(figure: Figure, lines: Sequence[Line]) -> tuple[float, float] | tuple[None, None]:
    """The score of the baseline that has one, and its standard error."""
    for line in lines:
        if figure.metric in line["values"]:
            return line["values"][figure.metric], line["standard_errors"][figure.metric]
    return None, None


def mean_of(runs: Sequence[Line], name: str) -> str:
    """The mean of a number of the runs; nothing where there is none."""
    return f"{statistics.mean(line[name] for line in runs):,.0f}" if runs else ""


def check_rows(measured: Measured) -> Iterator[list[str]]:
    """The baselines' figures that are known of the test part too."""
    for line in measured.baselines:
        for figure in measured.job.figures:
            if figure.elsewhere is not None and figure.metric in line["values"]:
                here, there = f"{line['values'][figure.metric]:.2f}", f"{figure.elsewhere:.2f}"
                yield [measured.job.name, figure.name, line["part"], here, there]


def write(page: Path, text: str, *, begin: str = BEGIN, end: str = END) -> None:
    """Puts the tables between the marks of a page.

    Raises:
        ValueError: The page has not both marks.
    """
    whole = page.read_text(encoding="utf-8")
    head, found, rest = whole.partition(begin)
    _, ended, tail = rest.partition(end)
    if not found or not ended:
        raise ValueError(f"{page}: wanted the lines {begin} and {end}.")
    page.write_text(f"{head}{begin}\n\n{text}\n\n{end}{tail}", encoding="utf-8")
