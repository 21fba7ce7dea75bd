"""``textmill predict --output`` killed again and again: run as a process of its own, without torch.

    python -m tests.cli.killed_prediction .csv 20

kills the command at every call that changes the disk, then at 20 random moments; each time the same
command must go on and write the bytes of the undisturbed one. It prints how many calls and kills.
"""

import importlib
import itertools
import os
import random
import signal
import sys
import time
from pathlib import Path

from textmill.cli import predict
from textmill.cli.main import main
from textmill.errors import DataError
from textmill.exported.row_predictor import RowPredictor
from textmill.runtime.disk import operations

CALLS = ("open", "write", "fsync", "truncate", "rename")


class Together(RowPredictor):
    """Answers each row with the first of those that are answered together, and their number.

    Rows that are not answered together as in an undisturbed run show.
    """

    data = ()
    stop_at = -1

    def __init__(self):
        super().__init__(["text"])

    def answers(self, rows):
        if any(row["text"] == f"row {self.stop_at}" for row in rows):
            raise KeyboardInterrupt
        return [f"{row['text']}: one of {len(rows)} from {rows[0]['text']}" for row in rows]

    def check(self, row):
        if "bad" in row["text"]:
            raise DataError("it is bad")

    def answer_row(self, answer):
        return {"prediction": answer, "score": len(answer) / 3}


def write_place(folder):
    rows = ("bad" if n % 9 == 5 else f"row {n}" for n in range(2000))
    (folder / "rows.txt").write_text("".join(f"{row}\n" for row in rows))
    (folder / "run").mkdir()
    (folder / "run" / "export.json").write_text("{}")


def command(*words, to="out.csv"):
    return main(["predict", "run", "rows.txt", "--output", str(to), "--lines", *words])


def started(*words, to, before=None):
    """A process that runs the command, and does something before."""
    if child := os.fork():
        return child
    sys.stdout = sys.stderr = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115  # to the end
    if before is not None:
        before()
    os._exit(command(*words, to=to))


def ended(child):
    """How a process ended: its exit code, or the negative signal."""
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def die_at(k):
    """Ends this process at its k-th call that changes the disk; of a write half is done."""
    count = itertools.count(1)

    def dying(name, call):
        def counted(*arguments):
            if next(count) == k:
                if name == "write":
                    call(arguments[0], arguments[1][: len(arguments[1]) // 2], arguments[2])
                os.kill(os.getpid(), signal.SIGKILL)
            return call(*arguments)

        return counted

    for name in CALLS:
        setattr(operations, name, dying(name, getattr(operations, name)))


def killed_at_every_call(output, expected):
    """Kills at the first call, the second, ...; gives the number of calls."""
    for k in itertools.count(1):
        output.unlink()
        if ended(started(to=output, before=lambda k=k: die_at(k))) == 1:
            return k
        assert not output.exists() or output.read_bytes() == expected, k
        assert ended(started(to=output)) == 1, k
        assert output.read_bytes() == expected, k
        assert {path.name for path in Path().iterdir()} == {"rows.txt", "run", output.name}, k
    return 0


def killed_at_moments(output, expected, kills, seconds):
    """Kills at random moments, and again what goes on, until so many kills are done."""
    draw, done = random.Random(1), 0
    while done < kills:
        output.unlink(missing_ok=True)
        part, code = output.with_name(f"{output.name}.part"), -signal.SIGKILL
        # Killed after its last step, a process has done all, and is not to be started again.
        while code == -signal.SIGKILL and (part.exists() or not output.exists()):
            child = started(to=output)
            time.sleep(draw.uniform(0, 1.5 * seconds))
            os.kill(child, signal.SIGKILL)
            code = ended(child)
            done += code == -signal.SIGKILL
        assert code in (1, -signal.SIGKILL)
        assert output.read_bytes() == expected
    return done


if __name__ == "__main__":
    importlib.import_module("pyarrow.parquet")  # no child of a short life takes its time for it
    suffix, kills = sys.argv[1:]
    output = Path(f"out{suffix}")
    write_place(Path())
    predict.load_predictor = lambda _: Together()
    began = time.monotonic()
    assert ended(started(to=output)) == 1
    took, expected = time.monotonic() - began, output.read_bytes()
    calls = killed_at_every_call(output, expected)
    print(calls, killed_at_moments(output, expected, int(kills), took))
