"""The linear map of many rows, by the faster of the two libraries that PyTorch has for it."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from eegnn._tracing import is_traced

#: From this many multiplications on oneDNN, whose calls take 20 µs longer, is the faster one: 4096
#: rows of 32 columns.
MUCH_WORK = 2**22

# PyTorch multiplies matrices in single precision by MKL, which takes twice as long as oneDNN on
# processors that are not Intel's: 10,000 rows of 32 columns took 196 µs and 91 µs on an AMD EPYC.
# This is the operator to which torch.compile turns a linear layer on a CPU.
# It is not part of PyTorch's public interface: where it is missing, MKL does the work.
_ONEDNN = (
    getattr(torch.ops.mkldnn, "_linear_pointwise", None)
    if torch.backends.mkldnn.is_available()
    else None
)


class _Linear(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        ctx.save_for_backward(x, weight)
        return _kernel(x, weight, bias)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        x, weight = ctx.saved_tensors
        by_x, by_weight, by_bias = ctx.needs_input_grad
        return (
            linear(grad, weight.T) if by_x else None,
            grad.T @ x if by_weight else None,
            grad.sum(dim=0) if by_bias else None,
        )


def _kernel(x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    assert _ONEDNN is not None
    # For a part of a larger matrix oneDNN has no kernel but its reference, of 400 ms.
    return _ONEDNN(x.contiguous(), weight.contiguous(), bias, "none", [], "")


def linear(x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    r"""Return :math:`\mathbf{X}\mathbf{W}^\top + \mathbf{b}`, as ``torch.nn.functional.linear``.

    Args:
        x: ``[n, in]``.
        weight: ``[out, in]``, or ``[in]`` for a single output ``[n]``: a product with a vector
            takes an eighth of the time of one with two or three columns.
        bias: ``[out]``, or a number.
    """
    if weight.dim() == 1:
        return x @ weight if bias is None else x @ weight + bias
    if (
        _ONEDNN is None
        or x.dtype != torch.float32
        or x.device.type != "cpu"
        or is_traced()
        or x.size(0) * weight.numel() < MUCH_WORK
        or torch.is_autocast_enabled("cpu")
    ):
        return torch.nn.functional.linear(x, weight, bias)
    if not torch.is_grad_enabled():
        return _kernel(x, weight, bias)
    return _Linear.apply(x, weight, bias)
