"""A step that keeps its input alone for the backward pass, and computes the rest again there."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable
from torch.utils.checkpoint import checkpoint

from eegnn.graph import Adjacency
from eegnn.nn.activations import relu_tanh
from eegnn.nn.compiled import kernels_for
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
        return _Again.apply(h, step.omega, step.weight, step.edge_term, tau, adj, step)
    return checkpoint(_advance, step, h, adj, tau, use_reentrant=False)


def advanced(step: SASStep, h: Tensor, adj: Adjacency, tau: Tensor | float) -> Tensor:
    """The same without gradients, in few passes over memory."""
    if h.dtype == torch.float32 and step.is_plain(h):
        h = h.clone()
        step.advance_(h, adj, tau)
        return h
    return _advance(step, h, adj, tau)


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
        step: SASStep,
    ) -> Tensor:
        ctx.adj = adj
        ctx.number = None if isinstance(tau, Tensor) else tau
        ctx.save_for_backward(h, omega, weight, term, tau if isinstance(tau, Tensor) else None)
        return advanced(step, h, adj, tau)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        h, omega, weight, term, tau = ctx.saved_tensors
        found = step_gradients(
            h, omega, weight, term, ctx.number if tau is None else tau, ctx.adj, grad
        )
        return *found, None, None


def step_gradients(
    h: Tensor,
    omega: Tensor,
    weight: Tensor,
    term: Tensor | None,
    tau: Tensor | float,
    adj: Adjacency,
    grad: Tensor,
) -> tuple[Tensor, Tensor, Tensor, Tensor | None, Tensor | None]:
    r"""What the gradient of :math:`\mathbf{H} + \tau\,\Delta\mathbf{H}` makes of itself.

    Args:
        h, adj, tau: as in :func:`advance_again`.
        omega, weight, term: what a :class:`~eegnn.nn.sas.SASStep` that is plain was bound to.
        grad: of the new states.

    Returns:
        The gradients of ``h``, ``omega``, ``weight``, ``term`` and ``tau``.
    """
    around = adj.propagate(h, "sym")
    by_inner, by_z, by_tau = _by_products(h @ omega, around @ weight, term, tau, adj, grad)
    # Ā is symmetric: (Ā H W)' to H is Ā (g Wᵀ).
    by_h = torch.addmm(grad, by_inner, omega.T, alpha=-1)
    by_h += adj.propagate(by_z @ weight.T, "sym")
    by_omega = (by_inner.T @ h).T.neg()
    by_weight = (by_z.T @ around).T
    return by_h, by_omega, by_weight, None if term is None else by_z, by_tau


def _by_products(
    inner: Tensor,
    z: Tensor,
    term: Tensor | None,
    tau: Tensor | float,
    adj: Adjacency,
    grad: Tensor,
) -> tuple[Tensor, Tensor, Tensor | None]:
    """The gradients of ReLU(HΩ), of z and of τ, from the products HΩ and ĀHW; in their place."""
    if term is not None:
        z += term if adj.nodes is None else term[adj.nodes]
    kernels = kernels_for(z)
    if kernels is not None:
        steps = tau if isinstance(tau, Tensor) else z.new_full((z.size(0),), tau)
        by_tau = torch.empty_like(steps)
        given = (inner, z, steps.contiguous(), grad.contiguous(), by_tau)
        kernels.go_back(z.numel(), *(t.numpy() for t in given))
        return inner, z, by_tau if isinstance(tau, Tensor) else None
    inner.relu_()
    y = relu_tanh(z.sub_(inner))
    by_z = grad * (tau.unsqueeze(-1) if isinstance(tau, Tensor) else tau)
    by_z = torch.ops.aten.tanh_backward(by_z, y)
    by_z = torch.ops.aten.threshold_backward(by_z, y, 0)
    by_inner = torch.ops.aten.threshold_backward(by_z, inner, 0)
    return by_inner, by_z, torch.linalg.vecdot(grad, y) if isinstance(tau, Tensor) else None
