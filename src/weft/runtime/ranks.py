"""What the ranks of a run say to each other. One rank alone never touches torch.distributed."""

import json
import logging
import os
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import timedelta
from typing import TYPE_CHECKING, Any, TypeVar

from weft.errors import OtherRankError, RankLostError, WeftError
from weft.runtime.devices import Env

if TYPE_CHECKING:
    from torch import Tensor

__all__ = ["Ranks"]

LOG = logging.getLogger("weft")

T = TypeVar("T")

GROUP_TIMEOUT = 1800.0
"""Seconds for one exchange: one rank may save or compute a metric while the others wait."""
BEAT = 1.0
"""Seconds between two signs of life of a rank."""
SILENCE = 15.0
"""Seconds without a sign of life after which a rank is taken for dead: its machine, or the way to
it, is gone. One that ends is noticed at once, by its connections."""
LINGER = 5.0
"""Seconds that rank 0 waits for the others to leave when it ends with an error."""
UNREACHABLE = "The other ranks cannot be reached any more: this one ends"


_JOINED: "list[Ranks]" = []


class Ranks:
    """The data-parallel group.

    Every method but ``close`` must be called by all ranks in the same order. With more than one
    rank the process group is started here if nobody has (NCCL for CUDA, else gloo), and ended by
    ``close``, which is also what leaving a ``with`` block does. Where the block ends with an error,
    the first rank to have one tells the others, who raise an OtherRankError.

    Args:
        env: This process's place; ``world_size`` 1 needs no group.
        url: How the ranks find each other, as torch has it: ``tcp://host:port``, or ``env://`` for
            MASTER_ADDR and MASTER_PORT, as torchrun sets them.
        timeout: After how many seconds an exchange fails that some rank does not take part in.

    Raises:
        RankLostError: The ranks do not find each other.

    Example:
        >>> import torch
        >>> with Ranks(Env()) as ranks:
        ...     ranks.size, ranks.any(False), ranks.gather("a"), ranks.sum_(torch.tensor(2.0))
        (1, False, ['a'], tensor(2.))
    """

    def __init__(self, env: Env, *, url: str | None = None, timeout: float = GROUP_TIMEOUT) -> None:
        self.env = env
        self._started = self._watched = False
        self._ended = threading.Event()
        self._heard: dict[int, float] = {}
        self._dist: Any = None
        self._store: Any = None
        self._turn = 0
        if env.world_size > 1:
            import torch.distributed as dist  # one rank alone never pays for it

            self._dist = dist
            with self._exchanging():
                self._join(url or "env://", timedelta(seconds=timeout))

    @classmethod
    def of(cls, env: Env) -> "Ranks":
        """The group that this process is in with that place, or a new one."""
        known = _JOINED[-1] if _JOINED else None
        return known if known is not None and known.env == env else cls(env)

    def _join(self, url: str, timeout: timedelta) -> None:
        dist, env = self._dist, self.env
        if dist.is_initialized():
            self._store = dist.distributed_c10d._get_default_store()
        else:
            if env.device.startswith("cuda"):
                import torch

                torch.cuda.set_device(env.device)
            found = dist.rendezvous(url, env.rank, env.world_size, timeout=timeout)
            self._store, _, _ = next(found)
        attempt = os.environ.get("TORCHELASTIC_RESTART_COUNT", "0")  # a launcher keeps the store
        self._store = dist.PrefixStore(f"weft/{attempt}", self._store)
        if not dist.is_initialized():
            dist.init_process_group(
                "nccl" if env.device.startswith("cuda") else "gloo",
                store=dist.PrefixStore("group", self._store),
                rank=env.rank,
                world_size=env.world_size,
                timeout=timeout,
            )
            self._started = True
        _JOINED.append(self)
        place = f"rank {env.rank} (process {os.getpid()} on {socket.gethostname()})"
        self._store.set(f"place/{env.rank}", place)
        threading.Thread(target=self._watch, name="weft-watch", daemon=True).start()

    @property
    def restart(self) -> str | None:
        """What ended the attempt before, where a launcher has started the ranks again."""
        count = os.environ.get("TORCHELASTIC_RESTART_COUNT", "0")
        if self.size == 1 or count == "0":
            return None
        why = "A rank died"
        with suppress(RuntimeError, AttributeError):
            store = self._dist.PrefixStore(f"weft/{int(count) - 1}", self._store.underlying_store)
            why = store.get("error").decode() if store.check(["error"]) else why
        most = os.environ.get("TORCHELASTIC_MAX_RESTARTS", "?")
        return f"Restart {count} of at most {most}. {why}"

    @property
    def size(self) -> int:
        """How many ranks there are."""
        return self.env.world_size

    def sum_(self, tensor: "Tensor") -> "Tensor":
        """Replaces a tensor, of the same shape on all ranks, by its sum over them; returns it."""
        if self.size > 1:
            with self._exchanging():
                self._dist.all_reduce(tensor)
        return tensor

    def begin_sum_(self, tensor: "Tensor") -> Callable[[], None]:
        """Begins what :meth:`sum_` does; the call of what it returns waits for the end of it."""
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

    def gather_to_main(self, value: T) -> list[T]:
        """The values of all ranks, in the order of the ranks, on rank 0; of others nothing."""
        if self.size == 1:
            return [value]
        values: list[Any] = [None] * self.size if self.env.is_main else []
        with self._exchanging():
            self._dist.gather_object(value, values or None)
        return values

    def barrier(self) -> None:
        """Waits until all ranks are here."""
        if self.size > 1:
            self.any(False)  # works on every backend, without a device to name

    @contextmanager
    def main_first(self) -> Iterator[None]:
        """Runs the block on rank 0, then on the others, who so find the files that rank 0 wrote.

        They wait for as long as it takes: reading data may take hours. The block on rank 0 must not
        talk to the others.

        Raises:
            OtherRankError: on the others, when the block failed on rank 0.
        """
        if self.size == 1:
            yield
            return
        if self._watched:  # in training nothing takes so long, and one that ends is noticed at once
            if self.env.is_main:
                yield
            self.any(False)
            if not self.env.is_main:
                yield
            return
        self._turn += 1
        key = f"main/{self._turn}"
        if self.env.is_main:
            yield  # where it fails, the error is told to all by the end of the group
            with self._exchanging():
                self._store.set(key, "done")
            return
        with self._exchanging():
            self._wait_for(key)
        yield

    def from_main(self, make: Callable[[], T]) -> T:
        """What rank 0 makes, plain as in JSON, on all ranks.

        Raises:
            OtherRankError: on the others, when it failed on rank 0.
        """
        if self.size == 1:
            return make()
        made: Any = None
        key = f"made/{self._turn + 1}"
        with self.main_first():
            if self.env.is_main:
                made = make()
                self._store.set(key, json.dumps(made))
            else:
                made = json.loads(self._store.get(key))
        return made  # type: ignore[no-any-return]

    def _wait_for(self, key: str) -> None:
        pause = 0.001
        while not self._store.check([key]):
            if error := self._told():
                raise error
            time.sleep(pause)
            pause = min(2 * pause, 0.1)

    # -- how they end

    @contextmanager
    def _exchanging(self) -> Iterator[None]:
        """Turns what torch raises where the others cannot be reached into one of weft's errors."""
        try:
            yield
        except WeftError:
            raise
        except RuntimeError as error:  # of gloo, NCCL and the store
            raise self._lost(error) from error

    def _lost(self, error: RuntimeError) -> RankLostError:
        """What became of the others: the error that one has told, or who has died."""
        if self._store is None:
            return RankLostError(
                f"Rank {self.env.rank} of {self.size} found no connection to the others: {error}\n"
                "Start as many processes as WORLD_SIZE says, all of which reach MASTER_ADDR and "
                "MASTER_PORT."
            )
        deadline, before = time.monotonic() + 3 * BEAT, self._beats()
        while time.monotonic() < deadline:
            if told := self._told():
                return told
            time.sleep(BEAT / 4)
        after, others = self._beats(), set(range(self.size)) - {self.env.rank}
        silent = sorted(rank for rank in others if before.get(rank) == after.get(rank))
        if not after or not silent:
            return RankLostError(f"{UNREACHABLE}: {error}")
        return RankLostError(self._of_silent(silent))

    def _of_silent(self, silent: list[int]) -> str:
        places = [self._place(rank) for rank in silent]
        return (
            f"{' and '.join(places)} died, or cannot be reached any more: all ranks end. "
            "The same command goes on from the last checkpoint."
        )

    def _place(self, rank: int) -> str:
        with suppress(RuntimeError):
            if self._store.check([f"place/{rank}"]):
                return str(self._store.get(f"place/{rank}").decode())
        return f"rank {rank}"

    def _beats(self) -> dict[int, int]:
        """How often each rank has given a sign of life; nothing where the store is gone."""
        try:
            return {rank: self._store.add(f"beat/{rank}", 0) for rank in range(self.size)}
        except RuntimeError:
            return {}

    def _told(self) -> OtherRankError | None:
        """The error of the rank that had one first, if one has told it."""
        try:
            if not self._store.check(["error"]):
                return None
            return OtherRankError(self._store.get("error").decode())
        except RuntimeError:
            return None

    def fail(self, error: BaseException) -> None:
        """Tells the others of an error that ends this rank, unless another rank was first.

        Raises:
            OtherRankError: Another one was.
        """
        if self.size == 1 or isinstance(error, OtherRankError):
            return
        try:
            first = self._store.add("failed", 1) == 1
            if first:
                who = "" if isinstance(error, RankLostError) else f"Rank {self.env.rank} failed: "
                self._store.set("error", f"{who}{error}")
                return
            told = self._told()
        except RuntimeError:  # who holds the store is gone, and has said why
            told = OtherRankError("Rank 0 has ended.") if self.env.rank else None
        if told is not None:
            raise told from error

    @contextmanager
    def watched(self) -> Iterator[None]:
        """While the block runs, this process is ended where others give no sign of life.

        Rank 0 looks at all, the others at rank 0: an exchange with a machine that cannot be reached
        any more would wait for its time limit.
        """
        self._watched = True
        try:
            yield
        finally:
            self._watched = False

    def _beat(self) -> None:
        """Gives signs of life, and hears those of others: rank 0 of all, the others of rank 0."""
        store = self._store.clone()
        others = range(1, self.size) if self.env.is_main else range(1)
        seen = dict.fromkeys(others, -1)
        while not self._ended.wait(BEAT):
            with suppress(RuntimeError):
                store.add(f"beat/{self.env.rank}", 1)
                beats = {rank: store.add(f"beat/{rank}", 0) for rank in others}
                changed = [rank for rank in others if beats[rank] != seen[rank]]
                seen = beats
                self._heard |= dict.fromkeys([*changed, self.env.rank], time.monotonic())

    def _watch(self) -> None:
        """A thread of its own: one that asks for signs of life may wait for them without end."""
        others = range(1, self.size) if self.env.is_main else range(1)
        self._heard = dict.fromkeys([*others, self.env.rank], time.monotonic())
        threading.Thread(target=self._beat, name="weft-beat", daemon=True).start()
        while not self._ended.wait(BEAT):
            late = [r for r, when in self._heard.items() if time.monotonic() - when > SILENCE]
            if not late or not self._watched:
                continue
            if self.env.rank in late:  # who holds the store is gone, or the way to it
                why = f"{UNREACHABLE}."
            else:
                why = self._of_silent(late)
                with suppress(OtherRankError):
                    self.fail(RankLostError(why))
            LOG.error("error: %s", why)
            os._exit(RankLostError.exit_code)

    def close(self) -> None:
        """Ends the process group if this object started it."""
        self._ended.set()
        if self in _JOINED:
            _JOINED.remove(self)
        if self._started:
            self._dist.destroy_process_group()
            self._started = False

    def __enter__(self) -> "Ranks":
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        try:
            if error is not None:
                self.fail(error)
        finally:
            if error is None:
                self.close()
            elif self.size > 1:
                self._leave()

    def _leave(self) -> None:
        """Ends with an error; rank 0 not before the others know, where it keeps what is said."""
        self._ended.set()
        with suppress(RuntimeError):
            left, deadline = self._store.add("left", 1), time.monotonic() + LINGER
            kept = self._started and "TORCHELASTIC_RUN_ID" not in os.environ  # else a launcher does
            while self.env.is_main and kept and left < self.size and time.monotonic() < deadline:
                time.sleep(0.05)
                left = self._store.add("left", 0)
        if self in _JOINED:
            _JOINED.remove(self)
