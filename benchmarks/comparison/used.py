"""Runs a command; prints its CPU seconds, and the MB of its largest process, as a line of JSON.

    python -S used.py SECONDS COMMAND ...      SECONDS: after so many the command is ended

A process counts the memory of the one that it was forked from as its own, so this one is small.
"""

import os
import signal
import sys


def main(seconds: int, words: list[str]) -> None:
    pid = os.spawnvp(os.P_NOWAIT, words[0], words)

    def end(*_: object) -> None:
        os.kill(pid, signal.SIGKILL)

    signal.signal(signal.SIGALRM, end)
    signal.alarm(seconds)
    _, status, used = os.wait4(pid, 0)
    scale = 2**20 if sys.platform == "darwin" else 2**10
    cpu, peak = used.ru_utime + used.ru_stime, used.ru_maxrss / scale
    print(f'\n{{"cpu_s": {cpu}, "peak_mb": {peak}}}', flush=True)
    sys.exit(min(abs(os.waitstatus_to_exitcode(status)), 255))


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2:])
