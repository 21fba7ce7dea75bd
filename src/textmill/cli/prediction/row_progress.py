"""How far a command is with its rows: a bar on a terminal, nothing elsewhere."""

import sys
import time
from collections.abc import Callable
from typing import Any, Self

from textmill.metrics.tables import format_eta

SECONDS_BETWEEN = 0.1


class RowProgress:
    """A bar on stderr while rows are answered, with their rate and the time that is left.

    Args:
        size: Gives what `show` counts up to, in the same unit; None where that is not known. It is
            asked on a terminal only.
    """

    def __init__(self, size: Callable[[], int | None]) -> None:
        self._size = size
        self._bar: Any = None
        self._drawn = 0.0
        self._first: tuple[float, int, int] | None = None
        self._total: int | None = None

    def __enter__(self) -> Self:
        if sys.stderr.isatty():
            from rich.console import Console
            from rich.progress import BarColumn, Progress, TextColumn

            self._total = self._size()
            terminal = Console(file=sys.stderr, highlight=False, soft_wrap=True)
            # One column for all text: on a narrow terminal its end is cut, and never the rows.
            text = TextColumn("{task.fields[text]}", markup=False)
            columns = (BarColumn(bar_width=16), text)
            self._bar = Progress(*columns, console=terminal, auto_refresh=False, transient=True)
            self._bar.add_task("rows", total=self._total, text="")
            self._bar.start()
            terminal.show_cursor(True)  # rich hides it; nobody would undo it after a SIGKILL
        return self

    def __exit__(self, *_: object) -> None:
        if self._bar is not None:
            self._bar.stop()

    def show(self, rows: int, done: int) -> None:
        """Draws the bar, if it is some time since it was drawn.

        Args:
            rows: Answered so far.
            done: How much is read, in the unit of the size.
        """
        now = time.monotonic()
        if self._bar is None or now - self._drawn < SECONDS_BETWEEN:
            return
        self._first = self._first or (now, rows, done)
        began, rows_then, done_then = self._first
        self._drawn, parts = now, [f"{rows:,} rows"]
        if rows > rows_then:  # the first rows took the time that a model needs to begin
            parts.append(f"{(rows - rows_then) / (now - began):,.0f} rows/s")
        if self._total and done > done_then:
            left = (self._total - done) * (now - began) / (done - done_then)
            parts.append(format_eta(left))
        self._draw(text=" · ".join(parts), completed=done)

    def say(self, text: str) -> None:
        """Draws what is done before and after rows are answered."""
        if self._bar is not None:
            self._draw(text=text)

    def _draw(self, **fields: Any) -> None:
        self._bar.update(self._bar.task_ids[0], **fields)
        self._bar.refresh()
