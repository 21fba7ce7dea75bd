"""What the ranks of a run say to each other. One rank alone never touches torch.distributed."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import TYPE_CHECKING, Any, TypeVar

from weft.errors import RunError
from weft.runtime.devices import Env

if TYPE_CHECKING:
    from torch import Tensor

__all__ = ["Ranks"]

T = TypeVar("T")


class Ranks:
    """The data-parallel group.

    Every method but ``close`` must be called by all ranks in the same order. With more than one
    rank the process group is started here if nobody has (NCCL for CUDA, else gloo), and ended by
    ``close``, which is also what leaving a ``with`` block does.

    Args:
        env: This process's place; ``world_size`` 1 needs no group.
        timeout: After how many seconds without an answer the other ranks are taken for dead.

    Example:
        >>> import torch
        >>> with Ranks(Env()) as ranks:
        ...     ranks.size, ranks.any(False), ranks.gather("a"), ranks.sum_(torch.tensor(2.0))
        (1, False, ['a'], tensor(2.))
    """

    def __init__(self, env: Env, *, timeout: float = 600.0) -> None:
        self.env = env
        self._started = False
        self._dist: Any = None
        if env.world_size > 1:
            import torch.distributed as dist  # one rank alone never pays for it

            self._dist = dist
            if not dist.is_initialized():
                dist.init_process_group(
                    "nccl" if env.device.startswith("cuda") else "gloo",
                    rank=env.rank,
                    world_size=env.world_size,
                    timeout=timedelta(seconds=timeout),
                )
                self._started = True

    @property
    def size(self) -> int:
        """How many ranks there are."""
        return self.env.world_size

    def sum_(self, tensor: "Tensor") -> "Tensor":
        """Replaces a tensor, of the same shape on all ranks, by its sum over them; returns it."""
        if self.size > 1:
            self._dist.all_reduce(tensor)
        return tensor

    def any(self, flag: bool) -> bool:
        """Whether the flag is true on at least one rank; all ranks get the same answer."""
        if self.size == 1:
            return flag
        import torch

        return bool(self.sum_(torch.tensor(int(flag), device=self.env.device)).item())

    def gather(self, value: T) -> list[T]:
        """The values of all ranks, in the order of the ranks, on every rank."""
        if self.size == 1:
            return [value]
        values: list[Any] = [None] * self.size
        self._dist.all_gather_object(values, value)
        return values

    def barrier(self) -> None:
        """Waits until all ranks are here."""
        if self.size > 1:
            self.any(False)  # works on every backend, without a device to name

    @contextmanager
    def main_first(self) -> Iterator[None]:
        """Runs the block on rank 0, then on the others, who so find the files that rank 0 wrote.

        Raises:
            RunError: on the others, when the block failed on rank 0.
        """
        if self.env.is_main:
            failed = True
            try:
                yield
                failed = False
            finally:
                self.any(failed)
            return
        if self.any(False):
            raise RunError("Rank 0 failed; its own message says why.")
        yield

    def close(self) -> None:
        """Ends the process group if this object started it."""
        if self._started:
            self._dist.destroy_process_group()
            self._started = False

    def __enter__(self) -> "Ranks":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
