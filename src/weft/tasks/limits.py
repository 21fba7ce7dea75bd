"""What a size among a task's settings may be."""

from weft.config.component import Config
from weft.errors import UserError

__all__ = ["at_least_one"]


def at_least_one(settings: Config, *names: str) -> None:
    """Refuses sizes below 1; one that is null is no size.

    Args:
        settings: A task's.
        names: The settings that are sizes.

    Raises:
        UserError: One is below 1; names it.

    Example:
        >>> from weft.tasks.regression import DocumentRegression
        >>> DocumentRegression.Config(max_length=0)
        Traceback (most recent call last):
        weft.errors.UserError: task.max_length must be at least 1, but is 0.
    """
    for name in names:
        size: int | None = getattr(settings, name)
        if size is not None and size < 1:
            raise UserError(f"task.{name} must be at least 1, but is {size}.")
