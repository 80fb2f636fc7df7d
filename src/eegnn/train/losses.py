"""The losses that training minimises, one for each task."""

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

from eegnn.train.batches import MiniBatch


@dataclass(frozen=True)
class Loss:
    """A loss of each unit, averaged over units; with ``log10``, the logarithm of the average.

    The logarithm is the loss of the ECHO benchmark. ``unit`` is as in :mod:`torch.nn.functional`.
    """

    unit: Callable[..., Tensor]
    log10: bool = False

    def __call__(
        self, out: Tensor, batch: MiniBatch, mean: Callable[[Tensor], Tensor] | None = None
    ) -> Tensor:
        """Return a scalar, from outputs for all units of the batch.

        ``mean`` maps the average over this batch to that over the batches of all ranks.
        """
        out = batch.select(out)
        loss = self.unit(out, _fit(batch.labels, out, self.unit is cross_entropy))
        if mean is not None:
            loss = mean(loss)
        return loss.clamp(min=1e-12).log10() if self.log10 else loss


def _fit(labels: Tensor, out: Tensor, classes: bool) -> Tensor:
    """Return labels in the shape that goes with outputs ``[B, C]``: PyTorch's losses broadcast.

    Labels are ``[B]`` where they are the numbers of ``classes``; else they are ``[B, C]``.
    """
    wanted = out.shape[:1] if classes else out.shape
    if labels.shape == wanted:
        return labels
    if labels.shape in (out.shape[:1], (len(out), 1)) and labels.numel() == wanted.numel():
        return labels.view(wanted)
    raise ValueError(f"y must have shape {list(wanted)}, got {list(labels.shape)}")


_OF_TASK = {
    "classification": Loss(cross_entropy),
    "multilabel": Loss(binary_cross_entropy_with_logits),
    "regression": Loss(mse_loss),
}
_BY_NAME = {"mse": Loss(mse_loss), "l1": Loss(l1_loss), "log10_mse": Loss(mse_loss, log10=True)}


def choose_loss(name: str, task: str) -> Loss:
    """Return the loss; ``"auto"`` is the usual one of the task."""
    if name == "auto":
        return _OF_TASK[task]
    if task != "regression":
        raise ValueError(f"loss={name!r} is for regression, but the task is {task}")
    return _BY_NAME[name]
