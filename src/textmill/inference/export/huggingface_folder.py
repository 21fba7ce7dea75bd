"""Files that ``transformers`` loads: of the model and the tokenizer that a run was begun with."""

import copy
import json
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import torch
from torch import nn

from textmill.exported.manifest import ExportError
from textmill.inference.export.compare import shown
from textmill.models.causal_transformer import CausalTransformer
from textmill.models.decoders.pretrained import PretrainedLanguageModel
from textmill.models.decoders.pretrained_seq2seq import PretrainedSeq2Seq
from textmill.models.decoders.pretrained_transformer import named_tensors
from textmill.models.encoders.pretrained import PretrainedEncoder
from textmill.models.pretrained import pretrained_config, silent_transformers
from textmill.models.transformer import Transformer
from textmill.runtime.files import write_file
from textmill.tasks.task import Row
from textmill.text.tokenizers.pretrained import PretrainedTokenizer

FORMAT: Final = "The export format 'huggingface'"
Generator = Transformer | CausalTransformer | PretrainedLanguageModel | PretrainedSeq2Seq
"""Models that generate text, of which there are pretrained ones."""


def was_read(module: nn.Module) -> bool:
    """Whether a model that generates text began with weights of a model of transformers."""
    return isinstance(module, Generator) and module.config.architecture is not None


def not_read(module: nn.Module, task: object) -> str:
    """Why there is no model of transformers for a task and its module."""
    if any(isinstance(part, PretrainedEncoder) or was_read(part) for part in module.modules()):
        name = type(module).__name__
        return f"a {type(task).__name__} of a {name} is not written as a model of transformers"
    return (
        "the model was built from settings, not read from a folder of transformers (model.path, "
        "model.encoder.path)"
    )


def write_model(module: Generator, folder: Path, **settings: Any) -> None:
    """Writes ``config.json``, with these settings, and ``model.safetensors``.

    The model is one that :func:`was_read`, and has no adapters.
    """
    if isinstance(module, Transformer | CausalTransformer):
        model = _from_own_layers(module)
    else:
        model = module.model
    with silent_transformers():
        model.save_pretrained(folder)
    config = copy.deepcopy(model.config)
    config.update(settings)
    config.save_pretrained(folder)
    for path in folder.glob("*.safetensors"):  # which the library lets nobody else read
        path.chmod((folder / "config.json").stat().st_mode)


def _from_own_layers(module: Transformer | CausalTransformer) -> Any:
    """The model of transformers that began a run, with the weights of textmill's own layers."""
    import transformers

    architecture = {**(module.config.architecture or {}), "vocab_size": len(module.output_weight)}
    kind = architecture["model_type"]
    if kind == "llama":  # textmill's layers have biases, which began at 0
        architecture |= {"attention_bias": True, "mlp_bias": True}
    config = pretrained_config(architecture, "", needed_by=FORMAT)
    loader: Any = transformers.AutoModelForSeq2SeqLM
    if isinstance(module, CausalTransformer):
        loader = transformers.AutoModelForCausalLM
    with torch.random.fork_rng(devices=[]):
        model = loader.from_config(config).float()
    model.load_state_dict(dict(named_tensors(module, kind)), strict=False)  # some are shared
    return model


def write_tokenizer(
    folder: Path,
    tokenizer: PretrainedTokenizer,
    marks: Mapping[str, int],
    *,
    around: tuple[Sequence[int], Sequence[int]] | None = None,
    spaced: bool = False,
    **settings: Any,
) -> None:
    """Writes the ``tokenizer.json`` that the model was read with, and ``tokenizer_config.json``.

    ``marks`` are ids of special tokens by their names there, such as ``eos``, of which those are
    written that the file has; ``around`` ids before and after each text, in place of the file's
    template. If ``spaced``, each word is read by itself, with a space before it.
    """
    content = json.loads(tokenizer.vocabulary.to_bytes()) | {"truncation": None, "padding": None}
    names = {i: name for name, i in tokenizer.parsed.ids.items()}
    if around is not None:
        content["post_processor"] = _template(names, *around)
    step = content.get("pre_tokenizer") or {}
    for each in [step, *step.get("pretokenizers", [])] if spaced else []:
        if each.get("type") == "ByteLevel":
            each["add_prefix_space"] = True
    write_file(folder / "tokenizer.json", json.dumps(content, ensure_ascii=False))
    config = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        **{f"{mark}_token": names[i] for mark, i in marks.items() if i in names},
        "split_special_tokens": True,
        "clean_up_tokenization_spaces": False,
        "model_input_names": ["input_ids", "attention_mask"],
        **({"add_prefix_space": True} if spaced else {}),
        **settings,
    }
    write_file(folder / "tokenizer_config.json", json.dumps(config, indent=2, ensure_ascii=False))


def _template(
    names: Mapping[int, str], before: Sequence[int], after: Sequence[int]
) -> dict[str, Any]:
    """What the package ``tokenizers`` puts around a text."""

    def marks(ids: Sequence[int]) -> list[dict[str, Any]]:
        return [{"SpecialToken": {"id": names[i], "type_id": 0}} for i in ids]

    single = [*marks(before), {"Sequence": {"id": "A", "type_id": 0}}, *marks(after)]
    special = {
        names[i]: {"id": names[i], "ids": [i], "tokens": [names[i]]} for i in (*before, *after)
    }
    pair = [*single, {"Sequence": {"id": "B", "type_id": 0}}, *marks(after)]
    return {"type": "TemplateProcessing", "single": single, "pair": pair, "special_tokens": special}


def loaded(loader: str, folder: Path, **options: Any) -> tuple[Any, Any]:
    """The model and the tokenizer of a folder, as ``from_pretrained`` of a class loads them."""
    import transformers

    with silent_transformers():
        kind = getattr(transformers, loader)
        model, info = kind.from_pretrained(folder, output_loading_info=True, **options)
    if wrong := {name: keys for name, keys in info.items() if keys}:
        raise ExportError(f"transformers does not load all weights as they are: {wrong}")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Marian's says that Moses' rules are not installed
        return model.eval(), transformers.AutoTokenizer.from_pretrained(folder)


def refuse_other_ids(
    rows: Sequence[Row], number: int, found: Sequence[int], wanted: Sequence[int]
) -> None:
    """Refuses an export whose tokenizer reads a row otherwise than the run's."""
    if [*found] != [*wanted]:
        raise ExportError(
            f"In the export row {number} ({shown(rows[number])}) has the token ids {found[:20]}, "
            f"but in the run {wanted[:20]}. Nothing was written."
        )
