"""Names of optimizers and schedules in files: each module is imported when it is asked for."""

from textmill.config.registry import Registry

optimizers = Registry(
    "optimizer",
    {
        "textmill.training.optimizers.muon": ["muon"],
        "textmill.training.optimizers.torch_optimizers": ["adafactor", "adam", "adamw", "sgd"],
    },
    plural="optimizers",
)
schedules = Registry(
    "lr_scheduler",
    {
        "textmill.training.schedules.decay": [
            "constant",
            "cosine",
            "inverse_square_root",
            "linear",
            "plateau",
        ],
    },
    plural="schedules",
)
