"""A step that keeps its input alone for the backward pass, and computes the rest again there."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable
from torch.utils.checkpoint import checkpoint

from eegnn.graph import Adjacency
from eegnn.nn.activations import relu_tanh
from eegnn.nn.sas import SASStep


def advance_again(step: Any, h: Tensor, adj: Adjacency, tau: Tensor | float) -> Tensor:
    r"""Return :math:`\mathbf{H} + \tau\,\Delta\mathbf{H}`, keeping :math:`\mathbf{H}` alone.

    The paper's step has its own backward pass, which computes again in place what the forward
    pass made; any other goes through :func:`torch.utils.checkpoint.checkpoint`.

    Args:
        step: called as ``step(h, adj)``.
        h: states ``[n, m']``.
        adj: the graph.
        tau: ``[n]``, or one number.
    """
    if isinstance(step, SASStep) and step.is_plain(h):
        return _Again.apply(h, step.omega, step.weight, step.edge_term, tau, adj)
    return checkpoint(_advance, step, h, adj, tau, use_reentrant=False)


def _advance(step: Any, h: Tensor, adj: Adjacency, tau: Tensor | float) -> Tensor:
    delta = step(h, adj).to(h.dtype)
    if isinstance(tau, Tensor):
        return torch.addcmul(h, tau.unsqueeze(-1), delta)
    return torch.add(h, delta, alpha=tau)


class _Again(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        h: Tensor,
        omega: Tensor,
        weight: Tensor,
        term: Tensor | None,
        tau: Tensor | float,
        adj: Adjacency,
    ) -> Tensor:
        ctx.adj = adj
        ctx.number = None if isinstance(tau, Tensor) else tau
        ctx.save_for_backward(h, omega, weight, term, tau if isinstance(tau, Tensor) else None)
        _, _, y = _parts(h, omega, weight, term, adj)
        if isinstance(tau, Tensor):
            return torch.addcmul(h, tau.unsqueeze(-1), y)
        return torch.add(h, y, alpha=tau)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        h, omega, weight, term, tau = ctx.saved_tensors
        around, inner, y = _parts(h, omega, weight, term, ctx.adj)
        by_tau = None
        if tau is None:
            by_z = grad * ctx.number
        else:
            by_z = grad * tau.unsqueeze(-1)
            if ctx.needs_input_grad[4]:
                by_tau = torch.linalg.vecdot(grad, y)
        by_z = torch.ops.aten.tanh_backward(by_z, y)
        by_z = torch.ops.aten.threshold_backward(by_z, y, 0)
        by_inner = torch.ops.aten.threshold_backward(by_z, inner, 0)
        # Ā is symmetric: (Ā H W)' to H is Ā (g Wᵀ).
        by_h = torch.addmm(grad, by_inner, omega.T, alpha=-1)
        by_h += ctx.adj.propagate(by_z @ weight.T, "sym")
        by_omega = (by_inner.T @ h).T.neg()
        by_weight = (by_z.T @ around).T
        return by_h, by_omega, by_weight, by_z if term is not None else None, by_tau, None


def _parts(
    h: Tensor, omega: Tensor, weight: Tensor, term: Tensor | None, adj: Adjacency
) -> tuple[Tensor, Tensor, Tensor]:
    """ĀH, ReLU(HΩ) and ΔH."""
    inner = torch.mm(h, omega).relu_()
    around = adj.propagate(h, "sym")
    z = torch.addmm(inner, around, weight, beta=-1)
    if term is not None:
        z += term if adj.nodes is None else term[adj.nodes]
    return around, inner, relu_tanh(z)
