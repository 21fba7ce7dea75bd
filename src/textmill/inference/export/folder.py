"""Writing an export: whole and compared, or not at all."""

import copy
import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, TypeVar

from textmill.errors import DataError, UserError, worded
from textmill.exported.formats import WRITERS, ExportFormat, refuse_missing
from textmill.exported.loading import GRAPH, TEXT, open_graph
from textmill.exported.manifest import seal_folder
from textmill.inference.export import (
    ctranslate2,
    ctranslate2_pretrained,
    huggingface_encoder,
    huggingface_folder,
    onnx,
    onnx_columns,
    onnx_masked,
    onnx_steps,
)
from textmill.inference.export.compare import Comparison, compare
from textmill.inference.export.expressible import refuse_inexpressible, search_of, searched
from textmill.inference.export.onnx import is_user_code
from textmill.inference.export.quality import measure_quality
from textmill.inference.load import Predictor
from textmill.models.decoders.pretrained import PretrainedLanguageModel
from textmill.models.decoders.pretrained_seq2seq import PretrainedSeq2Seq
from textmill.models.lora import merged
from textmill.runtime.files import make_folder, new_folder
from textmill.tasks.column_task import ColumnsTask
from textmill.tasks.language_model import LanguageModeling
from textmill.tasks.masked_language_model import MaskedLanguageModeling
from textmill.tasks.seq2seq import Seq2Seq
from textmill.tasks.task import Row, Task
from textmill.text.tokenizers.tokenizer import VocabInfo

T = TypeVar("T", bound=Task)

ROWS = 64
"""Rows that an export is compared on at most."""


def write_export(
    predictor: Predictor,
    form: str | ExportFormat,
    out: Path,
    *,
    rows: Sequence[Row],
    where: str,
    source: Mapping[str, Any],
    metric: str = "loss",
    replace: bool = False,
) -> Comparison:
    """Writes one folder: graph, text processor, and ``export.json`` that lists and describes them.

    Args:
        predictor: The trained model.
        form: The format.
        out: The folder; it appears when it is whole and was compared.
        rows: Real rows to compare on; those that the model cannot answer are left out, and
            :data:`ROWS` of the others, evenly spread, are taken.
        where: Where the rows come from.
        source: What the model is, for the manifest.
        metric: Of a quantized export the value by which it is compared, where rows have it.
        replace: Whether a folder of that name gives way.

    Returns:
        What the comparison found.

    Raises:
        UserError: The model cannot be exported, the folder is there, or no row can be compared on.
        MissingExtraError: A package is missing.
        ExportError: The export differs by more than is allowed; nothing was written.
    """
    form = ExportFormat.of(form)
    name = form.format
    refuse_missing(name, writes=True)
    refuse_inexpressible(predictor.task, name)
    if not replace:
        refuse_existing(out)
    chosen = _compared_on(predictor, rows, where)
    make_folder(out.parent)
    with new_folder(out, replace=replace) as folder:
        if name == "huggingface":
            facts: dict[str, Any] = {"graph": name}
            found = _huggingface_compared(predictor.task, folder, chosen, where=where)
        else:
            wanted: dict[str, Any] = {"rows": rows, "chosen": chosen, "where": where}
            facts, found = _graph_compared(predictor, form, folder, metric=metric, **wanted)
        found.check()
        facts |= {
            "source": {**source, "checkpoint": predictor.checkpoint},
            "compared": found.to_json(),
            "versions": {each: version(each) for each in ("textmill", "torch", *WRITERS[name])},
        }
        seal_folder(folder, facts)
    return found


def _huggingface_compared(
    task: Task, folder: Path, rows: Sequence[Row], *, where: str
) -> Comparison:
    """Writes what transformers loads, and compares it."""
    if isinstance(task, ColumnsTask):
        form = huggingface_encoder.write(_merged(task), folder)
        return huggingface_encoder.compare(task, folder, rows, form=form, where=where)
    assert isinstance(task, huggingface_folder.GenerativeTask), "others are refused"
    huggingface_folder.write(_merged(task), folder)
    return huggingface_folder.compare(task, folder, rows, where=where)


def _graph_compared(
    predictor: Predictor,
    form: ExportFormat,
    folder: Path,
    *,
    rows: Sequence[Row],
    chosen: Sequence[Row],
    where: str,
    metric: str,
) -> tuple[dict[str, Any], Comparison]:
    """Writes a graph, quantized where that is asked for; gives its facts, and how it compares."""
    facts = {"graph": form.format, **_write_graph(predictor.task, form.format, folder, chosen)}
    quantized = form.quantize is not None
    size = _quantized(predictor.task, form.format, folder / GRAPH) if quantized else 1.0
    exported = open_graph(folder, facts, device="cpu")
    found = compare(predictor, exported, chosen, where=where)
    if quantized:
        quality = measure_quality(
            predictor, exported, rows, where=where, form=form, metric=metric, size=size
        )
        found = dataclasses.replace(found, quality=quality)
    return facts, found


def refuse_untraceable(task: Task, rows: Sequence[Row]) -> None:
    """Refuses a model with code of a person's own of which torch makes no graph of ONNX.

    Of the library's parts it is known that it does. The module is as before, and so are its modes.

    Args:
        task: One that :func:`refuse_inexpressible` lets pass.
        rows: Rows as examples; one at least.

    Raises:
        UserError: Names the line of code.
    """
    parts = [*task.module.modules()]
    if not any(map(is_user_code, [task, *parts])):
        return
    modes = [part.training for part in parts]
    try:
        with TemporaryDirectory() as folder:
            _write_graph(task, "onnx", Path(folder), rows[:3])
    finally:
        for part, mode in zip(parts, modes, strict=True):
            part.training = mode


def refuse_existing(out: Path) -> None:
    """Refuses a folder to write that is there already.

    Raises:
        UserError: It is.
    """
    if out.exists():
        way = worded("--out", "out")
        raise UserError(f"{out} is there already. Delete it, or name another folder with {way}.")


def _write_graph(task: Task, name: str, folder: Path, rows: Sequence[Row]) -> dict[str, Any]:
    """Writes the module and its text processor; gives what a manifest says of both."""
    task = _merged(task)
    graph = folder / GRAPH
    graph.mkdir()
    task.text.save(folder / TEXT)
    if isinstance(task, ColumnsTask):
        return {"search": {}, "answers": onnx_columns.write(task, graph, rows)}
    if isinstance(task, MaskedLanguageModeling):
        return {"search": {}, "answers": onnx_masked.write(task, graph)}
    if isinstance(task, LanguageModeling):
        longest = task.module.max_length
        answers: dict[str, Any] = {"until": task.config.until}
        if name == "ctranslate2":
            _write_ctranslate2(task, graph)
        else:
            answers |= onnx_steps.write(task.module, graph)
        return {"search": searched(task.config.decoding, longest).to_json(), "answers": answers}
    assert isinstance(task, Seq2Seq), "others are refused"
    facts: dict[str, Any] = {"search": search_of(task).to_json(), "answers": task.answer_settings}
    if name == "onnx":
        facts["answers"] |= onnx_steps.write(task.module, graph)
    else:
        _write_ctranslate2(task, graph)
    return facts


def _merged(task: T) -> T:
    """The task with its module; with adapters merged, where that has such."""
    made = copy.copy(task)
    made.module = merged(task.module)
    return made


def _write_ctranslate2(
    task: Seq2Seq | LanguageModeling, graph: Path, quantization: str | None = None
) -> None:
    vocab: VocabInfo = task.text.tokenizer.vocab_info
    if isinstance(task.module, PretrainedLanguageModel):
        assert isinstance(task, LanguageModeling), "others are refused"
        begin = task.text.begin_idx
        ctranslate2_pretrained.write(
            task.module, graph, vocab=vocab, begin_idx=begin, quantization=quantization
        )
        return
    if isinstance(task, LanguageModeling):
        module: Any = task.module
        ctranslate2.write_causal(module, graph, vocab=vocab, quantization=quantization)
        return
    start_idx = task.text.target_prefix[0]
    if isinstance(task.module, PretrainedSeq2Seq):
        ctranslate2_pretrained.write_seq2seq(
            task.module, graph, vocab=vocab, start_idx=start_idx, quantization=quantization
        )
        return
    ctranslate2.write(
        task.module, graph, vocab=vocab, start_idx=start_idx, quantization=quantization
    )


def _quantized(task: Task, name: str, graph: Path) -> float:
    """Writes the graphs of a folder anew, with int8 weights; gives their size as a share."""
    before = _size(graph)
    if name == "ctranslate2":
        assert isinstance(task, Seq2Seq | LanguageModeling), "others are refused"
        _write_ctranslate2(task, graph, "int8")
    else:
        for path in graph.glob("*.onnx"):
            onnx.quantize(path)
    return _size(graph) / before


def _size(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.iterdir())


def _compared_on(predictor: Predictor, rows: Sequence[Row], where: str) -> Sequence[Row]:
    """Rows to compare the export with the model on.

    Each is encoded to know whether it can be answered, so not all of a large file's.

    Raises:
        UserError: None can be answered.
    """
    some = _answerable(predictor, _spread(rows, 16 * ROWS)) or _answerable(predictor, rows)
    if not some:
        raise UserError(
            f"None of the {len(rows):,} rows of {where} can be answered, so the export cannot be "
            "compared with the model. Name a text file of rows with "
            f"{worded('--rows FILE', 'rows=FILE')}."
        )
    return _spread(some, ROWS)


def _answerable(predictor: Predictor, rows: Sequence[Row]) -> list[Row]:
    """Those that can be answered, as they are or as a row of data is asked."""
    asked = ([row, *_asked(predictor, row)] for row in rows)
    found = (next((one for one in each if _is_answerable(predictor, one)), None) for each in asked)
    return [row for row in found if row is not None]


def _asked(predictor: Predictor, row: Row) -> Iterator[Row]:
    texts = all(isinstance(row.get(name), str) for name in predictor.columns)
    if texts:
        yield predictor.task.asked(row)


def _is_answerable(predictor: Predictor, row: Row) -> bool:
    try:
        predictor.check(predictor.row(row))
    except DataError:
        return False
    return True


def _spread(rows: Sequence[Row], most: int) -> Sequence[Row]:
    if len(rows) <= most:
        return rows
    return [rows[i * len(rows) // most] for i in range(most)]
