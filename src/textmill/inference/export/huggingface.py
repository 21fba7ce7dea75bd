"""transformers as a format of exports: folders that it loads.

Generated text is here, with model, tokenizer and search; encoders in ``huggingface_encoder``.
"""

import copy
import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from typing_extensions import override

from textmill.exported.seq2seq import by_length
from textmill.inference.export import huggingface_encoder
from textmill.inference.export.compare import LOG_PROBABILITIES, Comparison, compare
from textmill.inference.export.folder import ExportWriter, own_answers
from textmill.inference.export.huggingface_folder import (
    Generator,
    loaded,
    not_read,
    refuse_other_ids,
    was_read,
    write_model,
    write_tokenizer,
)
from textmill.inference.load import Predictor
from textmill.models.decoding.decode import decode
from textmill.models.decoding.search_settings import Decoding
from textmill.runtime.files import write_file
from textmill.tasks.column_task import ColumnsTask
from textmill.tasks.language_model import LanguageModeling
from textmill.tasks.seq2seq import Seq2Seq
from textmill.tasks.task import Row, Task
from textmill.text.processors.seq2seq import source_text
from textmill.text.tokenizers.pretrained import PretrainedSentencePiece, PretrainedTokenizer

GenerativeTask = Seq2Seq | LanguageModeling
"""Tasks that generate text."""
CARD = """# {title}, {model_type}

Trained by textmill. {note}

```python
from transformers import AutoTokenizer, {loader}

tokenizer = AutoTokenizer.from_pretrained("FOLDER")
model = {loader}.from_pretrained("FOLDER")
asked = tokenizer({before}"A text.", return_tensors="pt")
print(tokenizer.decode(model.generate(**asked)[0], skip_special_tokens=True))
```
"""
STOPPING = {"heuristic": False, "first": True, "never": "never"}
"""The values of ``early_stopping`` there, by textmill's."""


class HuggingFaceWriter(ExportWriter):
    """Writes what ``from_pretrained`` loads."""

    any_width = False

    @override
    def unsupported(self, task: Task) -> list[str]:
        if isinstance(task, ColumnsTask) and huggingface_encoder.encoder_of(task.module):
            return [*huggingface_encoder.refusals(task)]
        if isinstance(task, GenerativeTask) and was_read(task.module):
            return [*own_answers(task), *_refusals(task)]
        return [not_read(task.module, task)]

    @override
    def write(self, task: Task, folder: Path, rows: Sequence[Row]) -> dict[str, Any]:
        if isinstance(task, ColumnsTask):
            huggingface_encoder.write(task, folder)
        else:
            assert isinstance(task, GenerativeTask), "others are refused"
            _write(task, folder)
        return {}

    @override
    def compare(
        self, predictor: Predictor, folder: Path, facts: Mapping[str, Any], rows: Sequence[Row]
    ) -> Comparison:
        task = predictor.task
        if isinstance(task, ColumnsTask):
            return huggingface_encoder.compare_encoder(task, folder, rows)
        assert isinstance(task, GenerativeTask), "others are refused"
        return _compare(task, folder, rows)


WRITER = HuggingFaceWriter()


def _refusals(task: GenerativeTask) -> Iterator[str]:
    """What the model, its search and its tokenizer do in another way there, a line each."""
    decoding, tokenizer = task.config.decoding, task.text.tokenizer
    if isinstance(task, Seq2Seq):
        if decoding.unknown_penalty not in (0, math.inf):
            yield f"task.decoding.unknown_penalty is {decoding.unknown_penalty}: 0 and .inf can be"
        for name, value in task.answer_settings.items():
            if value:
                yield f"task.{name} is {value!r:.40}"
    else:
        if decoding.beam_size > 1 and decoding.length_penalty:
            yield (
                f"task.decoding.length_penalty is {decoding.length_penalty}: with beams 0 alone "
                "can be, as the given text is not counted there"
            )
        if task.config.until == "length":
            yield "task.until is length, but the model's tokenizer has no token for a line's end"
    if isinstance(tokenizer, PretrainedTokenizer):
        before, after = _around(task)
        if not {*before, *after, tokenizer.vocab_info.eos_idx} <= {*tokenizer.parsed.ids.values()}:
            yield "the tokenizer puts tokens around a text that its tokenizer.json does not have"
    elif not isinstance(tokenizer, PretrainedSentencePiece):
        yield f"the tokenizer is a {type(tokenizer).__name__}, not the model's own (pretrained)"


def _around(task: GenerativeTask) -> tuple[list[int], list[int]]:
    """Ids before and after every text."""
    if isinstance(task, LanguageModeling):
        return [task.text.begin_idx], []
    text = task.text
    empty = text.tokenizer.create_encoder(mode="source", lang=text.source_lang)("").tolist()
    return empty[:-1], empty[-1:]


def _module(task: GenerativeTask) -> Generator:
    assert isinstance(task.module, Generator), "others are refused"
    return task.module


def _prefix(task: GenerativeTask) -> list[int]:
    return [task.text.begin_idx] if isinstance(task, LanguageModeling) else task.text.target_prefix


def _write(task: GenerativeTask, folder: Path) -> None:
    from transformers import GenerationConfig

    module, tokenizer = _module(task), task.text.tokenizer
    language = isinstance(task, LanguageModeling)
    info, start, rows = tokenizer.vocab_info, _prefix(task), len(module.output_weight)
    settings: dict[str, Any] = {
        "model_max_length": module.max_length,
        "padding_side": "left" if language else "right",
    }
    pad = info.pad_idx if info.pad_idx < rows else info.eos_idx  # GPT-2 has no padding
    if isinstance(tokenizer, PretrainedSentencePiece):
        tokenizer.write_folder(folder, **settings)
    else:
        assert isinstance(tokenizer, PretrainedTokenizer), "others are refused"
        has_pad = info.pad_idx in tokenizer.parsed.ids.values()
        marks = {"pad": info.pad_idx if has_pad else info.eos_idx}
        marks |= {"bos": info.bos_idx, "eos": info.eos_idx}
        write_tokenizer(folder, tokenizer, marks, around=_around(task), **settings)
    special = {"pad_token_id": pad, "bos_token_id": start[0], "eos_token_id": info.eos_idx}
    if not language:
        special["decoder_start_token_id"] = start[0]
    before = _before(task)
    asked = {"prefix": before, "task_specific_params": None} if before else {}
    write_model(module, folder, **special, **asked)
    if len(start) > 1:
        special["forced_bos_token_id"] = start[1]
    search = _search(task.config.decoding, len(start), module.max_length)
    if info.unk_idx < rows and (language or task.config.decoding.unknown_penalty):
        search["suppress_tokens"] = [info.unk_idx]
    banned = getattr(module, "banned", None)
    if banned is not None and len(banned):
        search["bad_words_ids"] = banned[:, None].tolist()
    GenerationConfig(**special, **search).save_pretrained(folder)
    card = CARD.format(
        title=type(task).__name__,
        model_type=json.loads((folder / "config.json").read_text())["model_type"],
        note=_note(task),
        loader=_loader(task),
        before=before and f"{before!r} + ",
    )
    write_file(folder / "README.md", card)


def _loader(task: GenerativeTask) -> str:
    return "AutoModelForSeq2SeqLM" if isinstance(task, Seq2Seq) else "AutoModelForCausalLM"


def _before(task: GenerativeTask) -> str:
    return task.text.source_prefix if isinstance(task, Seq2Seq) else ""


def _note(task: GenerativeTask) -> str:
    """What a user of the folder must do."""
    before = _before(task)
    return before and f"Put {before!r} before every text: the tokenizer there does not."


def _search(decoding: Decoding, prefix: int, longest: int) -> dict[str, Any]:
    """A search as ``generation_config.json`` has it; new tokens are those after the start mark."""
    most = longest if decoding.max_length_a else decoding.max_length_b + prefix - 1
    search: dict[str, Any] = {"max_new_tokens": min(most, longest)}
    if decoding.min_length:
        search["min_length"] = decoding.min_length + prefix
    if decoding.beam_size > 1:
        search |= {"num_beams": decoding.beam_size, "length_penalty": decoding.length_penalty}
        search["early_stopping"] = STOPPING[decoding.early_stopping]
    if decoding.sample:
        search |= {name: getattr(decoding, name) for name in ("temperature", "top_k", "top_p")}
        search["do_sample"] = True
    search["repetition_penalty"] = decoding.repetition_penalty
    search["no_repeat_ngram_size"] = decoding.no_repeat_ngram
    return search


@dataclass(frozen=True)
class _Asked:
    """A row as a model reads it."""

    text: str
    source: list[int]
    """The ids that the tokenizer must give."""
    forced: list[int]
    """Ids that the answer begins with: those of a language model's text."""


def _compare(task: GenerativeTask, folder: Path, rows: Sequence[Row]) -> Comparison:
    model, tokenizer = loaded(_loader(task), folder)
    asked, decoding = _asked(task, rows), task.config.decoding
    drawn = ("sample", "seed", "temperature", "top_k", "top_p") if decoding.sample else ()
    off = {name: getattr(Decoding, name) for name in drawn}  # the same draws are nowhere else
    decoding = replace(decoding, n_best=1, **off)
    for number, each in enumerate(asked):
        refuse_other_ids(rows, number, tokenizer(each.text)["input_ids"], each.source)
    # Nothing is padded, and all that are asked together have one limit.
    answers = by_length(
        [each.source for each in asked],
        lambda numbers: _answers([asked[i] for i in numbers], task, model, decoding),
    )

    def apart() -> Iterator[tuple[bool, float]]:
        for each, (ids, found) in zip(asked, answers, strict=True):
            text = tokenizer.decode(found, skip_special_tokens=True)
            is_same = found == ids and text == task.text.decode([ids])[0]
            yield is_same, _difference(task, model, each, ids)

    numbers = "log-probabilities", LOG_PROBABILITIES[1]
    return compare(rows, apart(), numbers, note=_note(task))


def _asked(task: GenerativeTask, rows: Sequence[Row]) -> list[_Asked]:
    if isinstance(task, Seq2Seq):
        pairs = zip(rows, task.text.encode(rows, with_targets=False)["source"], strict=True)
        before = _before(task)
        return [_Asked(before + source_text(row), ids.tolist(), []) for row, ids in pairs]
    texts = [row[task.config.column] for row in rows]
    begun = task.text.begun(texts)
    start = task.text.begin_idx
    return [_Asked(t, [start, *ids], ids) for t, ids in zip(texts, begun, strict=True)]


@torch.inference_mode()
def _answers(
    asked: Sequence[_Asked], task: GenerativeTask, model: Any, decoding: Decoding
) -> list[tuple[list[int], list[int]]]:
    """Answers of the model and of the export to sources of one length, without prefix and end."""
    language, prefix = isinstance(task, LanguageModeling), _prefix(task)
    if language:
        decoding = replace(decoding, unknown_penalty=math.inf)
    info = task.text.tokenizer.vocab_info
    forced, sources = [each.forced for each in asked], [each.source for each in asked]
    given = torch.tensor(forced if language else sources, dtype=torch.int64, device=task.device)
    ours = decode(
        _module(task),
        given,
        None,
        decoding,
        prefix=prefix,
        eos_idx=info.eos_idx,
        unk_idx=info.unk_idx,
        forced=forced if language else None,
    )
    longest = _module(task).max_length - len(prefix) + 1
    most = int(decoding.limits(given, None, longest=longest)[0])
    most = min(most, longest - len(forced[0])) + len(prefix) - 1
    settings = copy.deepcopy(model.generation_config)
    settings.update(do_sample=False, temperature=1.0, top_k=50, top_p=1.0)
    settings.update(max_new_tokens=most)
    source = torch.tensor(sources)
    out = model.generate(source, attention_mask=torch.ones_like(source), generation_config=settings)
    found = out[:, len(prefix) :].tolist()
    found = [ids[: ids.index(info.eos_idx)] if info.eos_idx in ids else ids for ids in found]
    return [(each[0].ids, theirs) for each, theirs in zip(ours, found, strict=True)]


@torch.inference_mode()
def _difference(task: GenerativeTask, model: Any, asked: _Asked, ids: list[int]) -> float:
    """Largest difference of the log-probability of any token after each token of an answer."""
    target = [*_prefix(task), *ids][: _module(task).max_length]
    ours: Tensor
    if isinstance(task, LanguageModeling):
        ours = task.module(torch.tensor([target], device=task.device))
        theirs = model(torch.tensor([target])).logits
    else:
        source, begun = torch.tensor([asked.source]), torch.tensor([target])
        ours = task.module(source.to(task.device), None, begun.to(task.device))
        theirs = model(input_ids=source, decoder_input_ids=begun).logits
    apart = ours.cpu().float().log_softmax(-1) - theirs.float().log_softmax(-1)
    return float(apart.abs().max())
