"""Tasks: where behaviour is changed. A task joins a module, a processor, a loss and metrics."""

from typing import TYPE_CHECKING

from weft.config.public_names import on_first_use

if TYPE_CHECKING:
    from weft.exported.seq2seq import Translated as Translated
    from weft.tasks.evaluation import Evaluation as Evaluation
    from weft.tasks.evaluation import evaluate as evaluate
    from weft.tasks.seq2seq import Seq2Seq as Seq2Seq
    from weft.tasks.task import Loss as Loss
    from weft.tasks.task import Outputs as Outputs
    from weft.tasks.task import Task as Task
    from weft.tasks.translation import Translation as Translation

__getattr__, __dir__ = on_first_use(__name__)
