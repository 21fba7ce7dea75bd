"""Low-rank adapters: beside each wide matrix of a pretrained model learn two narrow ones.

Source: Hu et al. 2022, "LoRA: Low-Rank Adaptation of Large Language Models".
"""

import copy
import warnings
from typing import Any

from torch import Tensor, nn

from textmill.config.component import Config as BaseConfig
from textmill.config.validators import require
from textmill.errors import MissingExtraError, UserError


class Lora(BaseConfig):
    r"""Settings of low-rank adapters, as ``model.encoder.lora.rank=8``.

    Beside the weight of a linear layer, which stays as it is, stand :math:`A` of ``rank`` rows and
    :math:`B` of as many columns, which learn:

    .. math::
        W' = W + \frac{\alpha}{r} B A

    :math:`B` begins as zeros, so the model begins as the one it was.
    """

    rank: int = 8
    """Rows of A, and columns of B."""
    alpha: float | None = None
    """What B A is multiplied by, times ``rank``; null is twice the rank."""
    dropout: float = 0.0
    """Probability of dropping a feature that A reads, in training."""
    targets: tuple[str, ...] = ()
    """Ends of the names of layers that have adapters, as ``["query", "value"]``; empty is every
    linear layer but the one that gives a vocabulary's scores."""

    def __post_init__(self) -> None:
        require(self, "lora", sizes=["rank"], shares=["dropout"])
        if self.alpha is not None:
            require(self, "lora", positive=["alpha"])


def add_adapters(model: nn.Module, lora: Lora) -> None:
    """Puts adapters into a model of transformers, by the package peft; all else learns no more.

    A layer with adapters has its own weight under ``base_layer``.
    """
    try:
        import peft
    except ModuleNotFoundError as error:
        if error.name != "peft":
            raise
        raise MissingExtraError("peft", extra="huggingface", what="The setting lora") from None
    settings = peft.LoraConfig(
        r=lora.rank,
        lora_alpha=2 * lora.rank if lora.alpha is None else lora.alpha,  # type: ignore[arg-type]
        lora_dropout=lora.dropout,
        target_modules=list(lora.targets) or "all-linear",
    )
    linear = [name for name, part in model.named_modules() if isinstance(part, nn.Linear)]
    known = [f".{name}" for name, _ in model.named_modules()]
    wrong = [end for end in lora.targets if not any(name.endswith(f".{end}") for name in known)]
    try:
        if wrong:
            raise ValueError(*wrong)  # of which peft says nothing, beside others that are there
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of layers that keep their weights turned, as GPT-2's
            peft.inject_adapter_in_model(settings, model)
    except ValueError as error:
        ends = ", ".join(dict.fromkeys(name.rpartition(".")[2] for name in linear))
        raise UserError(
            f"lora.targets names {', '.join(wrong or lora.targets)}, which no layer of the "
            f"{type(model).__name__} is called. Its linear layers are {ends}."
        ) from error


def check_adapters_learn(module: nn.Module) -> None:
    """Refuses adapters that are all held still, for nothing else of their model learns."""
    adapters = [each for name, each in module.named_parameters() if ".lora_" in name]
    if adapters and not any(each.requires_grad for each in adapters):
        raise UserError(
            "optimizer.freeze holds the adapters of lora still. Leave those patterns out: with "
            "adapters all other weights of a pretrained model are still by themselves."
        )


def merged(module: nn.Module) -> nn.Module:
    """The module; of one with adapters a copy that has them in its weights."""
    if not any(map(_is_adapted, module.modules())):
        return module
    made = copy.deepcopy(module)
    for part in [*made.modules()]:
        vars(part).pop("peft_config", None)
        for name, child in [*part.named_children()]:
            if _is_adapted(child):
                layer: Any = child
                layer.merge()
                setattr(part, name, layer.get_base_layer())
    return made


def own_name(name: str) -> str:
    """What a weight is called where its layer has no adapters.

    Example:
        >>> own_name("encoder.layer.0.output.dense.base_layer.weight")
        'encoder.layer.0.output.dense.weight'
    """
    return name.replace(".base_layer.", ".")


def own_weights(model: nn.Module) -> dict[str, Tensor]:
    """A model's weights by the names that they have without adapters, whose own are left out."""
    found = model.state_dict(keep_vars=True).items()
    return {own_name(name): weight for name, weight in found if ".lora_" not in name}


def _is_adapted(part: nn.Module) -> bool:
    return type(part).__module__.startswith("peft.tuners.lora.")
