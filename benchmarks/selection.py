"""Which step of a training is taken, by rules of selection, on rows that no rule has seen.

    python -m benchmarks.selection --data data classification/docnn classification/bilstm

Each experiment is trained on 500 rows of small sets (``benchmarks/results/splits.py``), with 100
others as ``valid_data``; after each evaluation, further rows of the training part are evaluated,
too. Printed is how much better each rule's step is on these than the step of the best value, of
equal ones that with the lower loss: the mean in percent, with its standard error.
"""

import argparse
import math
import random
import statistics
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from benchmarks.results.splits import SPLITS, Row, drawn

ROWS, VALID, TEST = 500, 100, 1500
SETS = [name for name in SPLITS if name != "snli-pair"]
Evaluations = list[tuple[float, float, float]]
"""Of each evaluation accuracy and loss on the valid rows, and the accuracy on the others."""


def trained(experiment: str, every: list[Row], *, seed: int, folder: Path) -> Evaluations:
    """Trains once, and evaluates both parts after each evaluation."""
    import textmill
    from textmill.training.loop import Trainer

    random.Random(0).shuffle(every)
    test, pool = every[: min(TEST, len(every) // 4)], every[min(TEST, len(every) // 4) :]
    rows = drawn(pool, ROWS + VALID, seed)
    for part, some in (("train", rows[:ROWS]), ("valid", rows[ROWS:]), ("test", test)):
        text = "".join("\t".join(row) + "\n" for row in some)
        (folder / f"{part}.tsv").write_text(text, encoding="utf-8")
    found: Evaluations = []
    do = Trainer.do_what_is_due

    def watched(self: Any, before: Any, now: Any) -> None:
        count = len(self.selection.history)
        do(self, before, now)
        if len(self.selection.history) > count:
            valid, test = (
                self.evaluator.evaluate(self.data.held_out(split), step=now.steps)
                for split in ("valid", "test")
            )
            values = valid.values
            found.append((values["accuracy"], values["loss"], test.values["accuracy"]))

    words = [f"{part}_data.path={folder / part}.tsv" for part in ("train", "valid", "test")]
    words += ["train_data.columns={label: 0, text: 1}", f"trainer.seed={seed}"]
    words += ["reporters.console=false", "reporters.html=false"]
    Trainer.do_what_is_due = watched  # type: ignore[method-assign]
    try:
        textmill.train(experiment, words, run_dir=folder / "run")
    finally:
        Trainer.do_what_is_due = do  # type: ignore[method-assign]
    return found


def within(errors: float) -> Callable[[Evaluations], int]:
    """The latest step within so many standard errors of the best value."""

    def pick(found: Evaluations) -> int:
        best = max(valid for valid, _, _ in found)
        least = best - errors * math.sqrt(best * (1 - best) / VALID)
        return max(i for i, (valid, _, _) in enumerate(found) if valid >= least)

    return pick


RULES: dict[str, Callable[[Evaluations], int]] = {
    "the best value, of equal ones the later": within(0),
    "the latest within half a standard error": within(0.5),
    "the latest within a standard error": within(1),
    "the latest within two": within(2),
    "the last": lambda found: len(found) - 1,
}


def lower_loss(found: Evaluations) -> int:
    """The step of the best value, of equal ones that with the lowest loss."""
    return min(range(len(found)), key=lambda i: (-found[i][0], found[i][1], i))


def main(words: Sequence[str] | None = None) -> None:
    """Trains, and prints a line for each rule."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.selection")
    parser.add_argument("experiments", nargs="+", metavar="EXPERIMENT")
    parser.add_argument("--data", type=Path, default=Path("data"), help="the folder of data sets")
    parser.add_argument("--seeds", type=int, default=2)
    args = parser.parse_args(words)
    all_found = []
    for experiment in args.experiments:
        for name in SETS:
            for seed in range(1, args.seeds + 1):
                with tempfile.TemporaryDirectory() as folder:
                    all_found.append(trained(experiment, args.data, name, seed, Path(folder)))
    print(
        f"{len(all_found)} trainings, accuracy of other rows beside that of the best value's step:"
    )
    for rule, pick in RULES.items():
        gains = [100 * (f[pick(f)][2] - f[lower_loss(f)][2]) for f in all_found]
        error = statistics.stdev(gains) / math.sqrt(len(gains)) if len(gains) > 1 else math.nan
        print(f"{rule:42} {statistics.mean(gains):+.2f} ± {error:.2f}")


if __name__ == "__main__":
    main()
