"""Loading an export: verified first, then answering strings."""

from pathlib import Path

from textmill.errors import UserError
from textmill.exported.formats import FORMATS
from textmill.exported.manifest import MANIFEST, ExportError, is_export, read
from textmill.exported.row_predictor import ExportedPredictor


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

    Example:
        >>> translator = load("runs/translation-demo/1f0c5a2b7d9e/export/ctranslate2")
        ... # doctest: +SKIP
        >>> print(translator("The cat sleeps."))  # doctest: +SKIP
        Le chat dort.
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
    except ExportError as error:
        text = str(error).removesuffix(".")
        raise ExportError(f"{path / MANIFEST}: {text}.") from None
    data = manifest.source.get("data")
    predictor.data = data if isinstance(data, dict) else {}
    return predictor
