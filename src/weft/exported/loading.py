"""Loading an export: verified first, then answering strings."""

from pathlib import Path

from weft.errors import UserError
from weft.exported.ctranslate2 import CTranslate2Graph
from weft.exported.formats import FORMATS, refuse_missing
from weft.exported.manifest import MANIFEST, ExportError, is_export, read
from weft.exported.seq2seq import ExportedSeq2Seq, Search
from weft.text.processors.text_processor import Seq2SeqText, load_text_processor

__all__ = ["GRAPH", "TEXT", "load", "open_graph"]

GRAPH, TEXT = "graph", "text"
"""Folders of an export."""


def load(folder: str | Path, *, device: str = "auto", threads: int = 0) -> ExportedSeq2Seq:
    """Loads what ``weft export`` wrote; torch is not needed.

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
            f"{path} is no export: it has no {MANIFEST}. Wanted a folder that weft export wrote."
        )
    manifest = read(path)
    if manifest.graph not in FORMATS:
        raise ExportError(
            f"{path}: this weft runs graphs of {', '.join(FORMATS)}, not {manifest.graph!r:.40}."
        )
    refuse_missing(manifest.graph)
    try:
        search = Search.from_json(manifest.search)
    except ExportError as error:
        raise ExportError(f"{path / MANIFEST}: {error}.") from None
    predictor = open_graph(path, search, device=device, threads=threads)
    data = manifest.source.get("data")
    predictor.data = data if isinstance(data, dict) else {}
    return predictor


def open_graph(
    folder: Path, search: Search, *, device: str = "auto", threads: int = 0
) -> ExportedSeq2Seq:
    """Opens the graph and the text processor of a folder, whose manifest is not looked at.

    Raises:
        ExportError: They cannot be used together.
    """
    text = load_text_processor(folder / TEXT)
    if not isinstance(text, Seq2SeqText):
        raise ExportError(f"{folder / TEXT}: a {type(text).__name__}; wanted a Seq2SeqText.")
    graph = CTranslate2Graph(
        folder / GRAPH,
        search,
        vocab=text.tokenizer.vocab_info,
        prefix=text.target_prefix,
        device=device,
        threads=threads,
    )
    return ExportedSeq2Seq(text, search, graph)
