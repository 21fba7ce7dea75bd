"""Names of optimizers and schedules in files: each module is imported when it is asked for."""

from weft.config.registry import Registry

optimizers = Registry(
    "optimizer",
    {
        "weft.training.optimizers.foreach_optimizer": ["lamb", "lion"],
        "weft.training.optimizers.lbfgs": ["lbfgs"],
        "weft.training.optimizers.muon": ["muon"],
        "weft.training.optimizers.torch_optimizers": ["adafactor", "adam", "adamw", "sgd"],
    },
    plural="optimizers",
)
schedules = Registry(
    "lr_scheduler",
    {
        "weft.training.schedules.decay": [
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
