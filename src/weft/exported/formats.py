"""The formats an export can have, and the packages that each needs."""

import importlib.util
from typing import Literal

from weft.errors import MissingExtraError, UserError

__all__ = ["FORMATS", "WRITERS", "Format", "refuse_missing"]

Format = Literal["ctranslate2", "huggingface", "onnx"]
"""Names of formats; the extra that brings what writes a format is called the same."""
FORMATS: dict[str, tuple[str, ...]] = {"ctranslate2": ("ctranslate2",), "onnx": ("onnxruntime",)}
"""Format to the packages without which it cannot be run."""
WRITERS: dict[str, tuple[str, ...]] = {
    **FORMATS,
    "onnx": ("onnx", "onnxscript", "onnxruntime"),
    "huggingface": ("transformers",),
}
"""Format to the packages without which it cannot be written, and compared with the model."""


def refuse_missing(name: str, *, writes: bool = False) -> None:
    """Refuses a format that is unknown, or whose packages are not installed.

    Args:
        name: The format.
        writes: Whether it is to be written, and not only run.

    Raises:
        UserError: There is no such format.
        MissingExtraError: A package is missing; names the extra that brings it.

    Example:
        >>> refuse_missing("tflite")
        Traceback (most recent call last):
        weft.errors.UserError: There is no export format 'tflite'; wanted one of: ctranslate2, ...
    """
    if name not in WRITERS:
        known = ", ".join(sorted(WRITERS))
        raise UserError(f"There is no export format '{name}'; wanted one of: {known}.")
    writes = writes or name not in FORMATS
    for package in (WRITERS if writes else FORMATS)[name]:
        if importlib.util.find_spec(package) is None:
            extra = name if writes else "exported"
            raise MissingExtraError(package, extra=extra, what=f"The export format '{name}'")
