"""Other frameworks' names for textmill's settings, commands and hooks: errors name textmill's.

They are PyText's, Model Garden's, fairseq2's, Lightning's and transformers'.
"""

import inspect
import re
from collections.abc import Iterator, Mapping
from functools import lru_cache
from types import CodeType, FunctionType
from typing import Any

from textmill.errors import UserError, refuse_all, worded


def _inverted(table: Mapping[str, str]) -> dict[str, str]:
    return {theirs: ours for ours, names in table.items() for theirs in names.split()}


_DATA = "the ingredients train_data, valid_data and test_data"

SETTINGS = _inverted({
    "trainer.max_steps": "train_steps num_train_steps total_steps max_update",
    "trainer.max_epochs": "epochs num_epochs num_train_epochs train_epochs max_epoch",
    "trainer.evaluate_every": "validation_interval validate_interval val_check_interval "
    "check_val_every_n_epoch eval_steps eval_strategy evaluation_strategy eval_interval",
    "trainer.report_every": "summary_interval log_every_n_steps logging_steps log_interval",
    "trainer.save_every": "checkpoint_interval save_interval save_steps save_strategy",
    "trainer.keep": "max_to_keep save_top_k save_total_limit keep_last_epochs",
    "trainer.save_modules": "save_module_checkpoints",
    "trainer.export": "export_onnx_path export_caffe2_path",
    "trainer.selection.metric": "best_checkpoint_eval_metric best_checkpoint_metric "
    "metric_for_best_model monitor",
    "trainer.selection.better": "best_checkpoint_metric_comp greater_is_better",
    "trainer.selection.patience": "early_stop_after early_stopping_patience",
    "trainer.initialize": "init_checkpoint pretrained_checkpoint load_path restore_file",
    "trainer.max_time": "target_time_limit_seconds",
    "trainer.accumulate": "accumulate_grad_batches num_accumulated_batches "
    "gradient_accumulation_steps update_freq",
    "trainer.clip_norm": "gradient_clip_val gradient_clip_norm max_clip_norm max_grad_norm",
    "trainer.precision": "mixed_precision_dtype fp16 bf16 mixed_precision "
    "use_fp16 fp16_args",
    "trainer.max_nonfinite": "recovery_max_trials",
    "trainer.compile": "torch_compile",
    "trainer.activation_checkpointing": "gradient_checkpointing checkpoint_activations",
    "trainer.seed": "random_seed seed_everything",
    "optimizer.lr": "learning_rate initial_learning_rate",
    "optimizer.eps": "adam_epsilon adam_eps",
    "optimizer.betas": "adam_betas adam_beta1 adam_beta2",
    "optimizer.type": "optim optimizer_type",
    "lr_scheduler.type": "lr_scheduler_type",
    "lr_scheduler.warmup_ratio": "warmup_proportion warmup_fraction",
    "lr_scheduler.warmup_steps": "num_warmup_steps warmup_updates",
    "task.label_smoothing": "label_smoothing_factor",
    "task.decoding.beam_size": "num_beams",
    "train_data.path": "train_path train_filename train_file input_path data_path data_dir",
    "train_data.holdout": "validation_split val_split valid_split test_size dev_size val_size",
    "valid_data.path": "eval_path eval_filename eval_file valid_path validation_file",
    "test_data.path": "test_path test_filename test_file",
    "train_data.batch_size": "global_batch_size train_batch_size per_device_train_batch_size",
    "valid_data.batch_size": "eval_batch_size per_device_eval_batch_size",
    "reporters.also": "report_to",
    "the option --run-dir": "model_dir output_dir default_root_dir workdir modules_save_dir "
    "save_snapshot_path save_dir",
    "the option --config": "config_file",
    "a word for each setting, without dashes: name.setting=value": "params_override gin_params "
    "gin_bindings",
    "the option --device": "accelerator device gpus no_cuda use_cuda_if_available "
    "use_cpu",
    "the command textmill check": "fast_dev_run",
    _DATA: "data_handler datamodule",
    "the ingredient valid_data": "validation_data val_data eval_data",
    "the ingredient model": "model_cfg arch",
    "the ingredient optimizer": "optimizer_config",
    "the ingredient lr_scheduler": "scheduler learning_rate_schedule",
    "the ingredient reporters": "metric_reporter logger loggers",
    "not there: only trainer.selection.patience ends a run before its length": "min_epochs "
    "min_steps",
    "not there: an evaluation is of all rows": "validation_steps limit_val_batches",
    "not there: the same command goes on with a run": "ckpt_path resume resume_from_checkpoint "
    "auto_resume_from_snapshot",
    "the folder of a run, in place of the recipe": "load_snapshot_path",
    "textmill train --nproc N, a process for each device": "devices num_gpus num_processes "
    "nproc_per_node distribution_strategy distributed_world_size",
    "textmill train --launcher slurm slurm.nodes=N, or torchrun": "num_nodes nnodes",
    "trainer.data_parallelism": "strategy",
    "for --launcher slurm, which the command does not have": "slurm",
    "for --launcher ray, which the command does not have": "ray",
})  # fmt: skip
"""Settings and ingredients, by their names there."""

COMMANDS = _inverted({
    "textmill train RECIPE, which measures valid_data, too": "train_and_eval train_and_post_eval "
    "fit train_model run_experiment",
    "textmill watch RUNS": "continuous_eval",
    "textmill train with trainer.initialize=FIRST": "continuous_train_and_eval",
    "textmill evaluate RUN": "eval evaluation validate test_model",
    "textmill check RECIPE": "prepare_task create_task",
    "textmill test RECIPE --ingredient NAME": "create_component",
    "textmill export RUN, or the setting trainer.export": "save_and_export torchscript-export",
    "textmill predict RUN": "predict-py batch_predict generate",
    "textmill help RECIPE": "help-config gen-default-config",
})  # fmt: skip
"""Commands, modes and functions there, with the command that does it here."""

MODES = {
    "eval": "evaluate",
    "train_and_eval": "train_and_evaluate",
    "train_and_post_eval": "train_and_evaluate",
}
"""Modes of Model Garden's ``run_experiment``, by those of textmill's."""

OWN = {
    "accumulate": "trainer.accumulate",
    "activation_checkpointing": "trainer.activation_checkpointing",
    "batch_size": "train_data.batch_size",
    "holdout": "train_data.holdout",
    "lr": "optimizer.lr",
    "max_epochs": "trainer.max_epochs",
    "max_steps": "trainer.max_steps",
    "max_time": "trainer.max_time",
    "precision": "trainer.precision",
    "seed": "trainer.seed",
}
"""Settings that are often looked for at another ingredient, or among the options."""

_GPUS = ("cuda", "gpu", "gpus")
_HERE = "In textmill it is "

_OPTIMIZER = "the ingredients optimizer and lr_scheduler (and parameter_groups)"

HOOKS = {
    "Task": _inverted({
        "loss, or training_step": "compute_loss build_losses",
        "training_step": "train_step",
        "validation_step": "eval_step test_step",
        "predict": "inference_step predict_step prediction_step",
        "answer_metrics": "build_metrics",
        "measure": "process_metrics process_compiled_metrics compute_metrics",
        "aggregate": "aggregate_logs",
        "reduce": "reduce_aggregated_logs",
        "initialize": "setup",
        "the ingredient model (or module)": "build_model",
        "the ingredient callbacks": "on_fit_start on_fit_end on_train_start on_train_end "
        "on_train_batch_start on_train_batch_end on_train_epoch_start on_train_epoch_end "
        "training_epoch_end training_step_end on_validation_start on_validation_end "
        "on_validation_batch_start on_validation_batch_end on_validation_epoch_start "
        "on_validation_epoch_end validation_epoch_end validation_step_end on_test_start "
        "on_test_end on_test_epoch_start on_test_epoch_end test_epoch_end on_before_backward "
        "on_after_backward on_before_zero_grad on_before_optimizer_step on_save_checkpoint "
        "on_load_checkpoint configure_callbacks teardown",
        "the ingredient reporters": "create_metric_reporter",
        _OPTIMIZER: "configure_optimizers create_optimizer optimizer_step lr_scheduler_step",
        "the setting trainer.clip_norm": "configure_gradient_clipping",
        _DATA: "build_inputs prepare_data train_dataloader val_dataloader test_dataloader",
    }),
    "Callback": _inverted({
        "start": "on_train_start on_train_begin on_fit_start on_init_end setup",
        "step": "on_train_batch_end on_train_step_end on_step_end on_epoch_end on_train_epoch_end "
        "on_log on_before_optimizer_step on_after_backward",
        "evaluated": "on_validation_end on_validation_epoch_end on_evaluate on_eval_end "
        "on_eval_epoch_end",
        "saved": "on_save on_save_checkpoint",
        "end": "on_train_end on_fit_end teardown",
        "not there: step is called after each step": "on_train_batch_start on_train_epoch_start "
        "on_step_begin on_epoch_begin on_epoch_start",
    }),
    "Schedule": _inverted({"after_warmup": "get_lr step_batch step_epoch"}),
    "Metric": _inverted({
        "update": "add_batch_stats update_state",
        "compute": "calculate_metric report_metric result",
        "reset": "reset_state reset_states",
    }),
    "Module": _inverted({
        "a hook of the task, training_step": "training_step train_step",
        "a hook of the task, validation_step": "validation_step test_step",
        "a hook of the task, loss": "get_loss compute_loss",
        "a hook of the task, predict": "get_pred predict_step",
        "the setting trainer.save_modules": "save_modules",
        _OPTIMIZER: "configure_optimizers",
        _DATA: "train_dataloader val_dataloader test_dataloader",
    }),
    "Trainer": _inverted({
        "a hook of the task, training_step": "train_step training_step compute_loss",
        "a hook of the task, validation_step": "eval_step validation_step",
        "a hook of a callback": "train_loop_begin train_loop_end on_train_start on_train_end",
    }),
}  # fmt: skip
"""Methods that are overridden there, by the class that is subclassed here."""

ATTRIBUTES = {
    "textmill.Callback": "textmill.training.Callback",
    "textmill.Component": "textmill.config.Component",
    "textmill.Config": "textmill.config.Config",
    "textmill.Env": "textmill.runtime.Env",
    "textmill.Task": "textmill.tasks.Task",
    "textmill.Trainer": "textmill.training.Trainer",
    "textmill.cli.Env": "textmill.runtime.Env",
    "textmill.data.text": "textmill.text; a file is read by textmill.data.read_text",
    "textmill.data.zip_data_pipelines": "textmill.data.zip_pipelines",
    "textmill.exp_factory": "textmill.register_experiment",
    "textmill.fit": "textmill.train",
    "textmill.continuous_eval": "textmill.evaluate, or the command textmill watch",
    "textmill.continuous_train_and_eval": "textmill.train with trainer.initialize=FIRST",
    "textmill.create_component": "textmill.config.Config, whose build makes the component",
    "textmill.create_predictor": "textmill.load",
    "textmill.generate": "textmill.text.train_sentencepiece for spm_train, textmill.load to answer",
    "textmill.predict": "textmill.load, which gives a predictor",
    "textmill.prepare_task": "textmill.create_task",
    "textmill.save_and_export": "textmill.train with trainer.export=[onnx]",
    "textmill.task_factory": "textmill.register_task",
    "textmill.test_model": "textmill.evaluate",
    "textmill.train_and_eval": "textmill.run_experiment",
    "textmill.train_and_post_eval": "textmill.run_experiment",
    "textmill.workflow": "textmill.train_model, textmill.create_task and textmill.load",
}
"""What is imported from a place of that name there."""


def setting_here(name: str, value: str = "", *, owner: str = "") -> str:
    """What textmill has for a setting of another framework, as a sentence; empty for other names.

    A name of one of its commands or modes is met, too.

    Args:
        name: The setting.
        value: What it was set to, where that is known.
        owner: The ingredient that it was looked for at: another one may have it.

    Example:
        >>> setting_here("learning_rate"), setting_here("lr")
        ('In textmill it is optimizer.lr. ', '')
        >>> setting_here("batch_size", owner="trainer")
        'In textmill it is train_data.batch_size. '
    """
    here = _there(name, value)
    if owner and not here and not OWN.get(name, f"{owner}.").startswith(f"{owner}."):
        here = OWN[name]
    if here == "the option --device" and value.lower() in _GPUS:
        here = worded(f"{here} cuda", "the argument device='cuda'")
    elif here.startswith("the option --"):
        here = worded(here, here.replace("option --", "argument ").replace("-", "_"))
    return here and f"{_HERE}{here}. "


def _there(name: str, value: str) -> str:
    """What is here for a setting, a command or a mode there; empty for other names."""
    command = COMMANDS.get(value if name == "mode" else name)
    return SETTINGS.get(name) or (f"the command {command}" if command else "")


def option_here(option: str, value: str = "") -> str:
    """What textmill has for an option that a command lacks, as a sentence; else empty.

    Args:
        option: As it was typed, without a value.
        value: The word after it, if one follows that is no option.

    Example:
        >>> option_here("--epochs", "3"), option_here("--gpus", "1")
        ('In textmill it is trainer.max_epochs=3. ', 'In textmill it is the option --device cuda. ')
        >>> option_here("--output_dir", "out"), option_here("--verbose")
        ('In textmill it is the option --run-dir out. ', '')
    """
    name = option.lstrip("-").replace("-", "_")
    here = OWN.get(name) or _there(name, value)
    if here.startswith("the option --device"):
        is_cpu = name in ("no_cuda", "use_cpu") or value == "cpu"
        here = f"the option --device {'cpu' if is_cpu else 'cuda'}"
    elif here.startswith("the option --"):
        here = f"{here} {value}".rstrip()
    elif here and " " not in here and value:
        here += f"={value}"
    return here and f"{_HERE}{here}. "


def attribute_here(text: str) -> str:
    """What textmill has for an attribute or module that it lacks, as a sentence; else empty.

    Args:
        text: The dotted name, or Python's own words for an import that failed.

    Example:
        >>> attribute_here("No module named 'textmill.predict'")
        'In textmill it is textmill.load, which gives a predictor.'
        >>> attribute_here("cannot import name 'Env' from 'textmill.cli' (/x/__init__.py)")
        'In textmill it is textmill.runtime.Env.'
    """
    found = re.search(r"cannot import name '(\w+)' from '([\w.]+)'", text)
    name = f"{found[2]}.{found[1]}" if found else text.partition("'")[2].strip("'") or text
    package, _, last = name.rpartition(".")
    here = ATTRIBUTES.get(name) or (package == "textmill" and SETTINGS.get(last))
    if here and name not in ATTRIBUTES and " " not in here:
        here = f"the setting {here}"
    return f"{_HERE}{here}." if here else ""


def class_here(kind: Any) -> str:
    """What textmill has in place of a class of torch, as sentences; empty for other classes.

    Example:
        >>> from torch.optim.lr_scheduler import StepLR
        >>> class_here(StepLR).partition(":")[0]
        'One of torch changes the optimizer itself. Here it is a function that gives the factor on \
optimizer.lr'
    """
    if getattr(kind, "__module__", "") != "torch.optim.lr_scheduler":
        return ""
    return (
        "One of torch changes the optimizer itself. Here it is a function that gives the factor on "
        "optimizer.lr: set lr_scheduler.type to a name of 'textmill list schedules', or write\n"
        "def lr_scheduler():\n"
        "    return lambda step, total, history: 0.95 ** (step // 100)"
    )


def refuse_foreign_attribute(name: str) -> None:
    """Refuses an attribute that textmill has under another name.

    Raises:
        ImportError: With textmill's name; of an AttributeError an import would not show the words.
    """
    if here := attribute_here(name):
        raise ImportError(f"there is no {name}. {here}", name=name)


def refuse_foreign_hooks(kind: type[Any]) -> None:
    """Refuses a subclass with methods that textmill never calls, since it has other names for them.

    A method that the class calls itself is its own business. One that cannot be called as textmill
    calls it is refused as well.

    Raises:
        UserError: With textmill's name for each.
    """
    name = kind.__qualname__.rpartition("<locals>.")[2]
    refuse_all([UserError(f"{name}.{text}") for text in _hook_errors(kind)])


def _hook_errors(kind: type[Any]) -> Iterator[str]:
    """What is wrong with the methods of a subclass, each after its name."""
    for base in kind.__mro__[1:]:
        hooks = HOOKS.get(base.__name__, {}) if _is_library(base) else {}
        for name in sorted(hooks.keys() & vars(kind).keys()):
            if not (hasattr(base, name) or _calls(kind, name)):
                yield f"{name} would never be called. In textmill it is {hooks[name]}."
        for name in ("training_step", "validation_step") if base.__name__ == "Task" else ():
            step = vars(kind).get(name)
            if isinstance(step, FunctionType) and "batch_idx" in inspect.signature(step).parameters:
                wanted = ", ".join(list(inspect.signature(getattr(base, name)).parameters)[1:])
                yield f"{name} asks for batch_idx, and is called as {name}({wanted})."
        for name in () if _is_library(kind) else sorted(vars(base).keys() & vars(kind).keys()):
            yield from _called_otherwise(vars(base)[name], vars(kind)[name])


def _called_otherwise(hook: Any, own: Any) -> Iterator[str]:
    """Whether a method takes what is given to the hook that it overrides."""
    if not (isinstance(hook, FunctionType) and isinstance(own, FunctionType)):
        return
    named = hook.__qualname__.startswith("Callback.") and not hook.__name__.startswith("_")
    if not (_is_library_function(hook) and (named or _is_abstract(hook))):
        return
    _, *wanted = inspect.signature(hook).parameters.values()
    by_name = {p.name: None for p in wanted if p.kind is p.KEYWORD_ONLY}
    by_place = [None for p in wanted if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    taken = inspect.signature(own)
    try:
        taken.bind(None, *by_place, **by_name)
    except TypeError:
        has = ", ".join(list(taken.parameters)[1:])
        called = f"{hook.__name__}({', '.join(p.name for p in wanted)})"
        yield f"{hook.__name__} takes ({has}), and is called as {called}."


def _is_library_function(hook: FunctionType) -> bool:
    """Whether textmill has it, and says all that it is given."""
    open_kinds = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    taken = inspect.signature(hook).parameters.values()
    return hook.__module__.startswith("textmill.") and not any(p.kind in open_kinds for p in taken)


def _is_abstract(hook: Any) -> bool:
    return bool(getattr(hook, "__isabstractmethod__", False))


@lru_cache
def missing_hooks(kind: type[Any]) -> tuple[str, ...]:
    """The abstract methods that a user's class lacks, each with its first line of documentation.

    A method whose callers in its class are all overridden is not needed.
    """
    found = []
    for name in () if _is_library(kind) else dir(kind):
        hook = inspect.getattr_static(kind, name)
        if not (isinstance(hook, FunctionType) and _is_abstract(hook)):
            continue
        base = next(each for each in kind.__mro__ if vars(each).get(name) is hook)
        methods = {n: m for n, m in vars(base).items() if isinstance(m, FunctionType)}
        callers = [n for n, m in methods.items() if name in m.__code__.co_names]
        if not callers or any(getattr(kind, each) is methods[each] for each in callers):
            said = (inspect.getdoc(hook) or "").partition("\n")[0]
            said = re.sub(r":math:`([^`]*)`", r"\1", said.replace("*Shape:*", "Shape:"))
            lacks = f"{kind.__qualname__} has no {name}{inspect.signature(hook)}"
            found.append(f"{lacks}, which every {base.__qualname__} has: {said}")
    return tuple(found)


def _is_library(kind: type[Any]) -> bool:
    return kind.__module__.startswith(("textmill.", "torch."))


def _calls(kind: type[Any], name: str) -> bool:
    """Whether code of the class, or of its own bases, calls a method of that name.

    A method that calls itself, or the one that it overrides, is not called by that.
    """
    own = (base for base in kind.__mro__ if not _is_library(base))
    methods = (method for base in own for key, method in vars(base).items() if key != name)
    return any(name in _names_in(_code_of(method)) for method in methods)


def _code_of(method: Any) -> CodeType | None:
    method = getattr(method, "fget", method)  # of a property
    method = inspect.unwrap(getattr(method, "__func__", method)) if callable(method) else None
    return getattr(method, "__code__", None)


def _names_in(code: CodeType | None) -> set[str]:
    """What code names, with what stands in it: lambdas, functions, comprehensions."""
    if code is None:
        return set()
    inner = [each for each in code.co_consts if isinstance(each, CodeType)]
    return {*code.co_names, *(name for each in inner for name in _names_in(each))}
