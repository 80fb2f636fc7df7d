"""The processes that ``torchrun`` starts, and the collective operations among them."""

from __future__ import annotations

import atexit
import os
import signal
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from itertools import zip_longest
from typing import Any, TypeVar

import torch.distributed as dist
from torch import Tensor

T = TypeVar("T")

#: A rank waits this long for another one in a step of training. A machine that lost power sends no
#: error.
STEP_TIMEOUT = timedelta(seconds=45)
#: It waits this long for anything else, such as data that another rank downloads.
SETUP_TIMEOUT = timedelta(hours=12)


class RankLost(RuntimeError):
    """Another process of the job has died, or the job was told to end."""

    def __init__(self) -> None:
        super().__init__(
            "a process of this job has died, or the job was stopped; a training run goes on with "
            "--resume after its last finished epoch, with any number of processes"
        )


@dataclass(frozen=True)
class Ranks:
    """A process and those it works with.

    A single process does not communicate: every operation returns its own values.
    """

    rank: int = 0
    size: int = 1
    #: For collective operations within a training step, which have a short timeout.
    step_group: dist.ProcessGroup | None = None

    @classmethod
    def current(cls) -> Ranks:
        """Return the ranks of ``torch.distributed``, or one process where that is not in use."""
        if dist.is_available() and dist.is_initialized():
            return cls(dist.get_rank(), dist.get_world_size())
        return ALONE

    @property
    def is_main(self) -> bool:
        """Whether this is rank 0, which alone reads and writes runs, prints and warns."""
        return self.rank == 0

    def shard(self, items: Any) -> Any:
        """Return every ``size``-th item of a sequence or tensor, from ``rank`` on."""
        return items[self.rank :: self.size]

    def gather_shards(self, shard: Sequence[T]) -> list[T]:
        """Return what all ranks made of their :meth:`shard`, in the order of the whole."""
        rounds = zip_longest(*self.all_gather(list(shard)))
        return [item for items in rounds for item in items if item is not None]

    def all_gather(self, value: T) -> list[T]:
        """Return the values of all ranks, on each of them."""
        if self.size == 1:
            return [value]
        values: list[Any] = [None] * self.size
        with _raising_rank_lost():
            dist.all_gather_object(values, value, self.step_group)
        return values

    def all_reduce_(self, values: Tensor) -> Tensor:
        """Sum a tensor over ranks, in place and without gradients."""
        if self.size > 1:
            with _raising_rank_lost():
                dist.all_reduce(values, group=self.step_group)
        return values

    def broadcast_(self, values: Tensor, src: int) -> None:
        """Overwrite a tensor with that of rank ``src``."""
        if self.size > 1:
            with _raising_rank_lost():
                dist.broadcast(values, src)

    def on_main(self, function: Callable[[], T]) -> T:
        """Call a function on rank 0 alone, and return its value on all ranks."""
        value = [function() if self.is_main else None]
        if self.size > 1:
            with _raising_rank_lost():
                dist.broadcast_object_list(value)
        return value[0]  # type: ignore[return-value]

    def local_main_first(self, function: Callable[[], T]) -> T:
        """Call a function on one rank of each machine, which may download, then on the others."""
        if self.size == 1:
            return function()
        is_local_main = os.environ["LOCAL_RANK"] == "0"
        value = function() if is_local_main else None
        with _raising_rank_lost():
            dist.barrier()
        return value if is_local_main else function()  # type: ignore[return-value]


#: A process on its own.
ALONE = Ranks()


def launched_by_torchrun() -> bool:
    """Whether ``torchrun`` started this process as one of several."""
    return int(os.environ.get("WORLD_SIZE", "1")) > 1 and "LOCAL_RANK" in os.environ


def join(device: str = "cpu") -> Ranks:
    """Connect to the other processes that ``torchrun`` started, if it started several.

    Args:
        device: the type of device whose tensors are exchanged, beside those of the CPU.
    """
    if not launched_by_torchrun():
        return ALONE
    backend = "cpu:gloo,cuda:nccl" if device == "cuda" else "gloo"
    # torchrun ends the others when one has died: they are to say so instead of just ending.
    signal.signal(signal.SIGTERM, _raise_rank_lost)
    with _raising_rank_lost():
        if not dist.is_initialized():
            dist.init_process_group(backend, timeout=SETUP_TIMEOUT)
            atexit.register(_leave)
        step_group = dist.new_group(backend=backend, timeout=STEP_TIMEOUT)
    return Ranks(dist.get_rank(), dist.get_world_size(), step_group)


def _leave() -> None:
    """End the threads of the backend, which could abort the process if they outlived the
    interpreter."""
    if dist.is_initialized():
        dist.destroy_process_group()


def is_first_failure() -> bool:
    """Whether no other rank has failed before this one; one error message is enough.

    The ranks count their failures in the store of ``torchrun``, which outlives them.
    """
    signal.signal(signal.SIGTERM, signal.SIG_IGN)  # this process is ending
    host, port = os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"])
    attempt = os.environ.get("TORCHELASTIC_RESTART_COUNT", "0")
    try:
        store = dist.TCPStore(  # type: ignore[attr-defined]
            host, port, is_master=False, timeout=timedelta(seconds=5)
        )
        return store.add(f"eegnn/failed/{attempt}", 1) == 1
    except RuntimeError:  # the store is gone: a message printed twice is better than none
        return True


def _raise_rank_lost(signum: int, frame: Any) -> None:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)  # once is enough
    raise RankLost


@contextmanager
def _raising_rank_lost() -> Iterator[None]:
    """Turn an error of gloo or NCCL (a closed connection, or no answer in time) into
    :class:`RankLost`."""
    try:
        yield
    except RankLost:
        raise
    except RuntimeError as error:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        raise RankLost from error
