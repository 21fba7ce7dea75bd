"""The formats an export can have, and the packages that each needs."""

import importlib.util
from dataclasses import dataclass
from typing import Any, Literal

from textmill.errors import MissingExtraError, UserError

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


MAX_QUALITY_LOSS = 0.05


@dataclass(frozen=True)
class ExportFormat:
    """A format to export to, and how numbers are kept in it.

    Example:
        >>> ExportFormat.of({"format": "onnx", "quantize": "int8"}).folder
        'onnx-int8'
    """

    format: Format
    """What runs the graph."""
    quantize: Literal["int8"] | None = None
    """Type of the weights of matrix products, with onnx and ctranslate2; null keeps them as they
    were trained."""
    max_quality_loss: float = MAX_QUALITY_LOSS
    """Most that quantizing may make a metric worse by, as a share of the run's own value. Where a
    graph takes int8 it costs 0 to 0.02; a model that it breaks loses tenths."""

    def __post_init__(self) -> None:
        if self.quantize not in (None, "int8"):
            raise UserError(f"quantize must be int8 or nothing, but is {self.quantize!r}.")
        if not 0 <= self.max_quality_loss < float("inf"):
            raise UserError(
                f"max_quality_loss must be a share from 0, as 0.05, but is {self.max_quality_loss}."
            )
        if self.quantize is None and self.max_quality_loss != MAX_QUALITY_LOSS:
            raise UserError(
                f"max_quality_loss is {self.max_quality_loss}, but nothing is quantized. Set "
                "quantize=int8, or leave it out."
            )
        if self.quantize is not None and self.format == "huggingface":
            raise UserError(
                "The export format 'huggingface' is not quantized here: transformers does that "
                "when it loads a folder. Leave quantize out."
            )

    @classmethod
    def of(cls, given: Any) -> "ExportFormat":
        """The format that a name stands for, or the settings of one."""
        if isinstance(given, ExportFormat):
            return given
        return cls(given) if isinstance(given, str) else cls(**given)  # type: ignore[arg-type]

    @property
    def folder(self) -> str:
        """The name of an export's folder, in ``export`` of its run."""
        return self.format if self.quantize is None else f"{self.format}-{self.quantize}"

    @property
    def words(self) -> str:
        """What names it on the command line."""
        words = [f"--format {self.format}"]
        if self.quantize is not None:
            words.append(f"--quantize {self.quantize}")
        if self.max_quality_loss != MAX_QUALITY_LOSS:
            words.append(f"--max-quality-loss {self.max_quality_loss}")
        return " ".join(words)


def refuse_missing(name: str, *, writes: bool = False) -> None:
    """Refuses a format that is unknown, or whose packages are not installed.

    Args:
        name: The format.
        writes: Whether it is to be written, and not only run.

    Raises:
        UserError: There is no such format.
        MissingExtraError: A package is missing; names the extra that brings it.

    Example:
        >>> refuse_missing("tflite")  # doctest: +ELLIPSIS
        Traceback (most recent call last):
        textmill.errors.UserError: There is no export format 'tflite'; wanted one of: ...
    """
    if name == "pt2":
        raise UserError(
            "There is no export format 'pt2': such a file keeps examples of a graph's inputs as a "
            "pickle, which can run code where it is loaded. ONNX is as general: --format onnx."
        )
    if name not in WRITERS:
        known = ", ".join(sorted(WRITERS))
        raise UserError(f"There is no export format '{name}'; wanted one of: {known}.")
    writes = writes or name not in FORMATS
    for package in (WRITERS if writes else FORMATS)[name]:
        if importlib.util.find_spec(package) is None:
            extra = name if writes else "exported"
            raise MissingExtraError(package, extra=extra, what=f"The export format '{name}'")
