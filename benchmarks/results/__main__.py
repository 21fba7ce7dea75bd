"""Measures what is missing of the results on real data, and writes the tables of docs/results.md.

    python -m benchmarks.results --data data
    python -m benchmarks.results tagging cora --seeds 1 --threads 1

Each training is ``textmill train EXPERIMENT`` as it is shipped, in a process of its own; the linear
baselines are fitted on the same training files and scored on the same dev files. Every figure is
kept in the ledger (``--out``) as soon as it is there: a second call makes those that are missing,
goes on with a training that was interrupted, and makes anew what rests on another recipe, other
data or another baseline. Test parts are never read.
"""

import argparse
import os
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from benchmarks.results import (
    bar,
    comparison,
    few,
    gallery,
    intents,
    languages,
    papers,
    pretrained,
    pytext,
    references,
    shipped,
    summaries,
)
from benchmarks.results.found import FailedError
from benchmarks.results.jobs import JOBS, Job, chosen
from benchmarks.results.ledger import Ledger
from benchmarks.results.measuring import (
    Bench,
    measure_baseline,
    measure_textmill,
    say,
)
from benchmarks.results.table import tables, write

PAGE = Path(__file__).parents[2] / "docs" / "results.md"


def main(words: Sequence[str] | None = None, declared: Sequence[Job] = JOBS) -> None:
    """Measures and writes; exits with 1 where a measurement failed."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.results", description=(__doc__ or "").partition("\n")[0]
    )
    parser.add_argument(
        "jobs",
        nargs="*",
        metavar="JOB",
        help="names, families, comparison, few, gallery, intents, languages, linear, papers, "
        "pretrained, pytext, references, shipped or summaries",
    )
    home = os.environ.get("TEXTMILL_DATA", "data")
    parser.add_argument("--data", type=Path, default=Path(home), help="the folder of data sets")
    parser.add_argument("--out", type=Path, default=Path("results"), help="ledger and run folders")
    parser.add_argument("--seeds", type=int, help="at most so many seeds a job")
    parser.add_argument("--threads", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--baselines", action="store_true", help="only the linear baselines")
    parser.add_argument("--table", action="store_true", help="only the tables: measures nothing")
    parser.add_argument("--page", type=Path, default=PAGE, help="the page that has the tables")
    args = parser.parse_args(words)
    if args.threads < 1 or (args.seeds is not None and args.seeds < 1):
        parser.error("--threads and --seeds are at least 1")
    if of_another_table(args, parser):
        return
    try:
        jobs = chosen(args.jobs, declared)
    except ValueError as error:
        parser.error(str(error))
    out = args.out.resolve()
    ledger = Ledger(out / "results.jsonl")
    bench = Bench(args.data.resolve(), out, ledger, threads=args.threads, seeds=args.seeds)
    failed = []
    try:
        for job in () if args.table else jobs:
            failed += measure(bench, job, only_baselines=args.baselines)
    finally:
        write(args.page, tables(bench, declared))
    end(failed)


def of_another_table(args: argparse.Namespace, parser: argparse.ArgumentParser) -> bool:
    """Whether what is asked for has a table of its own; it is measured then."""
    places = args.data.resolve(), args.out.resolve(), args.page
    if args.jobs == ["linear"]:
        bar.main(*places, measured=not args.table)
    elif args.jobs[:1] == ["comparison"]:
        places = *places[:2], comparison.PAGE if args.page == PAGE else args.page
        names, seeds = args.jobs[1:], args.seeds or 3
        end(comparison.main(*places, seeds=seeds, names=names, measured=not args.table))
    elif args.jobs == ["few"]:
        few.main(*places, seeds=args.seeds or 5, measured=not args.table)
    elif args.jobs == ["intents"]:
        intents.main(*places, seeds=args.seeds or 3, measured=not args.table)
    elif args.jobs[:1] == ["gallery"]:
        where = gallery.PAGE if args.page == PAGE else args.page
        gallery.main(*places[:2], where, names=args.jobs[1:], measured=not args.table)
    elif args.jobs[:1] == ["pytext"]:
        pytext.main(args.data.resolve(), args.page, names=args.jobs[1:])
    elif args.jobs == ["languages"]:
        languages.main(args.data.resolve(), args.page)
    elif args.jobs == ["papers"]:
        papers.main(args.data.resolve(), args.page)
    elif args.jobs == ["references"]:
        references.main(*places, seeds=args.seeds or 3, measured=not args.table)
    elif args.jobs == ["shipped"]:
        shipped.main(*places, measured=not args.table)
    elif args.jobs == ["summaries"]:
        sizes = {"seeds": args.seeds or 3, "threads": args.threads}
        end(summaries.main(*places, **sizes, measured=not args.table))
    elif args.jobs[:1] == ["pretrained"]:
        names = args.jobs[1:]
        if unknown := set(names) - {tuned.name for tuned in pretrained.TUNED}:
            known = ", ".join(tuned.name for tuned in pretrained.TUNED)
            parser.error(f"unknown result {min(unknown)!r} of pretrained; known: {known}")
        sizes = {"seeds": args.seeds or 3, "threads": args.threads}
        end(pretrained.main(*places, **sizes, names=names, measured=not args.table))
    else:
        return False
    return True


def end(failed: Sequence[str]) -> None:
    """Exits with 1 where a measurement failed."""
    if failed:
        sys.exit("\nThese measurements failed:\n  " + "\n  ".join(failed))


def measure(bench: Bench, job: Job, *, only_baselines: bool) -> list[str]:
    """Makes what is missing of a job; which measurements failed."""
    files = bench.files(job)
    if files is None:
        say(f"{job.name}: no data ({bench.data / job.train} is not there)")
        return []
    measures = [
        partial(measure_baseline, bench, baseline, job, files) for baseline in job.baselines
    ]
    if not only_baselines:
        measures += [partial(measure_textmill, bench, job, files, s) for s in bench.seeds_of(job)]
    failed = []
    for measure_one in measures:
        try:
            measure_one()
        except FailedError as error:
            say(str(error))
            failed.append(str(error))
    return failed


if __name__ == "__main__":
    main()
