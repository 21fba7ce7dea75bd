"""What an export can say of a task: its search as data, and what it has no word for."""

from weft.errors import UserError
from weft.exported.seq2seq import Search
from weft.inference.export import ctranslate2
from weft.tasks.seq2seq import Seq2Seq
from weft.tasks.seq2seq_protocols import longest_input
from weft.tasks.task import Task

__all__ = ["refuse_inexpressible", "search_of"]


_OFF = {
    "sample": False,
    "repetition_penalty": 1.0,
    "no_repeat_ngram": 0,
    # Other programs ban a token before they normalize, so their scores rank otherwise.
    "min_length": 0,
    "unknown_penalty": 0.0,
}
"""Settings of a search that must be off."""


def refuse_inexpressible(task: Task, name: str) -> None:
    """Refuses a task whose answers an export of this format could not give; all reasons at once.

    Args:
        task: The task with its module; the weights are not looked at.
        name: The format.

    Raises:
        UserError: Names every setting in the way.
    """
    if not isinstance(task, Seq2Seq):
        raise UserError(
            f"A {type(task).__name__} cannot be exported: wanted a task that generates text, such "
            "as translation."
        )
    problems = [*_search_problems(task), *ctranslate2.refusals(task.module)]
    if problems:
        lines = "\n".join(f"  {problem}" for problem in problems)
        raise UserError(
            f"This model cannot be exported to {name}, which has no word for:\n{lines}\n"
            "Train it without these, or use the run itself: weft predict RUN."
        )


def _search_problems(task: Seq2Seq) -> list[str]:
    decoding, problems = task.config.decoding, []
    for name, off in _OFF.items():
        if (value := getattr(decoding, name)) != off:
            problems.append(f"task.decoding.{name} is {value}")
    if task.config.answer_prefix:
        problems.append(f"task.answer_prefix is {task.config.answer_prefix[:40]!r}")
    if task.completed_by:
        problems.append(f"answers are completed from their source ({task.completed_by})")
    own_search = type(task).generate is not Seq2Seq.generate
    if own_search or type(task).predict is not Seq2Seq.predict:
        problems.append(f"{type(task).__name__} answers by code of its own")
    return problems


def search_of(task: Seq2Seq) -> Search:
    """The task's search, as data."""
    decoding, longest = task.config.decoding, longest_input(task.module)
    assert longest is not None, "a module that was not refused says it"
    return Search(
        beam_size=decoding.beam_size,
        n_best=decoding.n_best,
        length_penalty=decoding.length_penalty,
        early_stopping=decoding.early_stopping,
        max_length_a=decoding.max_length_a,
        max_length_b=decoding.max_length_b,
        # The last id generated is never read, so it needs no position.
        max_length=longest - len(task.text.target_prefix) + 1,
    )
