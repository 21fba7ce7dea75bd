"""The last line on a terminal, which says how far a command is; nothing on other streams."""

import sys
import time
from collections.abc import Callable
from typing import Any, Self

from textmill.runtime.logging import printable

SECONDS_BETWEEN = 0.1
"""Between two drawings."""


class ProgressLine:
    """Drawn below what is logged meanwhile, by whoever reports: it has no thread of its own.

    ``size`` returns what :meth:`show` counts up to, None if that is not known and there is no bar;
    it is called on a terminal only.
    """

    def __init__(self, size: Callable[[], int | None] = lambda: None) -> None:
        self._size = size
        self._bar: Any = None
        self._said: tuple[str, dict[str, Any]] | None = None
        self._drawn = 0.0
        self._first: tuple[float, int, int] | None = None

    def __enter__(self) -> Self:
        if sys.stderr.isatty():
            from rich.console import Console
            from rich.progress import BarColumn, Progress, TextColumn

            total = self._size()
            terminal = Console(file=sys.stderr, highlight=False, soft_wrap=True)
            # One column for all text: on a narrow terminal its end is cut, and never the rows.
            text = TextColumn("{task.fields[text]}", markup=False)
            columns = [text] if total is None else [BarColumn(bar_width=16), text]
            self._bar = Progress(*columns, console=terminal, auto_refresh=False, transient=True)
            self._bar.add_task("rows", total=total, text="")
            self._bar.start()
            terminal.show_cursor(True)  # rich hides it; nobody would undo it after a SIGKILL
        return self

    def __exit__(self, *_: object) -> None:
        if self._bar is not None:
            self._bar.stop()

    def show(self, rows: int, done: int) -> None:
        """Draws how many rows are answered, their rate, and the time left."""
        now = time.monotonic()
        if self._bar is None or now - self._drawn < SECONDS_BETWEEN:
            return
        self._first = self._first or (now, rows, done)
        began, rows_then, done_then = self._first
        parts = [f"{rows:,} rows"]
        if rows > rows_then:  # the first rows took the time that a model needs to begin
            parts.append(f"{(rows - rows_then) / (now - began):,.0f} rows/s")
        if (total := self._bar.tasks[0].total) and done > done_then:
            from textmill.metrics.tables import format_eta

            left = (total - done) * (now - began) / (done - done_then)
            parts.append(format_eta(left))
        self._drawn = now
        self.say(" · ".join(parts), completed=done)

    def say(self, text: str, **fields: Any) -> None:
        """Draws a text in its place, if it is another."""
        if self._bar is not None and (text, fields) != self._said:
            self._said = (text, fields)
            self._bar.update(0, text=printable(text), **fields)
            self._bar.refresh()
