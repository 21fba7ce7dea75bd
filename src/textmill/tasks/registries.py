"""Names of tasks in files: each module is imported when its name is asked for."""

from collections.abc import Callable
from typing import Any

from textmill.config.registry import Registry
from textmill.models.registries import models

tasks = Registry(
    "task",
    {
        "textmill.tasks.classification": [
            "contrastive_classification",
            "document_classification",
            "pair_classification",
        ],
        "textmill.tasks.embedding": ["text_embedding"],
        "textmill.tasks.several.ensemble": ["ensemble"],
        "textmill.tasks.intent_slots": ["intent_slots"],
        "textmill.tasks.language_model": ["language_modeling"],
        "textmill.tasks.mask_predict": ["mask_predict_parsing"],
        "textmill.tasks.masked_language_model": ["masked_language_modeling"],
        "textmill.tasks.several.multitask": ["multitask"],
        "textmill.tasks.ranking": ["query_document_ranking"],
        "textmill.tasks.generation": [
            "extractive_summarization",
            "semantic_parsing",
            "summarization",
            "translation",
        ],
        "textmill.tasks.parsing": ["shift_reduce_parsing"],
        "textmill.tasks.question_answering": ["question_answering"],
        "textmill.tasks.regression": ["document_regression", "pair_regression"],
        "textmill.tasks.tagging": ["tree_tagging", "word_tagging"],
    },
    plural="tasks",
)
models.add({"textmill.tasks.several.ensemble": ["ensemble"]})
trained_tasks = Registry("trained task")
"""What loads the task of a finished run for ``several/trained_task.py``: a room above."""


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
