"""cli: see its modules."""

from typing import Any


def __getattr__(name: str) -> Any:
    from textmill.config.foreign_names import refuse_foreign_attribute

    refuse_foreign_attribute(f"textmill.cli.{name}")
    raise AttributeError(f"module 'textmill.cli' has no attribute '{name}'")
