"""Ranks: the processes, started by ``torchrun``, that train one model on many graphs together."""

from __future__ import annotations

import logging
import os
import signal
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from itertools import zip_longest
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import torch
import torch.distributed
from torch import Tensor, nn
from torch.nn.utils import parameters_to_vector, vector_to_parameters

from eegnn.train.launched import started_together

if TYPE_CHECKING:
    from lightning_fabric import Fabric

T = TypeVar("T")

#: So long one rank waits for another in training; a machine that lost power says nothing.
TIMEOUT = timedelta(seconds=45)
#: So long it waits before and after, while programs start and data are fetched and prepared.
PATIENCE = timedelta(hours=12)


class RankLost(RuntimeError):
    """Another process of the job has died, or the job was told to end."""

    def __init__(self) -> None:
        super().__init__(
            "a process of this job has died, or the job was stopped; --resume goes on after the "
            "last finished epoch, with any number of processes"
        )


class Ranks:
    """A process and those it trains with.

    Every rank draws the same batches and takes its share of each; losses and gradients are those
    of the whole batch, so all ranks take the same step. Only rank 0 reads and writes the run.

    Args:
        fabric: launched; ``None`` for a process on its own, which sends nothing and gets back
            what it gives, bit by bit.
    """

    def __init__(self, fabric: Fabric | None = None) -> None:
        self._fabric = fabric
        self.rank = 0 if fabric is None else fabric.global_rank
        self.size = 1 if fabric is None else fabric.world_size
        if fabric is not None:
            self._quick = torch.distributed.new_group(backend="gloo", timeout=TIMEOUT)

    @property
    def leads(self) -> bool:
        """Whether it is rank 0, who alone reads and writes files and gives warnings."""
        return self.rank == 0

    def share(self, items: Any) -> Any:
        """Every ``size``-th of a sequence or tensor, from ``rank`` on."""
        return items[self.rank :: self.size]

    def collect(self, own: Sequence[T]) -> list[T]:
        """Put what each rank made of its :meth:`share` together, in the order of the whole."""
        if self._fabric is None:
            return list(own)
        turns = zip_longest(*self.gather(list(own)))
        return [item for turn in turns for item in turn if item is not None]

    def gather(self, own: T) -> list[T]:
        """Return what all ranks have, on each of them."""
        if self._fabric is None:
            return [own]
        found: list[Any] = [None] * self.size
        with _together():
            torch.distributed.all_gather_object(found, own, self._quick)
        return found

    def first(self, function: Callable[[], T]) -> T:
        """Call the function on rank 0 alone, and return its value on all ranks."""
        if self._fabric is None:
            return function()
        value = function() if self.leads else None
        with _together():
            return self._fabric.broadcast(value)  # type: ignore[return-value]

    def after_each_other(self, function: Callable[[], T]) -> T:
        """Call the function on one rank of each machine, which may download, then on the others."""
        if self._fabric is None:
            return function()
        found = None
        for turn in (True, False):
            if (self._fabric.local_rank == 0) == turn:
                found = function()
            with _together():
                self._fabric.barrier()
        return found  # type: ignore[return-value]

    def sum(self, own: Tensor) -> Tensor:
        """Add up over ranks, without gradients."""
        if self._fabric is None:
            return own
        with _together():
            summed = self._fabric.all_reduce(own.detach().clone(), self._quick, "sum")
        return summed  # type: ignore[return-value]

    def means(self, *counts: int) -> list[Mean]:
        """Return, for each number of own units, how to take averages over those of all ranks."""
        totals = self.sum(torch.tensor(counts)).tolist()
        return [
            Mean(self, own / max(total, 1), total)
            for own, total in zip(counts, totals, strict=True)
        ]

    def sum_gradients(self, parameters: Iterable[nn.Parameter]) -> None:
        """Add up gradients over ranks; what has none on any rank is left without.

        A sum after the backward pass, and no DistributedDataParallel: that averages over ranks, and
        it must know beforehand which parameters a pass leaves out, which here the data decide.
        """
        if self._fabric is None:
            return
        everything = list(parameters)
        present = torch.tensor([p.grad is not None for p in everything]).float()
        gradients = [torch.zeros_like(p) if p.grad is None else p.grad for p in everything]
        summed = self.sum(torch.cat([parameters_to_vector(gradients), present]))
        vector_to_parameters(summed[: -len(everything)], gradients)
        anywhere = summed[-len(everything) :] > 0
        for parameter, gradient, some in zip(everything, gradients, anywhere, strict=True):
            parameter.grad = gradient if some else None

    def average_buffers(self, model: nn.Module) -> None:
        """Average running statistics, which each rank has from its own graphs."""
        if self._fabric is None:
            return
        for buffer in model.buffers():
            if buffer.is_floating_point():
                buffer.copy_(self.sum(buffer) / self.size)

    def seed(self, seed: int, epoch: int) -> None:
        """Give each rank random numbers of its own for dropout and exits."""
        state = np.random.SeedSequence((seed, epoch, self.rank)).generate_state(1, np.uint64)
        torch.manual_seed(int(state[0]))

    def __repr__(self) -> str:
        return f"Ranks(rank={self.rank}, size={self.size})"


@dataclass(frozen=True)
class Mean:
    r"""Averages over the units of all ranks.

    .. math::
        \bar{v} = \sum_r \frac{n_r}{N} v_r,
        \qquad v_r \text{ the average over the } n_r \text{ units of rank } r

    The value is :math:`\bar{v}` on each rank, the gradient that of the own term: summed over ranks,
    gradients are those of :math:`\bar{v}`, and of any function of it such as its logarithm.

    Args:
        ranks: those who average.
        share: :math:`n_r / N`.
        total: :math:`N`.
    """

    ranks: Ranks
    share: float
    total: int

    def __call__(self, own: Tensor) -> Tensor:
        """Return the average over all ranks, from that over the own units."""
        if self.ranks.size == 1:
            return own
        term = own * self.share
        return term + (self.ranks.sum(term) - term.detach())


#: A process on its own.
ALONE = Ranks()


def join() -> Ranks:
    """Meet the other processes; on its own, a process meets nobody.

    Raises:
        ImportError: Lightning Fabric is missing.
    """
    if not started_together():
        return ALONE
    try:
        from lightning_fabric import Fabric
        from lightning_fabric.plugins.environments.torchelastic import TorchElasticEnvironment
        from lightning_fabric.strategies.ddp import DDPStrategy
    except ImportError as error:
        raise ImportError(
            "training with torchrun needs lightning-fabric: pip install 'eegnn[distributed]'"
        ) from error
    logging.getLogger("lightning_fabric").setLevel(logging.ERROR)
    # torchrun ends the others when one has died: they are to say so instead of just ending.
    signal.signal(signal.SIGTERM, _told_to_end)
    here = int(os.environ["LOCAL_WORLD_SIZE"])
    fabric = Fabric(
        accelerator="cpu",
        devices=here,
        num_nodes=int(os.environ["WORLD_SIZE"]) // here,
        strategy=DDPStrategy(process_group_backend="gloo", timeout=PATIENCE),
        plugins=TorchElasticEnvironment(),
    )
    with _together():
        fabric.launch()
        return Ranks(fabric)


def fails_first() -> bool:
    """Whether no other rank has failed before; who did has said why, and one message is enough.

    The ranks count themselves in the store of ``torchrun``, which outlives them.
    """
    signal.signal(signal.SIGTERM, signal.SIG_IGN)  # it is ending
    host, port = os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"])
    attempt = os.environ.get("TORCHELASTIC_RESTART_COUNT", "0")
    try:
        store = torch.distributed.TCPStore(  # type: ignore[attr-defined]
            host, port, is_master=False, timeout=timedelta(seconds=5)
        )
        return store.add(f"eegnn/failed/{attempt}", 1) == 1
    except RuntimeError:  # the store has gone: better twice than never
        return True


def _told_to_end(number: int, frame: Any) -> None:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)  # once is enough
    raise RankLost


@contextmanager
def _together() -> Iterator[None]:
    try:
        yield
    except RankLost:
        raise
    except RuntimeError as error:  # of gloo: the connection was closed, or nobody answered
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        raise RankLost from error
