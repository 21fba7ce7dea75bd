"""The registries of what a run is made of, with the tokenizer of another run."""

from textmill.models.registries import models as models
from textmill.tasks.registries import tasks as tasks
from textmill.text.registries import tokenizers as tokenizers

tokenizers.add({"textmill.inference.tokenizer_from_run": ["of_run"]})
