"""What the ranks of a run say to each other. One rank alone never touches torch.distributed."""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import urlsplit

from textmill.errors import OtherRankError, RankLostError, RunStoppedError, TextmillError
from textmill.runtime.devices import Env
from textmill.runtime.liveness import GRACE, SILENCE, Liveness

if TYPE_CHECKING:
    from torch import Tensor

LAST_END = "TEXTMILL_LAST_END"
"""The variable in which ``textmill train --nproc`` tells ranks how an earlier one was killed."""

T = TypeVar("T")

_GROUP_TIMEOUT = 1800.0
"""Seconds for one exchange: one rank may save or compute a metric while the others wait."""

_JOINED: "list[Ranks]" = []


class Ranks:
    """The data-parallel group.

    Every method but ``close`` must be called by all ranks in the same order. With more than one
    rank the process group is started here if nobody has (NCCL for CUDA, else gloo), and ended by
    ``close``, which is also what leaving a ``with`` block does. Where the block ends with an error,
    the first rank to have one tells the others, who raise an OtherRankError. A RunStoppedError is
    told to nobody: all ranks have agreed to stop.

    Args:
        env: This process's place; ``world_size`` 1 needs no group.
        url: How the ranks find each other, as torch has it: ``tcp://host:port``, or ``env://`` for
            MASTER_ADDR and MASTER_PORT, as torchrun sets them.

    Example:
        >>> import torch
        >>> with Ranks(Env()) as ranks:
        ...     ranks.size, ranks.any(False), ranks.gather("a"), ranks.sum_(torch.tensor(2.0))
        (1, False, ['a'], tensor(2.))
    """

    def __init__(self, env: Env, *, url: str | None = None) -> None:
        self.env = env
        self._started = False
        self._dist: Any = None
        self._liveness: Liveness | None = None
        if env.world_size > 1:
            import torch.distributed as dist  # one rank alone never pays for it

            self._dist = dist
            with self._exchanging():
                self._join(url or "env://")

    @classmethod
    def of(cls, env: Env) -> "Ranks":
        """The group that this process is in with that place, or a new one."""
        known = _JOINED[-1] if _JOINED else None
        return known if known is not None and known.env == env else cls(env)

    def _join(self, url: str) -> None:
        dist, env, timeout = self._dist, self.env, timedelta(seconds=_GROUP_TIMEOUT)
        if dist.is_initialized():
            store = dist.distributed_c10d._get_default_store()
        else:
            if env.device.startswith("cuda"):
                import torch

                torch.cuda.set_device(env.device)
            store, _, _ = next(dist.rendezvous(url, env.rank, env.world_size, timeout=timeout))
        host = urlsplit(url).hostname or os.environ.get("MASTER_ADDR")
        self._liveness = Liveness(env, store, host=host, timeout=_GROUP_TIMEOUT)
        if not dist.is_initialized():
            dist.init_process_group(
                "nccl" if env.device.startswith("cuda") else "gloo",
                store=dist.PrefixStore(f"textmill/{self._liveness.attempt}", store),
                rank=env.rank,
                world_size=env.world_size,
                timeout=timeout,
            )
            self._started = True
        _JOINED.append(self)

    @property
    def restart(self) -> str | None:
        """Why the previous attempt ended, if a launcher has started the ranks again."""
        if self._liveness is None or self._liveness.error_before is None:
            return None
        why = os.environ.get(LAST_END) or self._liveness.error_before
        return f"Started again after this: {why}"

    @property
    def size(self) -> int:
        return self.env.world_size

    def sum_(self, tensor: "Tensor") -> "Tensor":
        """Replaces a tensor, of the same shape on all ranks, by its sum over them; returns it."""
        if self.size > 1:
            with self._exchanging():
                self._dist.all_reduce(tensor)
        return tensor

    def begin_sum_(self, tensor: "Tensor") -> Callable[[], None]:
        """Begins a :meth:`sum_`; calling the result waits until it is done."""
        if self.size == 1:
            return lambda: None
        with self._exchanging():
            work = self._dist.all_reduce(tensor, async_op=True)

        def wait() -> None:
            with self._exchanging():
                work.wait()

        return wait

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
        with self._exchanging():
            self._dist.all_gather_object(values, value)
        return values

    def gather_rows(self, tensor: "Tensor") -> "list[Tensor]":
        """The tensors of all ranks, in the order of the ranks, on every rank, without a graph.

        Args:
            tensor: *Shape:* :math:`(B,...)`, where :math:`B` may differ from rank to rank.
        """
        if self.size == 1:
            return [tensor]
        import torch

        counts = tensor.new_zeros(self.size, dtype=torch.int64)
        counts[self.env.rank] = len(tensor)
        sizes = self.sum_(counts).tolist()
        padded = tensor.new_zeros((max(sizes), *tensor.shape[1:]))
        padded[: len(tensor)] = tensor
        parts = [padded.new_empty(padded.shape) for _ in sizes]
        with self._exchanging():
            self._dist.all_gather(parts, padded)
        return [part[:size] for part, size in zip(parts, sizes, strict=True)]

    def gather_to_main(self, value: T) -> list[T]:
        """The values of all ranks, in order, on rank 0; elsewhere an empty list."""
        if self.size == 1:
            return [value]
        values: list[Any] = [None] * self.size if self.env.is_main else []
        with self._exchanging():
            self._dist.gather_object(value, values or None)
        return values

    @contextmanager
    def main_first(self) -> Iterator[None]:
        """Runs the block on rank 0, then on the others, which find the files that rank 0 wrote.

        They wait for as long as it takes: reading data may take hours. The block on rank 0 must not
        talk to the others.

        Raises:
            OtherRankError: on the others, when the block failed on rank 0.
        """
        if self.env.is_main:
            yield  # if it fails, the end of the group tells the error to all
            self.from_main(lambda: None)
        else:
            self.from_main(lambda: None)
            yield

    def from_main(self, make: Callable[[], T]) -> T:
        """What rank 0 makes, plain as in JSON, on all ranks.

        Raises:
            OtherRankError: On the others, when it failed on rank 0.
        """
        if not self.env.is_main:
            assert self._liveness is not None, "rank 0 alone is a world"
            value: T = self._liveness.receive()
            return value
        value = make()
        if self._liveness is not None:
            self._liveness.send(value)
        return value

    @contextmanager
    def _exchanging(self) -> Iterator[None]:
        """Turns what torch raises when the others cannot be reached into our error."""
        try:
            yield
        except TextmillError:
            raise
        except RuntimeError as error:  # of gloo, NCCL and the store
            if self._liveness is None:
                raise RankLostError(
                    f"Rank {self.env.rank} of {self.size} found no connection to the others: "
                    f"{error}\nStart as many processes as WORLD_SIZE says, all of which reach "
                    "MASTER_ADDR and MASTER_PORT."
                ) from error
            if self._liveness.wait(SILENCE + GRACE / 2):
                raise self._liveness.lost() from error
            raise RankLostError(f"The other ranks cannot be reached any more: {error}") from error

    def close(self) -> None:
        """Ends the process group if this object started it."""
        self._leave()
        if self._started:
            self._dist.destroy_process_group()
            self._started = False

    def _leave(self) -> None:
        if self._liveness is not None:
            self._liveness.close()
        if self in _JOINED:
            _JOINED.remove(self)

    def __enter__(self) -> "Ranks":
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        in_order = error is None or isinstance(error, RunStoppedError)
        try:
            if not in_order and self._liveness and not isinstance(error, OtherRankError):
                if isinstance(error, RuntimeError):  # it may be torch's, of one that has just died
                    self._liveness.wait(1.0)  # mostly all know at once that a process has ended
                who = "" if isinstance(error, RankLostError) else f"Rank {self.env.rank} failed: "
                code = 130 if isinstance(error, KeyboardInterrupt) else 1
                said = str(error) or type(error).__name__
                self._liveness.tell(f"{who}{said}", getattr(error, "exit_code", code))
        except OtherRankError as other:
            raise other from error
        finally:
            if in_order:
                self.close()
            else:
                self._leave()
