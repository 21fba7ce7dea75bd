"""The formats an export can have, one entry of the registry each; loading one."""

import importlib
import importlib.util
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from textmill.config.code_names import code_name, is_code
from textmill.errors import MissingExtraError, UserError
from textmill.exported.manifest import MANIFEST, ExportError, is_export, read
from textmill.exported.row_predictor import ExportedPredictor

Format = Literal["ctranslate2", "huggingface", "onnx"]
"""Names of formats; the extra that brings what writes a format is called the same."""
AnyFormat = Format | type[object]
"""A format by its name, or a person's own ``ExportWriter``: a class, ``@module.name`` in files."""
MAX_QUALITY_LOSS = 0.05


@dataclass(frozen=True, kw_only=True)
class ExportFormat:
    """A format of exports.

    ``open_export`` of the module in ``textmill.exported`` that is called as it reads it, without
    torch; the ``ExportWriter`` of the module in ``textmill.inference.export`` of that name writes
    it.
    """

    name: str
    reads: tuple[str, ...] = ()
    """Packages without which it cannot be asked; none: textmill does not ask it."""
    writes: tuple[str, ...] = ()
    """Packages without which it cannot be written, and compared with the model."""

    def open(
        self, folder: Path, facts: Mapping[str, Any], *, device: str = "auto", threads: int = 0
    ) -> ExportedPredictor:
        """Opens a folder's graph and text; ``facts`` are the manifest's ``search``, ``answers``."""
        module = importlib.import_module(f"textmill.exported.{self.name}")
        opened: ExportedPredictor = module.open_export(
            folder, facts, device=device, threads=threads
        )
        return opened

    def refuse_missing(self, *, writes: bool = False) -> None:
        """Refuses a format whose packages, to ask it or to write it, are not installed."""
        for package in self.writes if writes else self.reads:
            if importlib.util.find_spec(package) is None:
                extra = self.name if writes else "exported"
                what = f"The export format '{self.name}'"
                raise MissingExtraError(package, extra=extra, what=what)


FORMATS: dict[str, ExportFormat] = {
    each.name: each
    for each in (
        ExportFormat(name="ctranslate2", reads=("ctranslate2",), writes=("ctranslate2",)),
        ExportFormat(name="huggingface", writes=("transformers",)),
        ExportFormat(
            name="onnx", reads=("onnxruntime",), writes=("onnx", "onnxscript", "onnxruntime")
        ),
    )
}
"""By their names. A new one has its name in :data:`Format`, too, which settings are read by."""


def format_of(name: str | type[object]) -> ExportFormat:
    """A format by its name; that of a person's own writer needs nothing that is known here."""
    if not isinstance(name, str):
        return ExportFormat(name=code_name(name))
    if name == "pt2":
        raise UserError(
            "There is no export format 'pt2': such a file keeps examples of a graph's inputs as a "
            "pickle, which can run code where it is loaded. ONNX is as general: --format onnx."
        )
    if name not in FORMATS:
        known = ", ".join(FORMATS)
        raise UserError(
            f"There is no export format '{name}'; wanted one of: {known}; or @module.Class."
        )
    return FORMATS[name]


@dataclass(frozen=True)
class ExportSettings:
    """A format to export to, and how numbers are kept in it.

    Example:
        >>> ExportSettings.of({"format": "onnx", "quantize": "int8"}).folder
        'onnx-int8'
    """

    format: AnyFormat
    """What runs the graph; or an ``ExportWriter`` of your own that writes it, ``@module.Class``."""
    quantize: Literal["int8"] | None = None
    """Type of the weights of matrix products, with onnx and ctranslate2; null keeps them as they
    were trained."""
    max_quality_loss: float = MAX_QUALITY_LOSS
    """Largest loss of a metric by quantizing, as a share of the run's own value. A graph that suits
    int8 loses 0 to 0.02; a model that int8 breaks loses tenths."""

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
        if self.quantize is not None and self.format not in ("onnx", "ctranslate2"):
            raise UserError(
                f"The export format '{self.name}' is not quantized here (transformers quantizes "
                "when it loads a folder of huggingface). Leave quantize out."
            )

    @classmethod
    def of(cls, given: Any) -> "ExportSettings":
        """The settings that a name stands for, or a mapping of them."""
        if isinstance(given, ExportSettings):
            return given
        is_format = isinstance(given, str) or is_code(given)
        return cls(given) if is_format else cls(**given)

    @property
    def name(self) -> str:
        """The format as a file or a command names it."""
        return format_of(self.format).name

    @property
    def folder(self) -> str:
        """The name of an export's folder, in ``export`` of its run."""
        name = self.name.rpartition(".")[2].removeprefix("@")
        return name if self.quantize is None else f"{name}-{self.quantize}"

    @property
    def words(self) -> str:
        """What names it on the command line."""
        words = [f"--format {self.name}"]
        if self.quantize is not None:
            words.append(f"--quantize {self.quantize}")
        if self.max_quality_loss != MAX_QUALITY_LOSS:
            words.append(f"--max-quality-loss {self.max_quality_loss}")
        return " ".join(words)


def load(folder: str | Path, *, device: str = "auto", threads: int = 0) -> ExportedPredictor:
    """Loads what ``textmill export`` wrote; torch is not needed.

    Args:
        folder: The folder.
        device: ``auto``, ``cpu``, ``cuda`` or ``cuda:1``.
        threads: Threads on a processor; 0 is as many as the graph's program thinks best.

    Returns:
        What answers strings, rows of columns and lists of them.

    Raises:
        UserError: There is no export, or no such device.
        MissingExtraError: The package that runs the graph is not installed.
        ExportError: The folder is damaged, or of another format.
    """
    path = Path(folder)
    if not is_export(path):
        raise UserError(
            f"{path} is no export: it has no {MANIFEST}. Wanted a folder that textmill export "
            "wrote."
        )
    manifest = read(path)
    if manifest.graph == "huggingface":
        raise UserError(
            f"{path} is an export for transformers, which textmill does not run. Load it there: "
            f"AutoTokenizer.from_pretrained({str(path)!r}), and the model alike."
        )
    if manifest.graph.startswith("@"):
        raise UserError(
            f"{path} was written by an exporter of someone's own, {manifest.graph!r:.80}, and code "
            "that a folder names is not executed. Read its files with a program of yours, or name "
            "the run."
        )
    form = FORMATS.get(manifest.graph)
    if form is None:
        known = ", ".join(name for name, each in FORMATS.items() if each.reads)
        raise ExportError(
            f"{path}: this textmill runs graphs of {known}, not {manifest.graph!r:.40}."
        )
    form.refuse_missing()
    facts = {"search": manifest.search, "answers": manifest.answers}
    try:
        predictor = form.open(path, facts, device=device, threads=threads)
    except (ExportError, TypeError, LookupError, AttributeError) as error:
        # Not what this textmill writes.
        text = f"{error} is missing" if isinstance(error, KeyError) else str(error)
        raise ExportError(f"{path / MANIFEST}: {text.removesuffix('.')}.") from error
    data = manifest.source.get("data")
    predictor.data = data if isinstance(data, dict) else {}
    return predictor
