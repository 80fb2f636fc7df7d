"""The outer non-linearity σ₁ of the paper, ReLU∘tanh, and the alternatives of its ablation."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from eegnn._tracing import is_traced


class _ReLUTanh(torch.autograd.Function):
    """In place; keeps only the output, from which the derivative follows: 1 - y² where y > 0.

    Written by hand, since ``torch.tanh`` takes five times as long on a CPU, and autograd would keep
    two more matrices a layer.
    """

    @staticmethod
    def forward(ctx: Any, z: Tensor) -> Tensor:
        if z.dtype == torch.float32:
            # tanh(z) = 2σ(2z) - 1. The error is absolute, below 2e-7 (so what is smaller may become
            # 0); float64 takes the exact way.
            y = z.mul_(2).sigmoid_().mul_(2).sub_(1).relu_()
        else:
            y = z.tanh_().relu_()
        ctx.mark_dirty(z)
        ctx.save_for_backward(y)
        return y

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Tensor:
        (y,) = ctx.saved_tensors
        # Two fused kernels, a tenth of the time of where(y > 0, grad * (1 - y * y), 0).
        return torch.ops.aten.threshold_backward(torch.ops.aten.tanh_backward(grad, y), y, 0)


def relu_tanh(z: Tensor) -> Tensor:
    r"""Return :math:`\mathrm{ReLU}(\tanh(z))`, the :math:`\sigma_1` of the paper (Corollary 1)."""
    return _relu_tanh_(z.clone())


def _relu_tanh_(z: Tensor) -> Tensor:
    if is_traced():  # the compiler fuses the two by itself
        return z.tanh().relu()
    return _ReLUTanh.apply(z)


def identity(z: Tensor) -> Tensor:
    """Return ``z`` as it is, for the ablation without an activation."""
    return z


ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "relu_tanh": relu_tanh,
    "relu": torch.relu,
    "tanh": torch.tanh,
    "identity": identity,
}
#: The same in the memory of the argument, which must not be used again.
IN_PLACE: dict[str, Callable[[Tensor], Tensor]] = {
    "relu_tanh": _relu_tanh_,
    "relu": torch.relu_,
    "tanh": torch.tanh_,
    "identity": identity,
}
