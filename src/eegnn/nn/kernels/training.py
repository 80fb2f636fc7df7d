"""A step of SAS-GNN that can be gone back."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import prange

from eegnn.nn.kernels.machine import BLOCK, Array, F, Kernel, U, inlined, part
from eegnn.nn.kernels.maths import half_relu_tanh
from eegnn.nn.kernels.steps import Structure, products_of, scaled_rows


@part
def _walk(
    p: int,
    parts: int,
    rows: Any,
    states: Any,
    read: Any,
    graph: Any,
    omega: Any,
    weight: Any,
    tau: Any,
    scaled: bool,
    new: Any,
    kept: Any,
    work: Any,
) -> None:
    inner, around = work[p, 1], work[p, 2]
    for lo in range(p * BLOCK, rows.shape[0], parts * BLOCK):
        block = rows[lo : min(lo + BLOCK, rows.shape[0])]
        products_of(block, states, read, graph, omega, weight, work[p])
        for a in range(block.shape[0]):
            i = U(block[a])
            w, t = graph.scale[i], F(2) * tau[i]
            h, v, first, second = states[i], new[i], inner[a], around[a]
            if graph.edge.shape[0] > 0:
                term = graph.edge[i]
                for k in range(term.shape[0]):
                    second[k] += term[k] / w
            if kept.shape[0] > 0:
                y, s = kept[i], t if scaled else F(2)
                for k in range(h.shape[0]):
                    before = first[k]
                    half = half_relu_tanh((F(0) if before < F(0) else before) - w * second[k])
                    v[k] = h[k] + t * half
                    y[k] = -s * half if before > F(0) else s * half
            else:
                for k in range(h.shape[0]):
                    before = first[k]
                    half = half_relu_tanh((F(0) if before < F(0) else before) - w * second[k])
                    v[k] = h[k] + t * half


@Kernel
def walk(
    parts: int,
    states: Array,
    read: Array,
    graph: Structure,
    omega: Array,
    weight: Array,
    tau: Array,
    scaled: bool,
    new: Array,
    kept: Array,
) -> None:
    """:func:`~eegnn.nn.kernels.steps.advance` to ``new``, with all that the way back needs besides
    the states in ``kept`` (nothing, if that has no rows): ΔH, or if ``scaled`` τΔH, which are
    never negative, with a minus where HΩ is positive."""
    rows = np.arange(states.shape[0])
    work = np.empty((parts, 3, BLOCK, read.shape[1]), np.float32)
    for p in prange(parts):
        scaled_rows(p, parts, states, graph.scale, read)
    for p in prange(parts):
        _walk(p, parts, rows, states, read, graph, omega, weight, tau, scaled, new, kept, work)


@inlined
def _through_activation(kept: Any, grad: Any, w: Any, t: Any, s: Any, own: Any, others: Any) -> Any:
    """From what :func:`walk` keeps of a row, divided by ``s``, to the gradient of z: its part
    through ReLU(HΩ) in ``own``, all of it scaled in ``others``. Returns the gradient of τ."""
    total, s = F(0), F(1) / s if s > F(0) else F(0)
    for k in range(grad.shape[0]):
        y, by_y = s * kept[k], grad[k]
        total += by_y * abs(y)
        # No branch around a product, or there are no vectors.
        by_z = t * by_y * (F(1) - y * y)
        by_z = by_z if y != F(0) else F(0)
        own[k] = by_z if y < F(0) else F(0)
        others[k] = w * by_z
    return total


@part
def _before_activation(
    p: int,
    parts: int,
    kept: Any,
    tau: Any,
    scaled: bool,
    grad: Any,
    scale: Any,
    both: Any,
    read: Any,
    by_tau: Any,
) -> None:
    for i in range(p, kept.shape[0], parts):
        t = tau[i]
        s = t if scaled else F(1)
        by_tau[i] = _through_activation(kept[i], grad[i], scale[i], t, s, both[i], read[i])


@part
def _before_activation_again(
    p: int,
    parts: int,
    rows: Any,
    states: Any,
    read: Any,
    graph: Any,
    omega: Any,
    weight: Any,
    tau: Any,
    grad: Any,
    both: Any,
    board: Any,
    by_tau: Any,
    work: Any,
) -> None:
    inner, around = work[p, 1], work[p, 2]
    for lo in range(p * BLOCK, rows.shape[0], parts * BLOCK):
        block = rows[lo : min(lo + BLOCK, rows.shape[0])]
        products_of(block, states, read, graph, omega, weight, work[p])
        for a in range(block.shape[0]):
            i = U(block[a])
            w, g, first, second = graph.scale[i], grad[i], inner[a], around[a]
            if graph.edge.shape[0] > 0:
                term = graph.edge[i]
                for k in range(term.shape[0]):
                    second[k] += term[k] / w
            # Two loops: one with so many arrays is not made of vectors.
            for k in range(g.shape[0]):
                before = first[k]
                half = half_relu_tanh((F(0) if before < F(0) else before) - w * second[k])
                second[k] = F(-2) * half if before > F(0) else F(2) * half
            by_tau[i] = _through_activation(second, g, w, tau[i], F(1), both[i], board[i])


@part
def _before_products(
    p: int,
    parts: int,
    rows: Any,
    both: Any,
    read: Any,
    graph: Any,
    omega: Any,
    weight: Any,
    grad: Any,
    by_h: Any,
    work: Any,
) -> None:
    sums, inner, around = work[p, 0], work[p, 1], work[p, 2]
    width = grad.shape[1]
    for lo in range(p * BLOCK, rows.shape[0], parts * BLOCK):
        block = rows[lo : min(lo + BLOCK, rows.shape[0])]
        products_of(block, both, read, graph, omega, weight, work[p])
        for a in range(block.shape[0]):
            i = U(block[a])
            w, g, out, others = graph.scale[i], grad[i], by_h[i], both[i, width:]
            total, first, second = sums[a], inner[a], around[a]
            for k in range(width):
                out[k] = g[k] - first[k] + w * second[k]
                others[k] = w * total[k]


@Kernel
def go_back(
    parts: int,
    kept: Array,
    tau: Array,
    scaled: bool,
    grad: Array,
    graph: Structure,
    omega: Array,
    weight: Array,
    board: Array,
    both: Array,
    by_h: Array,
    by_tau: Array,
) -> None:
    """What the gradient of new states makes of itself: ``by_h`` and ``by_tau``, and in ``both``,
    ``[n, 2m']``, what H is multiplied with to have those of −Ω and of W.

    ``kept`` is from :func:`walk`, ``scaled`` or not, ``omega`` and ``weight`` are panels of Ωᵀ and
    Wᵀ. ``board`` is for the gradient of z, scaled. Since Ā is symmetric, Ā ∂z is needed once:
    Hᵀ(Ā ∂z) is the gradient of W and (Ā ∂z)Wᵀ that of H.
    """
    rows = np.arange(kept.shape[0])
    work = np.empty((parts, 3, BLOCK, board.shape[1]), np.float32)
    for p in prange(parts):
        _before_activation(p, parts, kept, tau, scaled, grad, graph.scale, both, board, by_tau)
    for p in prange(parts):
        _before_products(p, parts, rows, both, board, graph, omega, weight, grad, by_h, work)


@Kernel
def go_back_again(
    parts: int,
    states: Array,
    tau: Array,
    grad: Array,
    read: Array,
    graph: Structure,
    omega: Array,
    weight: Array,
    omega_back: Array,
    weight_back: Array,
    board: Array,
    both: Array,
    by_h: Array,
    by_tau: Array,
) -> None:
    """:func:`go_back` from the states, where nothing was kept. ``omega`` and ``weight`` are those
    of :func:`walk`, and ``read`` is for the states, scaled."""
    rows = np.arange(states.shape[0])
    work = np.empty((parts, 3, BLOCK, read.shape[1]), np.float32)
    for p in prange(parts):
        scaled_rows(p, parts, states, graph.scale, read)
    for p in prange(parts):
        _before_activation_again(
            p,
            parts,
            rows,
            states,
            read,
            graph,
            omega,
            weight,
            tau,
            grad,
            both,
            board,
            by_tau,
            work,
        )
    for p in prange(parts):
        _before_products(
            p, parts, rows, both, board, graph, omega_back, weight_back, grad, by_h, work
        )


@part
def _before(p: int, parts: int, new: Any, kept: Any, states: Any) -> None:
    for i in range(p, new.shape[0], parts):
        h, v, y = states[i], new[i], kept[i]
        for k in range(h.shape[0]):
            h[k] = v[k] - abs(y[k])


@Kernel
def before(parts: int, new: Array, kept: Array, states: Array) -> None:
    """The ``states`` before a step, from those after it and what :func:`walk` kept, scaled."""
    for p in prange(parts):
        _before(p, parts, new, kept, states)
