"""Sparse matrix times dense matrix, as one operator that autograd and the compiler know."""

from __future__ import annotations

import warnings
from typing import Any

import torch
from torch import Tensor

# A registered operator and not an autograd.Function, so that torch.compile keeps it as one opaque
# node instead of breaking the graph at the sparse tensor.
_LIBRARY = torch.library.Library("eegnn", "DEF")
_LIBRARY.define(
    "spmm(Tensor rowptr, Tensor col, Tensor value, Tensor transposed, Tensor x) -> Tensor"
)


def _kernel(rowptr: Tensor, col: Tensor, value: Tensor, transposed: Tensor, x: Tensor) -> Tensor:
    shape = (rowptr.numel() - 1, x.size(0))
    if value.numel() == 0 or x.size(1) == 0:  # MKL refuses empty operands
        return x.new_zeros(shape[0], x.size(1))
    with torch.autocast(x.device.type, enabled=False):  # MKL has no bfloat16
        return torch.sparse_csr_tensor(rowptr, col, value, shape, check_invariants=False) @ x


def _fake(rowptr: Tensor, col: Tensor, value: Tensor, transposed: Tensor, x: Tensor) -> Tensor:
    return x.new_empty(rowptr.numel() - 1, x.size(1))


def _save(ctx: Any, inputs: tuple[Tensor, ...], output: Tensor) -> None:
    ctx.save_for_backward(*inputs[:4])


def _backward(ctx: Any, grad: Tensor) -> tuple[None, None, None, None, Tensor]:
    rowptr, col, value, transposed = ctx.saved_tensors
    return None, None, None, None, spmm(rowptr, col, transposed, value, grad)


_LIBRARY.impl("spmm", _kernel, "CompositeExplicitAutograd")
torch.library.register_fake("eegnn::spmm", _fake, lib=_LIBRARY)
torch.library.register_autograd("eegnn::spmm", _backward, setup_context=_save, lib=_LIBRARY)


def spmm(rowptr: Tensor, col: Tensor, value: Tensor, transposed: Tensor, x: Tensor) -> Tensor:
    """Multiply a CSR matrix by ``x``.

    ``transposed`` are the values of the transposed matrix in the order of the same structure,
    which therefore must be symmetric wherever a gradient is wanted.
    """
    return torch.ops.eegnn.spmm(rowptr, col, value, transposed, x.contiguous())


with warnings.catch_warnings():  # torch says once a process that CSR tensors are in beta
    warnings.simplefilter("ignore")
    torch.sparse_csr_tensor(torch.tensor([0, 1]), torch.tensor([0]), torch.ones(1), (1, 1))
