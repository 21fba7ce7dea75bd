"""Loading an export: verified first, then answering strings."""

from pathlib import Path
from typing import Any

from textmill.errors import DataError, UserError
from textmill.exported.columns import MODEL, ExportedColumns, load_columns
from textmill.exported.ctranslate2 import CTranslate2Graph, CTranslate2Texts
from textmill.exported.formats import FORMATS, refuse_missing
from textmill.exported.language import ExportedLanguageModel, ExportedMaskedModel
from textmill.exported.manifest import MANIFEST, ExportError, is_export, read
from textmill.exported.onnx import OnnxGraph
from textmill.exported.onnx_search import OnnxDecoder, OnnxSearch
from textmill.exported.seq2seq import LARGEST, ExportedSeq2Seq, Graph, Search
from textmill.text.processors.column_processor import ColumnsText
from textmill.text.processors.language_model import LanguageText
from textmill.text.processors.masked_language_model import MaskedText
from textmill.text.processors.text_processor import Seq2SeqText, load_text_processor
from textmill.text.tokenizers.word_tokenizer import WordTokenizer

GRAPH, TEXT = "graph", "text"
"""Folders of an export."""

Exported = ExportedColumns | ExportedSeq2Seq | ExportedLanguageModel | ExportedMaskedModel


def load(folder: str | Path, *, device: str = "auto", threads: int = 0) -> Exported:
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
    if manifest.graph not in FORMATS:
        raise ExportError(
            f"{path}: this textmill runs graphs of {', '.join(FORMATS)}, not "
            f"{manifest.graph!r:.40}."
        )
    refuse_missing(manifest.graph)
    facts = {"graph": manifest.graph, "search": manifest.search, "answers": manifest.answers}
    try:
        predictor = open_graph(path, facts, device=device, threads=threads)
    except ExportError as error:
        text = str(error).removesuffix(".")
        raise ExportError(f"{path / MANIFEST}: {text}.") from None
    data = manifest.source.get("data")
    predictor.data = data if isinstance(data, dict) else {}
    return predictor


def open_graph(
    folder: Path, facts: dict[str, Any], *, device: str = "auto", threads: int = 0
) -> Exported:
    """Opens the graph and the text processor of a folder, whose manifest is not looked at.

    Args:
        folder: The export's.
        facts: ``graph``, ``search`` and ``answers`` of the manifest.
        device: As of :func:`load`.
        threads: As of :func:`load`.

    Raises:
        ExportError: They cannot be used together.
    """
    text, graph, answers = load_text_processor(folder / TEXT), folder / GRAPH, facts["answers"]
    on_ctranslate2 = isinstance(text, LanguageText) and facts["graph"] == "ctranslate2"
    if isinstance(text, LanguageText | MaskedText) and (on_ctranslate2 or facts["graph"] == "onnx"):
        return _open_language(text, graph, facts, device=device, threads=threads)
    if isinstance(text, ColumnsText) and facts["graph"] == "onnx":
        return load_columns(text, graph, answers, device=device, threads=threads)
    if not isinstance(text, Seq2SeqText):
        raise ExportError(f"a {type(text).__name__} cannot be answered by {facts['graph']}")
    search = Search.from_json(facts["search"])
    vocab, start = text.tokenizer.vocab_info, text.target_prefix
    made: Graph
    if facts["graph"] == "ctranslate2":
        made = CTranslate2Graph(
            graph, search, vocab=vocab, prefix=start, device=device, threads=threads
        )
    else:
        decoder = _decoder(graph, answers, device=device, threads=threads)
        made = OnnxSearch(decoder, search, vocab=vocab, prefix=start)
    prefix, copies = answers.get("answer_prefix", ""), answers.get("copy_unknown", False)
    if not isinstance(prefix, str) or type(copies) is not bool:
        raise ExportError("'answer_prefix' must be a text, and 'copy_unknown' true or false")
    if copies and not isinstance(text.tokenizer, WordTokenizer):
        raise ExportError("'copy_unknown' needs a tokenizer of words")
    exported = ExportedSeq2Seq(text, search, made, answer_prefix=prefix, copy_unknown=copies)
    try:
        exported.forced([{}])
    except DataError as error:
        raise ExportError(f"'answer_prefix': {error}") from None
    return exported


def _open_language(
    text: LanguageText | MaskedText,
    graph: Path,
    facts: dict[str, Any],
    *,
    device: str,
    threads: int,
) -> ExportedLanguageModel | ExportedMaskedModel:
    answers = facts["answers"]
    if isinstance(text, MaskedText):
        top_k, longest = answers.get("top_k"), answers.get("longest")
        numbers = [top_k] if longest is None else [top_k, longest]
        if not all(type(number) is int and 0 < number <= LARGEST for number in numbers):
            raise ExportError("'top_k' and 'longest' must be numbers of tokens")
        opened = OnnxGraph(graph / MODEL, device=device, threads=threads)
        return ExportedMaskedModel(text, opened, top_k=top_k, longest=longest)
    until = answers.get("until")
    if until not in ("row", "length"):
        raise ExportError("'until' must be row or length")
    search = Search.from_json(facts["search"])
    decoder: OnnxDecoder | CTranslate2Texts
    if facts["graph"] == "ctranslate2":
        vocab = text.tokenizer.vocab_info
        begin = text.begin_idx
        decoder = CTranslate2Texts(
            graph, search, vocab=vocab, begin_idx=begin, device=device, threads=threads
        )
    else:
        decoder = _decoder(graph, answers, device=device, threads=threads)
    return ExportedLanguageModel(text, decoder, search, by_row=until == "row")


def _decoder(graph: Path, answers: dict[str, Any], *, device: str, threads: int) -> OnnxDecoder:
    axes = answers.get("axes")
    if not isinstance(axes, dict) or not all(type(a) is int and 0 <= a < 4 for a in axes.values()):
        raise ExportError("'axes' must be numbers of axes")
    return OnnxDecoder(graph, axes, device=device, threads=threads)
