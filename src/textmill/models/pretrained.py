"""Models of Hugging Face's transformers: their architecture, and weights by its own loader."""

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from types import MappingProxyType
from typing import Any, ClassVar

import torch
from torch import nn
from typing_extensions import override

from textmill.config.component import Config as BaseConfig
from textmill.config.validators import require
from textmill.errors import MissingExtraError, TextmillError, UserError
from textmill.models.lora import Lora, own_weights
from textmill.runtime.pretrained import find_pretrained

_LEFT_OUT = (
    *("architectures", "dtype", "torch_dtype", "transformers_version"),
    *("attn_implementation", "auto_map", "experts_implementation", "quantization_config"),
    *("finetuning_task", "id2label", "label2id", "num_labels", "problem_type"),
    *("chunk_size_feed_forward", "return_dict", "task_specific_params", "torchscript"),
    *("output_attentions", "output_hidden_states", "pruned_heads", "use_bfloat16"),
)
"""Settings of a ``config.json`` that say nothing of the architecture, or name code to be run or
fetched: none of them reaches transformers, nor does what begins with ``_``."""
_DROPOUTS = (
    *("dropout", "dropout_rate", "embd_pdrop", "embedding_dropout", "hidden_dropout"),
    *("hidden_dropout_prob", "mlp_dropout", "resid_pdrop"),
)
"""What architectures call the probability of dropping a feature."""
_MOST_NEW = 0.5
"""Share of a tokenizer's tokens that may have no row: a person may have added many of a field's."""
_HEADS = re.compile(r"(classifier|cls|lm_head|pooler)\b")
"""Pretraining heads, dropped because the task adds its own."""


class CheckpointConfig(BaseConfig):
    """Where a pretrained model comes from."""

    place: ClassVar[str] = "model"
    """Where these settings are, for messages."""

    path: str = ""
    """A folder with config.json and model.safetensors, or a name on the Hugging Face hub."""
    revision: str | None = None
    """A branch, tag or commit of the hub; null is the newest."""
    dropout: float | None = None
    """Probability of dropping a feature, in place of the model's own."""

    def __post_init__(self) -> None:
        require(self, self.place, shares=["dropout"])

    def read_architecture(self) -> dict[str, Any]:
        """What ``config.json`` of ``path`` says, without what is no part of the architecture."""
        if not self.path:
            raise UserError(
                f"{self.place}.path is not set: name a folder with config.json, tokenizer.json and "
                "model.safetensors, or a model of the Hugging Face hub as "
                "sentence-transformers/all-MiniLM-L6-v2."
            )
        return plain_architecture(find_pretrained(self.path, revision=self.revision).config())


class PretrainedConfig(CheckpointConfig):
    """Where a pretrained model comes from that a run keeps as it is in transformers."""

    architecture: Mapping[str, Any] | None = None
    """What config.json says; null is read from ``path``."""
    lora: Lora | None = None
    """Low-rank adapters, which learn in place of the model's own weights; null: those do."""

    @override
    def read_architecture(self) -> dict[str, Any]:
        if self.architecture:
            return plain_architecture(self.architecture)
        return super().read_architecture()

    def set_dropout(self, architecture: dict[str, Any], made: Any) -> None:
        """Puts ``dropout``, where it is set, into an architecture.

        ``made`` are its settings in transformers.
        """
        if self.dropout is None:
            return
        names = [name for name in _DROPOUTS if hasattr(made, name)]
        if not names:
            raise UserError(
                f"{self.place}.dropout is {self.dropout}, but a {made.model_type} drops no "
                "features. Leave it out."
            )
        for name in names:
            architecture[name] = self.dropout
            setattr(made, name, self.dropout)


def plain_architecture(architecture: Mapping[str, Any]) -> dict[str, Any]:
    """An architecture without settings that are no part of it, or name code."""
    return {k: v for k, v in architecture.items() if k not in _LEFT_OUT and not k.startswith("_")}


def pretrained_config(architecture: Mapping[str, Any], path: str, *, needed_by: str) -> Any:
    """The settings that transformers makes of a plain architecture, with its ``model_type``.

    ``path`` is where it is from, for messages (empty: the run), and ``needed_by`` what needs the
    package.
    """
    try:
        import transformers
    except ModuleNotFoundError as error:
        if error.name != "transformers":
            raise
        raise MissingExtraError("transformers", extra="huggingface", what=needed_by) from None
    settings = dict(architecture)
    kind = settings.pop("model_type", None)
    if kind not in transformers.CONFIG_MAPPING:
        raise UserError(f"{path or 'The run'} is a {kind!r:.40}, which transformers does not have.")
    try:
        return transformers.AutoConfig.for_model(kind, **settings)
    except Exception as error:  # each architecture has checks of its own
        raise _unmade(kind, path, error) from error


@contextmanager
def building(architecture: Mapping[str, Any], config: CheckpointConfig) -> Iterator[None]:
    """Refuses by name an architecture that makes no model, while it is open."""
    try:
        yield
    except TextmillError:
        raise
    except Exception as error:  # each architecture has checks of its own
        if isinstance(error, RuntimeError) and getattr(config, "architecture", None):
            raise  # out of memory: whoever loads a run handles it
        raise _unmade(architecture.get("model_type"), config.path, error) from error


def _unmade(kind: object, path: str, error: Exception) -> UserError:
    where = f"config.json of {path or 'the run'}"
    return UserError(f"{where} makes no {kind!s:.40}: {_reason(error)}")


def _reason(error: Exception) -> str:
    lines = str(error).strip().splitlines()[:1]
    if isinstance(error, LookupError) or not lines:  # whose text is what was looked up alone
        lines.insert(0, type(error).__name__)
    return ": ".join(lines)


def vocabulary_of(architecture: Mapping[str, Any], path: str) -> int:
    """How many tokens an architecture has; 0 if it does not say."""
    size = architecture.get("vocab_size", 0)
    if type(size) is not int or size < 0:
        raise UserError(
            f"config.json of {path or 'the run'} says vocab_size={size!r:.40}, where the number of "
            "tokens is wanted."
        )
    return size


def banned_ids(architecture: Mapping[str, Any], path: str) -> list[int]:
    """The tokens that an architecture bans from answers by themselves, not as a part of words."""
    found, size = architecture.get("bad_words_ids") or (), vocabulary_of(architecture, path)
    if not isinstance(found, list | tuple) or not all(
        isinstance(ids, list | tuple) and all(type(i) is int and 0 <= i < size for i in ids)
        for ids in found
    ):
        raise UserError(
            f"config.json of {path or 'the run'} says bad_words_ids={found!r:.80}, where lists of "
            "tokens' ids are wanted."
        )
    return [ids[0] for ids in found if len(ids) == 1]


@contextmanager
def silent_transformers() -> Iterator[None]:
    """Hides the progress bars and warnings of transformers while it is open."""
    from transformers.utils import logging

    shows, level = logging.is_progress_bar_enabled(), logging.get_verbosity()
    logging.disable_progress_bar()
    logging.set_verbosity_error()
    try:
        yield
    finally:
        logging.set_verbosity(level)
        if shows:
            logging.enable_progress_bar()


def load_pretrained(
    kind: Any, path: str, *, revision: str | None = None
) -> tuple[Any, set[str], str]:
    """Loads a model as transformers does: from safetensors, without a stranger's code.

    A ``kind`` that is no class of transformers stands for the architecture without a head.

    Returns:
        The model in fp32; the names of its weights that no file has; a note that names the tensors
        of the files that it has no place for, empty if there are none.
    """
    folder = find_pretrained(path, revision=revision)
    folder.check_weights()
    architecture = plain_architecture(folder.config())
    config = pretrained_config(architecture, path, needed_by="A model of pretrained weights")
    if not hasattr(kind, "from_pretrained"):
        from transformers import AutoModel as kind  # noqa: N813  # it finds the class
    try:
        with silent_transformers(), torch.random.fork_rng(devices=[]):
            model, info = kind.from_pretrained(
                folder.path,
                config=config,
                dtype=torch.float32,
                trust_remote_code=False,
                use_safetensors=True,
                local_files_only=True,
                output_loading_info=True,
                ignore_mismatched_sizes=True,  # they are named below
            )
    except Exception as error:  # each file is damaged in its own way
        raise UserError(
            f"The weights of {path} do not load: {_reason(error)}. Download them again."
        ) from error
    misfits = [
        f"{name} is {list(found)}, not {list(wanted)}"
        for name, found, wanted in sorted(info["mismatched_keys"])
    ]
    base = f"{model.base_model_prefix}."  # which names in a file may begin with, or not

    def place(name: str) -> str:
        """The place of a weight in any layer of a stack."""
        return re.sub(r"\.\d+(?=\.)", ".N", name.removeprefix(base))

    places = {place(name) for name in model.state_dict()}
    misfits += [
        f"{name} has no place" for name in sorted(info["unexpected_keys"]) if place(name) in places
    ]
    refuse_misfits(misfits, path, config.model_type)
    unused = [n for n in sorted(info["unexpected_keys"]) if not _HEADS.match(n.removeprefix(base))]
    listed = f" Without a place in it: {', '.join(unused[:5])}, {len(unused)} in all."
    return model, set(info["missing_keys"]), listed if unused else ""


def refuse_misfits(misfits: list[str], path: str, kind: str) -> None:
    if misfits:
        raise UserError(
            f"The weights of {path} do not fit its architecture {kind}: "
            f"{', '.join(misfits[:5])}, {len(misfits)} in all."
        )


def copy_weights(
    model: Any,
    path: str,
    *,
    revision: str | None = None,
    beside: Mapping[str, nn.Linear] = MappingProxyType({}),
) -> str:
    """Takes the weights of ``path`` into a model; returns a line that says so.

    The model is one of transformers, or has its names; its table of tokens may have more rows,
    which stay at random. Layers ``beside`` it are named as they may be there; one that is not
    there stays.
    """
    found, missing, note = load_pretrained(type(model), path, revision=revision)
    given, wanted = found.state_dict(), own_weights(model)
    lacks = [f"{name} is missing" for name in wanted if name in missing or name not in given]
    refuse_misfits(lacks, path, found.config.model_type)
    table, rows = model.get_input_embeddings().weight, found.get_input_embeddings().weight
    new = len(table) - len(rows)
    if new > len(table) * _MOST_NEW:
        raise UserError(
            f"The tokenizer of {path} has {len(table):,} tokens, but the weights have rows of "
            f"{len(rows):,}: it is that of another model. Take its own tokenizer.json."
        )
    with torch.no_grad():
        for name, weight in wanted.items():
            value = given[name]
            # Other shapes are of other numbers of tokens: the rows that both have are copied.
            both = tuple(slice(min(a, b)) for a, b in zip(weight.shape, value.shape, strict=True))
            weight[both] = value[both]
    for name, layer in beside.items():
        parts = {part: f"{name}.{part}" for part in ("weight", "bias")}
        if all(each in given and each not in missing for each in parts.values()):
            layer.load_state_dict({part: given[each] for part, each in parts.items()})
    every = [*model.parameters()]
    learning = sum(p.numel() for p in every if p.requires_grad)
    total = sum(p.numel() for p in every)
    learn = f", of which {learning:,} learn" if learning < total else ""
    rest = f" Tokens that begin at random, without a row there: {new:,}." if new > 0 else ""
    return f"Pretrained weights of {path}: {total:,} parameters{learn}.{rest}{note}"
