"""Names of metrics and reporters in files: each module is imported when a name is asked for."""

from textmill.config.registry import Registry

metrics = Registry(
    "metric",
    {
        "textmill.metrics.accumulators": ["exact_match"],
        "textmill.metrics.rouge": ["rouge"],
        "textmill.metrics.translation": ["bleu", "chrf"],
    },
    plural="metrics",
)
reporters = Registry(
    "reporter",
    {
        "textmill.metrics.reporters.console": ["console"],
        "textmill.metrics.reporters.jsonl": ["jsonl", "predictions"],
        "textmill.metrics.reporters.services": ["mlflow", "tensorboard", "trackio", "wandb"],
    },
    plural="reporters",
)
