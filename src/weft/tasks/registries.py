"""Names of tasks in files: each module is imported when its name is asked for."""

from collections.abc import Callable
from typing import Any

from weft.config.registry import Registry

__all__ = ["register_task", "tasks"]

tasks = Registry(
    "task",
    {
        "weft.tasks.classification": ["document_classification", "pair_classification"],
        "weft.tasks.embedding": ["text_embedding"],
        "weft.tasks.intent_slots": ["intent_slots"],
        "weft.tasks.language_model": ["language_modeling"],
        "weft.tasks.masked_language_model": ["masked_language_modeling"],
        "weft.tasks.ranking": ["query_document_ranking"],
        "weft.tasks.parsing": ["semantic_parsing"],
        "weft.tasks.question_answering": ["question_answering"],
        "weft.tasks.regression": ["document_regression", "pair_regression"],
        "weft.tasks.summarization": ["extractive_summarization", "summarization"],
        "weft.tasks.tagging": ["word_tagging"],
        "weft.tasks.translation": ["translation"],
        "weft.tasks.tree_tagging": ["tree_tagging"],
    },
    plural="tasks",
)


def register_task(name: str) -> Callable[[Any], Any]:
    """Files a task's class under a name for files: ``task.type=name``, and the run's record.

    What is registered where it can be imported is loaded again without ``allow_code``.

    Example:
        >>> @register_task("count_words")
        ... class CountWords: ...
        >>> tasks.get("count_words") is CountWords
        True
    """
    return tasks.register(name)
