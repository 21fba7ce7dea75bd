"""Other frameworks' names for textmill's settings and commands: errors name textmill's.

They are PyText's, Model Garden's, fairseq2's, Lightning's and transformers'.
"""

from collections.abc import Mapping

from textmill.errors import worded


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
    "a setting of --launcher slurm; add that option to train, grid or watch": "slurm",
    "a setting of --launcher ray; add that option to train, grid or watch": "ray",
})  # fmt: skip
"""Settings and ingredients, by their names there."""

COMMANDS = _inverted({
    "textmill train RECIPE, which measures valid_data, too": "train_and_eval train_and_post_eval "
    "fit train_model run_experiment",
    "textmill watch RUNS": "continuous_eval",
    "textmill watch RUN --train FIRST --tune SECOND": "continuous_train_and_eval",
    "textmill evaluate RUN": "eval evaluation validate test_model",
    "textmill check RECIPE": "prepare_task create_task",
    "textmill test RECIPE --ingredient NAME": "create_component",
    "textmill export RUN, or the setting trainer.export": "save_and_export torchscript-export",
    "textmill predict RUN": "predict-py batch_predict create_predictor generate",
    "textmill help RECIPE --all": "help-config gen-default-config",
})  # fmt: skip
"""Commands, modes and functions there, with the command that does it here."""

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


def setting_here(name: str, value: str = "", *, owner: str = "") -> str:
    """What textmill has for a setting of another framework, as a sentence; empty for other names.

    A name of one of its commands or modes is met, too.
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
    """What textmill has for an option that a command lacks, as a sentence; else empty."""
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
