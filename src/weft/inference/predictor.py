"""A predictor: text in, typed answer out."""

from collections.abc import Mapping, Sequence
from typing import Any

from typing_extensions import override

from weft.exported.rows import RowPredictor
from weft.tasks.task import Row, Task

__all__ = ["Predictor"]


class Predictor(RowPredictor):
    """Answers strings with the task's trained module and its saved text path.

    Args:
        task: The task, its module with trained weights.
        checkpoint: Name of the checkpoint the weights come from.

    Example:
        ``weft.load("runs/demo/0a1b")("Good morning.")`` gives a
        :class:`weft.tasks.seq2seq.Translated`.
    """

    def __init__(self, task: Task, *, checkpoint: str = "") -> None:
        super().__init__(task.text.input_columns)
        self.task, self.checkpoint = task, checkpoint
        task.module.eval()

    @override
    def __repr__(self) -> str:
        task, columns = type(self.task).__name__, ", ".join(self.columns)
        where = f" of {self.checkpoint}" if self.checkpoint else ""
        return f"<Predictor: {task}{where}, answers rows of {columns}, on {self.task.device}>"

    @override
    def answers(self, rows: Sequence[Row]) -> list[Any]:
        return self.task.predict(rows)

    @override
    def check(self, row: Row) -> None:
        self.task.check(row)

    @override
    def answer_row(self, answer: Any) -> Mapping[str, Any]:
        return self.task.answer_row(answer)
