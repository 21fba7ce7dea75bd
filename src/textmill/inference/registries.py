"""The registries of what a run is made of, with what it takes of another one."""

from textmill.models.registries import models as models
from textmill.tasks.registries import tasks as tasks
from textmill.tasks.registries import trained_tasks as trained_tasks
from textmill.text.registries import tokenizers as tokenizers

tokenizers.add({"textmill.inference.of_run": ["of_run"]})
trained_tasks.add({"textmill.inference.of_run": ["of_run"]})
