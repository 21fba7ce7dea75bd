"""cli: see its modules."""

from typing import Any


def __getattr__(name: str) -> Any:
    from weft.config.foreign_names import refuse_foreign_attribute

    refuse_foreign_attribute(f"weft.cli.{name}")
    raise AttributeError(f"module 'weft.cli' has no attribute '{name}'")
