"""Names of metrics and reporters in files: each module is imported when a name is asked for."""

from weft.config.registry import Registry

metrics = Registry(
    "metric",
    {
        "weft.metrics.accumulators": ["exact_match"],
        "weft.metrics.rouge": ["rouge"],
        "weft.metrics.translation": ["bleu", "chrf"],
    },
    plural="metrics",
)
reporters = Registry(
    "reporter",
    {
        "weft.metrics.reporters.console": ["console"],
        "weft.metrics.reporters.jsonl": ["jsonl"],
        "weft.metrics.reporters.predictions": ["predictions"],
        "weft.metrics.reporters.services": ["mlflow", "trackio", "wandb"],
        "weft.metrics.reporters.tensorboard": ["tensorboard"],
    },
    plural="reporters",
)
