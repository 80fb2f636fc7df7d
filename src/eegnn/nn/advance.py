r"""One step with gradients, :math:`\mathbf{H} + \tau\,\Delta\mathbf{H}`.

Autograd keeps all that is made on the way to :math:`\Delta\mathbf{H}`. In training the paper's step
goes another way: by the compiled kernels, which keep :math:`\Delta\mathbf{H}` alone besides the
states and take a third of the time; or with ``recompute``, which keeps the states alone, or as
many numbers that lead to them.
"""

from __future__ import annotations

import copy
from types import ModuleType
from typing import Any, Literal

import torch
from torch import Tensor
from torch.utils.checkpoint import checkpoint

from eegnn.graph import Adjacency
from eegnn.nn.activations import relu_tanh
from eegnn.nn.compiled import kernels_for
from eegnn.nn.sas_conv import SASStep

#: What of a step is kept for the way back.
Keep = Literal["delta", "move"]


def advance(
    step: Any, h: Tensor, adj: Adjacency, tau: Tensor | float, recompute: bool = False
) -> Tensor:
    r"""Return :math:`\mathbf{H} + \tau\,\Delta\mathbf{H}`.

    Args:
        step: called as ``step(h, adj)``.
        h: states ``[n, m']``.
        adj: the graph.
        tau: ``[n]``, or one number.
        recompute: keep no more than ``h`` for the backward pass, and compute the rest again there.
    """
    if torch.is_grad_enabled():
        plain = isinstance(step, SASStep) and step.is_plain(h)
        if plain and (recompute or (step.conv.training and _has_kernels(h, adj))):
            given = (step.omega, step.weight, step.edge_term)
            return _Advance.apply(h, *given, tau, adj, step, recompute)
        if recompute:
            return checkpoint(_advance, step, h, adj, tau, use_reentrant=False)
    return _advance(step, h, adj, tau)


def moved(step: SASStep, h: Tensor, adj: Adjacency, tau: Tensor | float) -> tuple[Tensor, Tensor]:
    r"""The same without gradients, and the move :math:`\tau\,\Delta\mathbf{H}`.

    The move is as large as a state and leads back to it, see :func:`before`. That of the paper's
    step, which is never negative, has a minus where HΩ is positive: then all is known that its
    gradients need.
    """
    if not step.is_plain(h):
        move = _times(tau, step(h, adj).to(h.dtype))
        return h + move, move
    if _has_kernels(h, adj):
        return _walk(step, h, adj, tau, "move")
    y, positive = _activated(step, h, adj)
    move = _times(tau, y)
    return h + move, torch.where(positive, -move, move)


def before(step: SASStep, h: Tensor, adj: Adjacency, move: Tensor) -> Tensor:
    """The states before a move, up to rounding, from those after it."""
    if not step.is_plain(h):
        return h - move
    kernels = kernels_for(h)
    if kernels is None or not _has_kernels(h, adj):
        return h - move.abs()
    old = torch.empty_like(h)
    kernels.before(h.numel(), h.numpy(), move.numpy(), old.numpy())
    return old


def _advanced(step: SASStep, h: Tensor, adj: Adjacency, tau: Tensor | float) -> Tensor:
    """A plain step without gradients, in few passes over memory."""
    if _has_kernels(h, adj):
        return _walk(step, h, adj, tau, None)[0]
    h = h.clone()
    step.advance_(h, adj, tau)
    return h


def _advance(step: Any, h: Tensor, adj: Adjacency, tau: Tensor | float) -> Tensor:
    delta = step(h, adj).to(h.dtype)
    if isinstance(tau, Tensor):
        return torch.addcmul(h, tau.unsqueeze(-1), delta)
    return torch.add(h, delta, alpha=tau)


class _Advance(torch.autograd.Function):
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
        recompute: bool,
    ) -> Tensor:
        ctx.adj, ctx.step = adj, step
        ctx.number = None if isinstance(tau, Tensor) else tau
        new, kept = (
            (_advanced(step, h, adj, tau), None) if recompute else _walk(step, h, adj, tau, "delta")
        )
        steps = tau if isinstance(tau, Tensor) else None
        ctx.save_for_backward(h, omega, weight, term, steps, kept)
        return new

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        h, omega, weight, term, tau, kept = ctx.saved_tensors
        tau = ctx.number if tau is None else tau
        if torch.is_grad_enabled():  # for gradients of gradients
            given = (h, omega, weight, term, tau)
            return *_by_autograd(ctx.step, ctx.adj, given, grad), None, None, None
        return *step_gradients(ctx.step, h, ctx.adj, tau, grad, kept), None, None, None


def _by_autograd(
    step: SASStep, adj: Adjacency, given: tuple[Any, ...], grad: Tensor
) -> list[Tensor | None]:
    """The gradients of what a step was given, with graphs of their own."""
    # Other names for the same: h was made of Ω and W too, and that way does not belong here.
    given = tuple(t.view_as(t) if isinstance(t, Tensor) else t for t in given)
    h, *bound, tau = given
    step = copy.copy(step)
    step.omega, step.weight, step.edge_term = bound
    wanted = [t for t in given if isinstance(t, Tensor) and t.requires_grad]
    found = torch.autograd.grad(_advance(step, h, adj, tau), wanted, grad, create_graph=True)
    by = {id(tensor): gradient for tensor, gradient in zip(wanted, found, strict=True)}
    return [by.get(id(tensor)) for tensor in given]


def _has_kernels(h: Tensor, adj: Adjacency) -> bool:
    """Whether all of a graph can take a step by the kernels."""
    return kernels_for(h) is not None and adj.inner == h.size(0) and h.numel() > 0


def _walk(
    step: SASStep, h: Tensor, adj: Adjacency, tau: Tensor | float, keep: Keep | None
) -> tuple[Tensor, Tensor]:
    """New states, and to ``keep`` ΔH or τΔH with a minus where HΩ is positive."""
    kernels = kernels_for(h)
    assert kernels is not None
    h = h.contiguous()
    new, kept = torch.empty_like(h), h.new_empty(h.size(0) if keep else 0, h.size(1))
    kernels.walk(
        h.numel(),
        h.numpy(),
        _board(kernels, h).numpy(),
        step.structure(kernels, h, adj),
        *step.panels(kernels),
        _rows_of(tau, h).numpy(),
        keep == "move",
        new.numpy(),
        kept.numpy(),
    )
    return new, kept


def step_gradients(
    step: SASStep,
    h: Tensor,
    adj: Adjacency,
    tau: Tensor | float,
    grad: Tensor,
    kept: Tensor | None = None,
    kind: Keep = "delta",
) -> tuple[Tensor, Tensor, Tensor, Tensor | None, Tensor | None]:
    r"""What the gradient of :math:`\mathbf{H} + \tau\,\Delta\mathbf{H}` makes of itself.

    Args:
        step: a plain one, see :meth:`~eegnn.nn.sas_conv.SASStep.is_plain`.
        h, adj, tau: as in :func:`advance`.
        grad: of the new states.
        kept: by the step, of this ``kind``; else the step is taken again.

    Returns:
        The gradients of ``h``, Ω, W, the edge term and ``tau``.
    """
    if not _has_kernels(h, adj):
        return _gradients(step, h, adj, tau, grad, kept)
    kernels = kernels_for(h)
    assert kernels is not None
    h, grad = h.contiguous(), grad.contiguous()
    n, width = h.shape
    board, both, by_h = _board(kernels, h), h.new_empty(n, 2 * width), torch.empty_like(h)
    steps, by_tau = _rows_of(tau, h), h.new_empty(n)
    graph, back = step.structure(kernels, h, adj), step.panels_back(kernels)
    found = [t.numpy() for t in (board, both, by_h, by_tau)]
    if kept is None:
        given = [t.numpy() for t in (h, steps, grad, _board(kernels, h))]
        kernels.go_back_again(h.numel(), *given, graph, *step.panels(kernels), *back, *found)
    else:
        given = [t.numpy() for t in (kept, steps)]
        kernels.go_back(h.numel(), *given, kind == "move", grad.numpy(), graph, *back, *found)
    products = both.T @ h
    by_term = None
    if step.edge_term is not None:
        by_term = board[:, :width] / adj.scale(h.dtype).unsqueeze(-1)
    return (
        by_h,
        products[:width].T.neg(),
        products[width:].T,
        by_term,
        by_tau if isinstance(tau, Tensor) else None,
    )


def _rows_of(tau: Tensor | float, h: Tensor) -> Tensor:
    if isinstance(tau, Tensor):
        return tau.detach().contiguous()
    return h.new_full((h.size(0),), tau)


def _board(kernels: ModuleType, h: Tensor) -> Tensor:
    """Where neighbours read, as wide as the kernels want it."""
    return h.new_empty(h.size(0), -(-h.size(1) // kernels.COLUMNS) * kernels.COLUMNS)


def _times(tau: Tensor | float, delta: Tensor) -> Tensor:
    return delta * (tau.unsqueeze(-1) if isinstance(tau, Tensor) else tau)


def _activated(step: SASStep, h: Tensor, adj: Adjacency) -> tuple[Tensor, Tensor]:
    """ΔH of a plain step, and where HΩ is positive."""
    inner, z = (h @ step.omega).relu_(), adj.propagate(h, "sym") @ step.weight
    if step.edge_term is not None:
        z += step.edge_term if adj.nodes is None else step.edge_term[adj.nodes]
    return relu_tanh(z.sub_(inner)), inner > 0


def _gradients(
    step: SASStep,
    h: Tensor,
    adj: Adjacency,
    tau: Tensor | float,
    grad: Tensor,
    move: Tensor | None,
) -> tuple[Tensor, Tensor, Tensor, Tensor | None, Tensor | None]:
    """:func:`step_gradients` by PyTorch alone."""
    if move is None:
        y, positive = _activated(step, h, adj)
    else:
        steps = tau.unsqueeze(-1) if isinstance(tau, Tensor) else h.new_tensor(tau)
        # Who did not move has τ = 0, and the gradient of τ goes nowhere.
        y, positive = (move.abs() / steps).masked_fill(steps == 0, 0.0), move < 0
    by_z = torch.ops.aten.tanh_backward(_times(tau, grad), y)
    by_z = torch.ops.aten.threshold_backward(by_z, y, 0)
    by_inner = by_z * positive
    # Ā is symmetric: of (Ā H W)' Hᵀ(Ā ∂z) goes to W, and (Ā ∂z)Wᵀ to H.
    around = adj.propagate(by_z, "sym")
    by_h = torch.addmm(grad, by_inner, step.omega.T, alpha=-1).addmm_(around, step.weight.T)
    by_tau = torch.linalg.vecdot(grad, y) if isinstance(tau, Tensor) else None
    by_term = None if step.edge_term is None else by_z
    return by_h, (by_inner.T @ h).T.neg(), (around.T @ h).T, by_term, by_tau
