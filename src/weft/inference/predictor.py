"""A predictor: text in, typed answer out."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, overload

from weft.errors import DataError
from weft.tasks.task import Row, Task

__all__ = ["Predictor"]


class Predictor:
    """Answers strings with the task's trained module and its saved text path.

    Args:
        task: The task, its module with trained weights.
        checkpoint: Name of the checkpoint the weights come from.

    Example:
        ``weft.load("runs/demo/0a1b")("Good morning.")`` gives a :class:`weft.tasks.seq2seq.Translated`.
    """

    def __init__(self, task: Task, *, checkpoint: str = "") -> None:
        self.task, self.checkpoint = task, checkpoint
        self.columns: tuple[str, ...] = tuple(task.text.input_columns)
        task.module.eval()

    @overload
    def __call__(self, row: str | Row) -> Any: ...

    @overload
    def __call__(self, row: Sequence[str | Row]) -> list[Any]: ...

    def __call__(self, row: str | Row | Sequence[str | Row]) -> Any:
        """Answers one row (a string, or a mapping of columns), or a list of rows in order."""
        if isinstance(row, str | Mapping):
            return self.task.predict([self.row(row)])[0]
        return self.task.predict([self.row(one) for one in row])

    def row(self, given: str | Row) -> Row:
        """A row of the columns the model reads: a string fills the only one."""
        if isinstance(given, str):
            if len(self.columns) != 1:
                raise DataError(f"This model reads the columns {', '.join(self.columns)}; a string fills only one.")
            return {self.columns[0]: given}
        missing = [name for name in self.columns if name not in given]
        if missing:
            raise DataError(
                f"A row needs the columns {', '.join(self.columns)}; '{missing[0]}' is missing. "
                f"Found: {', '.join(given) or 'none'}."
            )
        return given

    def stream(self, rows: Iterable[str | Row], *, size: int = 256) -> Iterator[dict[str, Any]]:
        """Answers any number of rows in bounded memory, in order; a bad row becomes an error row.

        Args:
            rows: Strings or mappings, as they come.
            size: Rows answered together; they are sorted by length inside.

        Yields:
            Per row its inputs with ``prediction`` and ``score``, or with ``error``.
        """
        numbered = iter(rows)
        while chunk := list(islice(numbered, size)):
            yield from self._answered(chunk)

    def _answered(self, chunk: list[str | Row]) -> Iterator[dict[str, Any]]:
        good: list[Row] = []
        results: list[dict[str, Any]] = []
        for given in chunk:
            try:
                row = self.row(given)
                self.task.check(row)
            except DataError as error:
                shown = {self.columns[0]: given} if isinstance(given, str) else dict(given)
                results.append({**shown, "error": str(error)})
            else:
                results.append(dict(row))
                good.append(row)
        answers = iter(self.task.predict(good))
        for result in results:
            yield result if "error" in result else {**result, **self.task.answer_row(next(answers))}
