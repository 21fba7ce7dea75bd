"""Names of optimizers and schedules in files: each module is imported when it is asked for."""

from textmill.config.registry import Registry

optimizers = Registry(
    "optimizer",
    {"textmill.training.optimizers": ["adafactor", "adam", "adamw", "muon", "sgd"]},
    plural="optimizers",
)
schedules = Registry(
    "lr_scheduler",
    {
        "textmill.training.schedules": [
            "constant",
            "cosine",
            "exponential",
            "inverse_square_root",
            "linear",
            "plateau",
        ]
    },
    plural="schedules",
)
