"""What is minimised."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from torch import Tensor
from torch.nn.functional import (
    binary_cross_entropy_with_logits,
    cross_entropy,
    l1_loss,
    mse_loss,
)

from eegnn.train.batches import Units


def _same(value: Tensor) -> Tensor:
    return value


def _log10(value: Tensor) -> Tensor:
    return value.clamp(min=1e-12).log10()


@dataclass(frozen=True)
class Loss:
    """A loss of each unit, averaged over units, and a function of that average.

    Args:
        unit: as in :mod:`torch.nn.functional`.
        outer: what is done with the average, such as log10 for the loss of the ECHO benchmark.
    """

    unit: Callable[..., Tensor]
    outer: Callable[[Tensor], Tensor] = _same

    def __call__(
        self, out: Tensor, units: Units, mean: Callable[[Tensor], Tensor] = _same
    ) -> Tensor:
        """Return a scalar, for the output of all units.

        Args:
            out: of a model, for these units.
            units: those of one rank.
            mean: from the average over these to that over the units of all ranks.
        """
        return self.outer(mean(self.unit(units.of(out), units.labels)))


_OF_TASK: dict[str, Callable[..., Tensor]] = {
    "classification": cross_entropy,
    "multilabel": binary_cross_entropy_with_logits,
    "regression": mse_loss,
}
_BY_NAME: dict[str, tuple[Callable[..., Tensor], Callable[[Tensor], Tensor]]] = {
    "mse": (mse_loss, _same),
    "l1": (l1_loss, _same),
    "log10_mse": (mse_loss, _log10),
}


def choose_loss(name: str, task: str) -> Loss:
    """Return the loss; ``"auto"`` is the usual one of the task."""
    if name == "auto":
        return Loss(_OF_TASK[task])
    if task != "regression":
        raise ValueError(f"loss={name!r} is for regression, but the task is {task}")
    return Loss(*_BY_NAME[name])
