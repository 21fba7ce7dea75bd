"""Settings of a block, and how those that are left out are filled by the model's.

A block (an attention, a feed-forward block, a whole layer) has settings of its own. Where one is
None, the setting of the model that has the same meaning counts: ``model.num_heads`` is the number
of heads of every attention that does not say its own.
"""

import dataclasses
from collections.abc import Mapping
from typing import Any, ClassVar, TypeVar

from textmill.config.component import Config, config_fields
from textmill.errors import UserError

C = TypeVar("C", bound=Config)


class BlockConfig(Config):
    """Base of the settings of a block."""

    inherits: ClassVar[Mapping[str, str]] = {}
    """The setting of the model that fills each field that is None."""


def inherit(config: C, shared: Mapping[str, Any], *, where: str = "model") -> C:
    """Fills what is None by the settings of the model, in nested blocks too.

    Args:
        config: The settings of a block.
        shared: The settings of the model by name.
        where: The block's place among the settings, for errors.

    Raises:
        UserError: The block's own settings and those of the model do not fit.

    Example:
        >>> class Block(BlockConfig):
        ...     width: int | None = None
        ...     depth: int | None = None
        ...     inherits = {"width": "dim", "depth": "num_layers"}
        >>> inherit(Block(depth=2), {"dim": 8, "num_layers": 6})
        Block(width=8, depth=2)
    """
    inherits = config.inherits if isinstance(config, BlockConfig) else {}
    changes: dict[str, Any] = {}
    for field in config_fields(config):
        value = getattr(config, field.name)
        if isinstance(value, Config):
            changes[field.name] = inherit(value, shared, where=f"{where}.{field.name}")
        elif value is None and field.name in inherits:
            changes[field.name] = shared[inherits[field.name]]
    try:
        return dataclasses.replace(config, **changes)
    except UserError as error:
        raise UserError(f"{where}: {error}") from error


def needed(config: BlockConfig, field: str) -> Any:
    """A field that must have a value when the block is built.

    Raises:
        UserError: It is None.
    """
    value = getattr(config, field)
    if value is None:
        name = type(config).__qualname__
        raise UserError(
            f"{name}.{field} is None, which takes the {config.inherits[field]} of a model, but "
            f"the block is built alone. Give {field}."
        )
    return value
