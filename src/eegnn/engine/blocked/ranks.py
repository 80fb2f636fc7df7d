"""The processes that share the blocks of one graph."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

import torch.distributed as dist
from torch import Tensor


class Ranks:
    """Those of ``torch.distributed``, or this process alone where that is not in use.

    Args:
        count: how many blocks there are to share: neighbouring numbers go to the same rank.
    """

    def __init__(self, count: int) -> None:
        self.rank = dist.get_rank() if _together() else 0
        self.size = dist.get_world_size() if _together() else 1
        self._count = max(count, 1)

    def owner(self, block: int) -> int:
        """The rank that computes a block."""
        return block * self.size // self._count

    def owns(self, block: int) -> bool:
        """Whether that is this one."""
        return self.owner(block) == self.rank

    def send(self, values: Tensor, block: int) -> None:
        """Let the owner of a block tell all others its values, which are written over there."""
        if self.size > 1:
            dist.broadcast(values, src=self.owner(block))

    def add(self, values: Tensor) -> None:
        """Add up, in place, what the ranks have."""
        if self.size > 1:
            dist.all_reduce(values)


@contextmanager
def joined() -> Iterator[None]:
    """Join the processes that ``torchrun`` started, if it did."""
    if _together() or "TORCHELASTIC_RUN_ID" not in os.environ:
        yield
        return
    dist.init_process_group("gloo")
    try:
        yield
    finally:
        dist.destroy_process_group()


def is_first() -> bool:
    """Whether this process is the one to print and to write files."""
    return not _together() or dist.get_rank() == 0


def _together() -> bool:
    return dist.is_available() and dist.is_initialized()
