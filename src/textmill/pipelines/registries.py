"""Names of pipelines: what their models' folders and the server call them."""

from collections.abc import Callable
from typing import Any

from textmill.config.registry import Registry

pipelines = Registry(
    "pipeline",
    {
        "textmill.pipelines.dataset_mentions": ["dataset-mentions"],
        "textmill.pipelines.language_identifier": ["language-identifier"],
        "textmill.pipelines.reference_parser": ["reference-parser"],
        "textmill.pipelines.summarizer": ["summarizer"],
    },
)


def register_pipeline(name: str) -> Callable[[Any], Any]:
    """Files a pipeline's class under the name that the folder of its model has."""
    return pipelines.register(name)
