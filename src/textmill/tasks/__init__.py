"""Tasks: where behaviour is changed. A task joins a module, a processor, a loss and metrics."""

from typing import TYPE_CHECKING

from textmill.config.public_names import on_first_use

if TYPE_CHECKING:
    from textmill.tasks.evaluation import Evaluation as Evaluation
    from textmill.tasks.evaluation import evaluate as evaluate
    from textmill.tasks.generation import Translation as Translation
    from textmill.tasks.seq2seq import Seq2Seq as Seq2Seq
    from textmill.tasks.task import Loss as Loss
    from textmill.tasks.task import Outputs as Outputs
    from textmill.tasks.task import Task as Task
    from textmill.text.answers import Translated as Translated

__getattr__, __dir__ = on_first_use(__name__)
