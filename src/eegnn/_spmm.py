"""Sparse matrix times dense matrix, as one operator that autograd and the compiler know."""

from __future__ import annotations

import warnings
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import embedding_bag

from eegnn._tracing import is_traced

# A registered operator, so that torch.compile keeps it as one opaque node instead of breaking the
# graph at the sparse tensor. Without the compiler an autograd.Function does the same: the way of an
# operator through the dispatcher takes longer than the product with a small graph.
_LIBRARY = torch.library.Library("eegnn", "DEF")
_LIBRARY.define(
    "spmm(Tensor rowptr, Tensor col, Tensor value, Tensor transposed, Tensor x) -> Tensor"
)


#: Types of devices that multiply CSR matrices. On others, such as MPS, rows are gathered and added.
CSR_DEVICES = {"cpu", "cuda"}
#: From this many columns on, the kernel of embedding_bag is the faster one.
BAG_WIDTH = 16


def multiply_csr(rowptr: Tensor, col: Tensor, value: Tensor, x: Tensor) -> Tensor:
    """Multiply a CSR matrix, of any number of columns, by ``x``, which autograd does not see."""
    shape = (rowptr.numel() - 1, x.size(0))
    if value.numel() == 0 or x.numel() == 0:  # MKL refuses empty operands
        return x.new_zeros(shape[0], *x.shape[1:])
    single = x.dtype == torch.float32 and x.device.type == "cpu"
    if single and x.dim() == 2 and x.size(1) >= BAG_WIDTH:
        # A sparse product is a bag of weighted rows, and PyTorch's kernel for bags fetches rows
        # ahead: with 32 columns it took 0.3 of the time of MKL's sparse product on the graph of
        # Tolokers and 0.5 on that of Minesweeper; with fewer than 16 columns MKL's is as fast.
        return embedding_bag(
            col, x, rowptr, mode="sum", per_sample_weights=value, include_last_offset=True
        )
    if x.device.type not in CSR_DEVICES:
        return gather_add(_rows(rowptr, col), col, value, x, shape[0])
    parts = (rowptr, col, value, shape)
    matrix = torch.sparse_csr_tensor(*parts, device=x.device, check_invariants=False)
    if not torch.is_autocast_enabled(x.device.type):
        return matrix @ x
    with torch.autocast(x.device.type, enabled=False):  # MKL has no bfloat16
        return matrix @ x


def _kernel(rowptr: Tensor, col: Tensor, value: Tensor, transposed: Tensor, x: Tensor) -> Tensor:
    return multiply_csr(rowptr, col, value, x)


def gather_add(row: Tensor, col: Tensor, value: Tensor, x: Tensor, num_rows: int) -> Tensor:
    """Return the same product by operators that every device, exporter and transform has."""
    terms = x.index_select(0, col) * value.view(-1, *[1] * (x.dim() - 1))
    return sum_rows(row, terms, num_rows)


def sum_rows(row: Tensor, terms: Tensor, num_rows: int) -> Tensor:
    """Sum terms ``[E, ...]`` that have the same row, ``[E]``, to ``[num_rows, ...]``.

    ``index_add`` would become ScatterND in ONNX, and with several threads ONNX Runtime loses some
    of its sums (microsoft/onnxruntime#18048, #23396); ``scatter_add`` becomes ScatterElements.
    """
    index = row.long().view(-1, *[1] * (terms.dim() - 1)).expand_as(terms)
    return terms.new_zeros(num_rows, *terms.shape[1:]).scatter_add(0, index, terms)


def _rows(rowptr: Tensor, col: Tensor) -> Tensor:
    """Return the row of each CSR entry."""
    return torch.repeat_interleave(rowptr.diff(), output_size=col.numel())


def _fake(rowptr: Tensor, col: Tensor, value: Tensor, transposed: Tensor, x: Tensor) -> Tensor:
    return x.new_empty(rowptr.numel() - 1, *x.shape[1:])


def _save(ctx: Any, inputs: tuple[Tensor, ...], output: Tensor) -> None:
    # x is needed for the gradient of the values alone, and they mostly are constants.
    ctx.save_for_backward(*inputs[:4], inputs[4] if ctx.needs_input_grad[2] else None)


def _backward(ctx: Any, grad: Tensor) -> tuple[None, None, Tensor | None, None, Tensor | None]:
    rowptr, col, value, transposed, x = ctx.saved_tensors
    by_value = by_x = None
    if ctx.needs_input_grad[2]:
        by_value = _dot_entries(rowptr, col, grad, x)
    if ctx.needs_input_grad[4]:
        by_x = spmm(rowptr, col, transposed, value, grad)
    return None, None, by_value, None, by_x


def _dot_entries(rowptr: Tensor, col: Tensor, left: Tensor, right: Tensor) -> Tensor:
    """Of each CSR entry, the product of its row of ``left`` and its row, by column, of ``right``.

    Rows are not copied where PyTorch has a kernel for it, which cannot be differentiated again: on
    the graph of Tolokers with 32 columns it took 7 ms instead of 250 ms.
    """
    if (
        left.device.type == "cpu"
        and left.dim() == 2
        and col.numel()
        and not torch.is_grad_enabled()
    ):
        shape = (rowptr.numel() - 1, right.size(0))
        zeros = left.new_zeros(col.numel())
        entries = torch.sparse_csr_tensor(rowptr, col, zeros, shape, check_invariants=False)
        return torch.sparse.sampled_addmm(entries, left, right.T).values()
    found = left.index_select(0, _rows(rowptr, col)) * right.index_select(0, col)
    return found.sum(dim=-1) if right.dim() == 2 else found


_LIBRARY.impl("spmm", _kernel, "CompositeExplicitAutograd")
torch.library.register_fake("eegnn::spmm", _fake, lib=_LIBRARY)
torch.library.register_autograd("eegnn::spmm", _backward, setup_context=_save, lib=_LIBRARY)


class _Spmm(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, *inputs: Tensor) -> Tensor:
        _save(ctx, inputs, inputs[-1])
        return _kernel(*inputs)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[None, None, Tensor | None, None, Tensor | None]:
        return _backward(ctx, grad)


def spmm(rowptr: Tensor, col: Tensor, value: Tensor, transposed: Tensor, x: Tensor) -> Tensor:
    """Multiply a CSR matrix by ``x``, ``[n, d]`` or ``[n]``; differentiable in ``x`` and ``value``.

    ``transposed`` are the values of the transposed matrix in the order of the same structure,
    which therefore must be symmetric wherever a gradient is wanted.
    """
    inputs = (rowptr, col, value, transposed, x.contiguous())
    if is_traced():
        if torch.compiler.is_compiling():
            return torch.ops.eegnn.spmm(*inputs)
        return gather_add(_rows(rowptr, col), col, value, x, rowptr.numel() - 1)
    if not (torch.is_grad_enabled() and (x.requires_grad or value.requires_grad)):
        return _kernel(*inputs)
    return _Spmm.apply(*inputs)


with warnings.catch_warnings():  # torch says once a process that CSR tensors are in beta
    warnings.simplefilter("ignore")
    torch.sparse_csr_tensor(torch.tensor([0, 1]), torch.tensor([0]), torch.ones(1), (1, 1))
