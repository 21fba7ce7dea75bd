"""What an export can say of a task: its search as data, and what it cannot express."""

from dataclasses import fields

from textmill.errors import UserError
from textmill.exported.seq2seq import Search
from textmill.inference.export import (
    ctranslate2,
    huggingface_encoder,
    huggingface_folder,
    onnx_steps,
)
from textmill.inference.export.huggingface_heads import encoder_of
from textmill.models.decoders.pretrained import PretrainedLanguageModel
from textmill.models.decoding.search_settings import Decoding
from textmill.tasks.column_task import ColumnsTask
from textmill.tasks.language_model import LanguageModeling
from textmill.tasks.masked_language_model import MaskedLanguageModeling
from textmill.tasks.parsing import SemanticParsing
from textmill.tasks.seq2seq import Seq2Seq
from textmill.tasks.seq2seq_protocols import longest_input
from textmill.tasks.task import Task
from textmill.text.processors.column_processor import PlainColumns

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
    if name == "huggingface" and _is_written(task):
        problems = _huggingface_problems(task)
    elif isinstance(task, Seq2Seq):
        problems = _text_problems(task, name)
    elif isinstance(task, ColumnsTask) and name == "onnx":
        problems = _column_problems(task)
    elif isinstance(task, LanguageModeling) and name in ("onnx", "ctranslate2"):
        own = ctranslate2.refusals(task.module) if name == "ctranslate2" else _model_problems(task)
        told = _greedy_problems(task) if name == "ctranslate2" else []
        problems = [*told, *own, *_own_methods(task, LanguageModeling)]
    elif isinstance(task, MaskedLanguageModeling) and name == "onnx":
        problems = _own_methods(task, MaskedLanguageModeling)
    else:
        wanted = "a task that generates text from text, such as translation"
        if name == "huggingface":
            wanted = (
                "a task that generates text, of translation or language modeling, say, or a "
                "pretrained encoder (model.encoder.type=pretrained)"
            )
        if name == "onnx":
            wanted = "one of the library's tasks, or a subclass of ColumnsTask"
        raise UserError(f"A {type(task).__name__} cannot be exported to {name}: wanted {wanted}.")
    if problems:
        lines = "\n".join(f"  {problem}" for problem in problems)
        way = "Train it without these"
        if problems == ["task.decoding.sample is True"]:
            way = (
                "Train it with task.decoding.sample=false, export it with the likeliest tokens in "
                f"place of drawn ones (textmill export RUN --format {name} --greedy)"
            )
        raise UserError(
            f"This model cannot be exported to {name}, which cannot express:\n{lines}\n"
            f"{way}, or use the run itself: textmill predict RUN."
        )


def _is_written(task: Task) -> bool:
    """Whether transformers has anything that such a task becomes."""
    pretrained = isinstance(task, ColumnsTask) and encoder_of(task.module) is not None
    return pretrained or isinstance(task, Seq2Seq | LanguageModeling)


def _huggingface_problems(task: Task) -> list[str]:
    if isinstance(task, ColumnsTask):
        return [*huggingface_encoder.refusals(task)]
    assert isinstance(task, Seq2Seq | LanguageModeling), "others are refused"
    problems = [*_own_answers(task), *huggingface_folder.refusals(task)]
    if isinstance(task, Seq2Seq):
        settings = task.answer_settings.items()
        problems += [f"task.{each} is {value!r:.40}" for each, value in settings if value]
    return problems


def _greedy_problems(task: LanguageModeling) -> list[str]:
    """What of a search CTranslate2 cannot go on with a text by: its scores are of what is added."""
    decoding, problems = task.config.decoding, list[str]()
    for setting, off in {**_OFF, "beam_size": 1}.items():
        value = getattr(decoding, setting)
        if value != off and setting != "unknown_penalty":  # the unknown token is never an answer
            problems.append(f"task.decoding.{setting} is {value}")
    return problems


def _column_problems(task: ColumnsTask) -> list[str]:
    """What of a task is told in Python alone."""
    kind, order = type(task), type(task).__mro__
    by = {
        name: next(number for number, each in enumerate(order) if name in vars(each))
        for name in ("answers", "exported_outputs", "completed", "answer_row", "predict")
    }
    base = order.index(ColumnsTask)
    own = [name for name in ("completed", "answer_row", "predict") if by[name] != base]
    if by["exported_outputs"] == base or by["answers"] < by["exported_outputs"]:
        own.append("answers")
    told = [f"{kind.__name__} has a method of its own, {name}" for name in sorted(own)]
    if isinstance(task.text, PlainColumns):
        told.append("its text processor is PlainColumns, which makes no answers of outputs")
    return told


def _text_problems(task: Seq2Seq, name: str) -> list[str]:
    decoding, problems = task.config.decoding, list[str]()
    for setting, off in _OFF.items() if name == "ctranslate2" else ():
        if (value := getattr(decoding, setting)) != off:
            problems.append(f"task.decoding.{setting} is {value}")
    problems += _own_answers(task)
    if name == "ctranslate2":
        return [*problems, *ctranslate2.refusals(task.module)]
    return [*problems, *_model_problems(task)]


def _own_answers(task: Seq2Seq | LanguageModeling) -> list[str]:
    """What of a task's answers is no search of its model."""
    if isinstance(task, LanguageModeling):
        return _own_methods(task, LanguageModeling)
    problems = []
    if type(task).complete not in (Seq2Seq.complete, SemanticParsing.complete):
        problems.append(f"{type(task).__name__} has a method of its own, complete")
    own_search = type(task).generate is not Seq2Seq.generate
    if own_search or type(task).predict is not Seq2Seq.predict:
        problems.append(f"{type(task).__name__} answers by code of its own")
    return problems


def _model_problems(task: Task) -> list[str]:
    if isinstance(task.module, PretrainedLanguageModel) and task.module.cache_sizes is None:
        return ["the model keeps keys and values of several sizes"]
    if type(task.module) in onnx_steps.STATES:
        return []
    known = ", ".join(kind.__name__ for kind in onnx_steps.STATES)
    return [f"the model must be one of {known}, but is a {type(task.module).__name__}"]


def _own_methods(task: Task, library: type[Task]) -> list[str]:
    """What a subclass of a task answers by code of its own."""
    names = ("answer_row", "check", "predict")
    own = [name for name in names if getattr(type(task), name) is not getattr(library, name)]
    return [f"{type(task).__name__} has a method of its own, {name}" for name in own]


def search_of(task: Seq2Seq) -> Search:
    """The task's search, as data."""
    longest = longest_input(task.module)
    assert longest is not None, "a module that was not refused says it"
    # The last id generated is never read, so it needs no position.
    return searched(task.config.decoding, longest - len(task.text.target_prefix) + 1)


def searched(decoding: Decoding, longest: int) -> Search:
    """A search of at most so many ids, as data."""
    shared = {f.name: getattr(decoding, f.name) for f in fields(Search) if f.name != "max_length"}
    return Search(**shared, max_length=longest)
