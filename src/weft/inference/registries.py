"""The registries of what a run is made of, with the tokenizer of another run."""

from weft.models.registries import models as models
from weft.tasks.registries import tasks as tasks
from weft.text.registries import tokenizers as tokenizers

tokenizers.add({"weft.inference.tokenizer_from_run": ["of_run"]})
