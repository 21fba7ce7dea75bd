"""Names of optimizers and schedules in files: each module is imported when it is asked for."""

from textmill.config.registry import Registry

optimizers = Registry(
    "optimizer",
    {
        "textmill.training.optimizers.foreach_optimizer": ["lamb", "lion"],
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
            "exponential",
            "inverse_square_root",
            "linear",
            "one_cycle",
            "plateau",
            "polynomial",
            "step",
        ],
    },
    plural="schedules",
)
