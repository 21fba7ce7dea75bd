"""What the names that a LightningModule logs say: the split, and the value."""

import re

_SPLITS = {
    "train": "train", "training": "train",
    "val": "valid", "valid": "valid", "validation": "valid",
    "test": "test", "testing": "test",
}  # fmt: skip
_PREFIX = re.compile(rf"({'|'.join(sorted(_SPLITS, key=len, reverse=True))})[/_.-](?=.)")
_RESERVED = ("split", "time", "step", "epoch", "examples")


def split_and_name(logged: str, default: str = "train") -> tuple[str, str]:
    """The split that a logged name is of, and the name of the value.

    Example:
        >>> split_and_name("val/f1"), split_and_name("train_loss_step"), split_and_name("lr-Adam")
        (('valid', 'f1'), ('train', 'loss_step'), ('train', 'lr-Adam'))
    """
    found = _PREFIX.match(logged)
    split, name = (_SPLITS[found[1]], logged[found.end() :]) if found else (default, logged)
    return split, f"{name}_" if name in _RESERVED else name
