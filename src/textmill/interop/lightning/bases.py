"""Lightning's own classes, of whichever of its two packages is in use."""

import importlib
import sys
from typing import Any

from textmill.interop.lightning.older_names import NEW, OLD, refuse_no_lightning


def lightning_class(name: str) -> type[Any]:
    """A class of ``lightning.pytorch``; of ``pytorch_lightning`` where that alone is imported.

    A Trainer of one of the packages takes no module of the other.

    Raises:
        MissingExtraError: Neither is installed.

    Example:
        >>> lightning_class("Callback").__name__
        'Callback'
    """
    older = NEW not in sys.modules and OLD in sys.modules
    package = OLD if older else NEW
    if not older:
        refuse_no_lightning(f"Lightning's {name}")
    found: type[Any] = getattr(importlib.import_module(package), name)
    return found


def made_from(hooks: type[Any], base: str) -> type[Any]:
    """A class with hooks of ours on a class of Lightning's; it is called as the hooks are."""
    return type(hooks.__name__, (hooks, lightning_class(base)), {"__doc__": hooks.__doc__})
