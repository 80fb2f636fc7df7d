"""What is minimised."""

from __future__ import annotations

from collections.abc import Callable

from torch import Tensor
from torch.nn.functional import (
    binary_cross_entropy_with_logits,
    cross_entropy,
    l1_loss,
    mse_loss,
)


def log10_mse(out: Tensor, y: Tensor) -> Tensor:
    """Log10 of the mean squared error, the loss of the ECHO benchmark."""
    return mse_loss(out, y).clamp(min=1e-12).log10()


_OF_TASK: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "classification": cross_entropy,
    "multilabel": binary_cross_entropy_with_logits,
    "regression": mse_loss,
}
_BY_NAME: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "mse": mse_loss,
    "l1": l1_loss,
    "log10_mse": log10_mse,
}


def choose_loss(name: str, task: str) -> Callable[[Tensor, Tensor], Tensor]:
    """Return the loss; ``"auto"`` is the usual one of the task."""
    if name == "auto":
        return _OF_TASK[task]
    if task != "regression":
        raise ValueError(f"loss={name!r} is for regression, but the task is {task}")
    return _BY_NAME[name]
