"""Lightning's package: whether it is there, and the older name that projects use."""

import importlib
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType

from textmill.errors import MissingExtraError

OLD, NEW = "pytorch_lightning", "lightning.pytorch"


def refuse_no_lightning(what: str) -> None:
    """Raises MissingExtraError if Lightning is not installed."""
    try:
        importlib.import_module(NEW)
    except ModuleNotFoundError as error:
        raise MissingExtraError("lightning", extra="lightning", what=what) from error


@contextmanager
def older_name() -> Iterator[None]:
    """While the block runs, ``pytorch_lightning`` is ``lightning.pytorch``, installed or not.

    The two packages have the same classes twice, and a Trainer of one refuses a module of the
    other.
    """

    def below(package: str) -> dict[str, ModuleType]:
        names = [n for n in sys.modules if n == package or n.startswith(f"{package}.")]
        return {name.removeprefix(package): sys.modules[name] for name in names}

    def put_aside() -> dict[str, ModuleType]:
        return {OLD + name: sys.modules.pop(OLD + name) for name in below(OLD)}

    aside = put_aside()
    sys.modules.update({OLD + name: module for name, module in below(NEW).items()})
    try:
        yield
    finally:
        put_aside()
        sys.modules.update(aside)
