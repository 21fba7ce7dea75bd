"""FSDP: a rank holds a share of each parameter, of its gradient, and of the optimizer's state."""

import sys
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace

import torch
from torch import Tensor, nn
from torch.optim import SGD, Adadelta, Adagrad, Adam, Adamax, NAdam, RAdam, RMSprop, Rprop
from typing_extensions import override

from textmill.errors import UserError
from textmill.runtime.ranks import Ranks
from textmill.tasks.task import Loss
from textmill.training.blocks import blocks_of
from textmill.training.gradient_sums import RowsOf, TensorRows

ELEMENTWISE = (Adam, SGD, RMSprop, Adagrad, Adadelta, Adamax, NAdam, RAdam, Rprop)
"""Optimizers of torch that move each number by its own gradient alone; AdamW is an Adam."""
HOOKS = ("_forward_pre_hooks", "_forward_hooks", "_load_state_dict_post_hooks")
"""Where torch's hooks are, which are put aside while a module is whole."""

BY_SETTING = ("trainer.data_parallelism=fsdp", "trainer.data_parallelism=ddp")
BY_RECIPE = ("the recipe's fully_shard", "a module without fully_shard")
"""What divides the weights among ranks, and what to use where that cannot be."""


def check_elementwise(
    optimizer: torch.optim.Optimizer, divided: tuple[str, str] = BY_SETTING
) -> None:
    """Refuses an optimizer that looks at a whole parameter, of which a rank has a share."""
    if isinstance(optimizer, ELEMENTWISE) or getattr(optimizer, "elementwise", False):
        return
    by, instead = divided
    raise UserError(
        f"With {by} a rank has a share of each parameter, and {type(optimizer).__name__} looks at "
        "whole ones. Use optimizer.type=adamw, adam or sgd (of your own: a class with "
        f"elementwise = True, if each number is moved by its own gradient alone), or {instead}."
    )


def is_sharded(module: nn.Module, *, parts: bool = True) -> bool:
    """Whether ``fully_shard`` has been applied to a module or, with ``parts``, to a part of it."""
    if "torch.distributed.fsdp" not in sys.modules:  # half a second, which others do not pay
        return False
    from torch.distributed.fsdp import FSDPModule

    looked_at = module.modules() if parts else [module]
    return any(isinstance(part, FSDPModule) for part in looked_at)


class Shards(nn.Module):
    """A rank's shares of a module's parameters, and its buffers, by the module's own names.

    They are the memory of the sharded parameters: what moves them moves the module. Parameters that
    are tied there are tied here.
    """

    def __init__(
        self, module: nn.Module, ranks: Ranks, divided: tuple[str, str] = BY_SETTING
    ) -> None:
        super().__init__()
        self.rows: dict[str, TensorRows] = {}
        """Where each share stands in the whole, by name."""
        self.of: dict[nn.Parameter, nn.Parameter] = {}
        """The share of each parameter of the module."""
        for name, parameter in module.named_parameters(remove_duplicate=False):
            self.rows[name] = _rows_of(name, parameter, ranks)
            if parameter not in self.of:
                mine = parameter.detach().to_local()  # type: ignore[attr-defined]  # a DTensor's
                self.of[parameter] = nn.Parameter(mine, requires_grad=parameter.requires_grad)
            place, leaf = self._place(name)
            place.register_parameter(leaf, self.of[parameter])
        saved = module.state_dict().keys()
        for name, buffer in module.named_buffers(remove_duplicate=False):
            place, leaf = self._place(name)
            place.register_buffer(leaf, buffer, persistent=name in saved)
        if odd := saved ^ self.state_dict().keys():
            raise UserError(
                f"The module's state has {', '.join(sorted(odd)[:3])} beside its parameters and "
                f"buffers, which cannot be saved with {divided[0]}. Use {divided[1]}."
            )

    def _place(self, name: str) -> tuple[nn.Module, str]:
        """The module that a name's owner is mirrored by, and the name in it."""
        *path, leaf = name.split(".")
        place: nn.Module = self
        for step in path:
            if step not in place._modules:
                place.add_module(step, nn.Module())
            place = place.get_submodule(step)
        return place, leaf


def _rows_of(name: str, parameter: nn.Parameter, ranks: Ranks) -> TensorRows:
    from torch.distributed.tensor import DTensor, Shard

    if (
        not isinstance(parameter, DTensor)
        or parameter.placements != (Shard(0),)
        or parameter.device_mesh.size() != ranks.size
    ):
        raise UserError(
            f"The module's parameter '{name}' is not divided by rows among all {ranks.size} ranks, "
            "as other parts of the module are. Apply fully_shard to the whole module as well, "
            "without a mesh; or to nothing, and set trainer.data_parallelism=fsdp."
        )
    shape = tuple(parameter.shape)
    size = -(-shape[0] // ranks.size)
    first = min(ranks.env.rank * size, shape[0])
    return TensorRows(first=first, count=min(size, shape[0] - first), shape=shape)


class _Calls(nn.Module):
    """Calls what computes with a module: tasks call parts of it, which have no hooks of FSDP.

    If the recipe has sharded the module itself, its own hooks are called around the computation.
    """

    def __init__(self, module: nn.Module) -> None:
        super().__init__()
        self.module = module

    @override
    def forward(self, compute: Callable[[], Tensor]) -> Tensor:
        if not is_sharded(self.module, parts=False):
            return compute()

        def once() -> Tensor:
            del self.module.forward  # what the task calls has its own
            return compute()

        self.module.forward = once
        total: Tensor = self.module()
        return total


class FullySharded:
    """A module that torch's FSDP2 shards, block by block, and the sums of its gradients.

    Each block of it (:func:`~textmill.training.blocks.blocks_of`) is whole while it computes; what
    is in none is whole for a step. The optimizer has this rank's shares, which are plain tensors.
    """

    together = True

    def __init__(self, module: nn.Module, ranks: Ranks, optimizer: torch.optim.Optimizer) -> None:
        from torch.distributed.fsdp import FSDPModule

        self.module, self.ranks, self.optimizer = module, ranks, optimizer
        self._divided = BY_RECIPE if is_sharded(module) else BY_SETTING
        check_elementwise(optimizer, self._divided)
        names = {p: name for name, p in module.named_parameters()}
        groups = [[_known(names, p) for p in group["params"]] for group in optimizer.param_groups]
        self._calls = _Calls(module)
        if not is_sharded(module):
            _shard(self._calls, ranks)
        self._parts = [part for part in self._calls.modules() if isinstance(part, FSDPModule)]
        for part in self._parts:
            part.set_gradient_divide_factor(1.0)  # gradients are sums, which the count divides
            part.set_force_sum_reduction_for_comms(True)
            part.set_requires_gradient_sync(False, recurse=False)
        self.shards = Shards(module, ranks, self._divided)
        for group, own in zip(optimizer.param_groups, groups, strict=True):
            group["params"] = [self.shards.get_parameter(name) for name in own]
        self.parameters = [p for group in optimizer.param_groups for p in group["params"]]
        self._numbered = [name for own in groups for name in own]
        self._is_whole = False

    @property
    def rows(self) -> Mapping[str, RowsOf]:
        """What says where a saved tensor's share stands in the whole, by the part it is of."""
        return {"model": self.shards.rows.get, "weights": self.shards.rows.get} | {
            "optimizer": self._rows_of_state
        }

    def _rows_of_state(self, name: str) -> TensorRows | None:
        what, _, rest = name.partition(".")
        number = rest.partition(".")[0]
        known = what == "state" and number.isdecimal() and int(number) < len(self._numbered)
        return self.shards.rows[self._numbered[int(number)]] if known else None

    def called(self, compute: Callable[[], Loss], *, is_last: bool) -> Loss:
        """The loss that ``compute`` gives, whatever parts of the module it calls."""
        del is_last
        made: list[Loss] = []

        def total() -> Tensor:
            made.append(compute())
            return made[0].total

        try:
            whole = self._calls(total)
        except RuntimeError as error:
            if "mixed torch.Tensor and DTensor" not in str(error):
                raise
            by, instead = self._divided
            blocks = "" if self._divided is BY_RECIPE else " (what stands in a ModuleList)"
            raise UserError(
                f"With {by} a block of the module{blocks} has its weights while it is called, and "
                f"something uses them outside of a call: {str(error).partition(',')[0]}. Call the "
                f"block, or use {instead}."
            ) from error
        return replace(made[0], total=whole)

    @contextmanager
    def last_backward(self) -> Iterator[None]:
        """Sums the gradients of all backward passes of a step while that in the block computes."""
        for part in self._parts:
            part.set_requires_gradient_sync(True, recurse=False)
        try:
            yield
        finally:
            for part in self._parts:
                part.set_requires_gradient_sync(False, recurse=False)

    def send(self) -> list[bool]:
        """Gives the shares their gradients; returns which have any."""
        for parameter, share in self.shards.of.items():
            grad = parameter.grad
            share.grad = None if grad is None else grad.to_local()  # type: ignore[attr-defined]
            parameter.grad = None
        return [p.grad is not None for p in self.parameters]

    def receive(self, used: Sequence[bool]) -> None:
        """Nothing is left to wait for."""
        del used

    def norm(self, gradients: Sequence[Tensor]) -> Tensor:
        """The norm of all ranks' shares together, of the shape ``[]``."""
        own = nn.utils.get_total_norm(gradients)
        return self.ranks.sum_(own.double().square()).sqrt().to(own.dtype)

    @contextmanager
    def whole(self, *, write: bool = False) -> Iterator[None]:
        """Makes the module a plain one with all its weights while the block runs.

        So evaluations and decoding, of which ranks have more or less, exchange nothing; it takes
        the memory of all weights. With ``write`` the shares are those of the weights afterwards.
        """
        if self._is_whole:
            yield
            return
        full, undo = self._make_whole()
        try:
            yield
        finally:
            undo()
        if write:
            with torch.no_grad():
                for name, sharded in self.module.named_parameters():
                    rows = self.shards.rows[name]
                    part = full[sharded][rows.first : rows.first + rows.count]
                    self.shards.of[sharded].copy_(part)

    def finish(self) -> None:
        """Makes the module a plain one for good."""
        if not self._is_whole:
            self._make_whole()
        self._is_whole = True

    def _make_whole(self) -> tuple[dict[nn.Parameter, nn.Parameter], Callable[[], None]]:
        """Puts whole parameters into the module, and FSDP's classes and hooks aside.

        Returns the whole of each sharded parameter, and what undoes it.
        """
        full = {
            p: nn.Parameter(p.detach().full_tensor(), requires_grad=p.requires_grad)  # type: ignore[attr-defined]
            for p in self.shards.of
        }
        places = [
            (place, name, p)
            for place in self.module.modules()
            for name, p in place.named_parameters(recurse=False, remove_duplicate=False)
        ]
        parts = [*self._calls.modules()]
        before = [(part, type(part), {n: vars(part)[n] for n in HOOKS}) for part in parts]
        for place, name, sharded in places:
            setattr(place, name, full[sharded])
        for part, kind, hooks in before:
            if part in self._parts:
                part.__class__ = kind.__bases__[1]  # torch makes it of (FSDPModule, the class)
            for name, known in hooks.items():
                torchs = "torch.distributed.fsdp"
                own = {n: h for n, h in known.items() if not h.__module__.startswith(torchs)}
                setattr(part, name, OrderedDict(own))

        def undo() -> None:
            for place, name, sharded in places:
                setattr(place, name, sharded)
            for part, kind, hooks in before:
                part.__class__ = kind
                vars(part).update(hooks)

        return full, undo


def _known(names: Mapping[nn.Parameter, str], parameter: nn.Parameter) -> str:
    if parameter not in names:
        raise UserError(
            "The optimizer has a parameter that is not one of the module's, and the module's are "
            "divided among ranks. Put it into the module, or train without fsdp or fully_shard."
        )
    return names[parameter]


def _shard(calls: _Calls, ranks: Ranks) -> None:
    """Shards the blocks, and then the rest.

    A block is what has parts of its own, since weights of a single layer are often used by what
    is around it, and shares no parameter with what is outside.
    """
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard

    mesh = init_device_mesh(torch.device(ranks.env.device).type, (ranks.size,))
    owners: dict[nn.Parameter, set[nn.Module]] = {}
    for owner in calls.modules():
        for parameter in owner.parameters(recurse=False):
            owners.setdefault(parameter, set()).add(owner)
    try:
        for block in blocks_of(calls.module):
            inside, own = set(block.modules()), list(block.parameters())
            is_block = block is not calls.module and len(inside) > 1
            if is_block and own and all(owners[p] <= inside for p in own):
                fully_shard(block, mesh=mesh)
        fully_shard(calls, mesh=mesh)
    except (ValueError, AssertionError) as error:
        raise UserError(f"torch cannot shard this module: {error}\nUse ddp.") from error
