"""Steps of SAS-GNN, of all nodes."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba import prange

from eegnn.nn.kernels.machine import BLOCK, Array, F, Kernel, U, inlined, part
from eegnn.nn.kernels.maths import half_relu_tanh
from eegnn.nn.kernels.products import add_16, add_32, add_64, product

#: The rows of a block.
FIRST = np.arange(BLOCK)


class Structure(NamedTuple):
    """A graph: its rows, 1/√degree and √degree, and edge terms ``[n, m']`` or ``[0, m']``."""

    rowptr: Array
    col: Array
    scale: Array
    undo: Array
    edge: Array


@inlined
def products_of(
    rows: Any, own: Any, read: Any, graph: Any, omega: Any, weight: Any, work: Any
) -> None:
    """Of a block of rows: the sums over neighbours in ``work[0]``, the states times Ω in
    ``work[1]``, the sums times W in ``work[2]``; arguments as in :func:`_new_states`."""
    for a in range(rows.shape[0]):
        i = U(rows[a])
        begin, end, c = graph.rowptr[i], graph.rowptr[i + U(1)], 0
        while c + 64 <= read.shape[1]:
            add_64(graph.col, begin, end, read, c, work[0], a)
            c += 64
        if c + 32 <= read.shape[1]:
            add_32(graph.col, begin, end, read, c, work[0], a)
            c += 32
        if c < read.shape[1]:
            add_16(graph.col, begin, end, read, c, work[0], a)
    product(own, rows, omega, work[1])
    product(work[0], FIRST[: rows.shape[0]], weight, work[2])


@inlined
def _new_states(
    rows: Any,
    own: Any,
    scaled: bool,
    read: Any,
    graph: Any,
    omega: Any,
    weight: Any,
    tau: Any,
    work: Any,
) -> None:
    """H + τ ReLU(tanh(z)) of a block of rows, in ``work[0]``.

    H is ``own``, ``scaled`` or not, and ``read`` is H / √degree. ``omega`` and ``weight`` are
    panels of 2Ω / ln 2 and 2W / ln 2; ``tau`` is of the block.
    """
    products_of(rows, own, read, graph, omega, weight, work)
    new, inner, around = work[0], work[1], work[2]
    for a in range(rows.shape[0]):
        i = U(rows[a])
        w, t = graph.scale[i], F(2) * tau[a]
        u = graph.undo[i] if scaled else F(1)
        h, v, first, second = own[i], new[a], inner[a], around[a]
        if graph.edge.shape[0] > 0:
            term = graph.edge[i]
            for k in range(term.shape[0]):
                second[k] += term[k] / w
        for k in range(omega.shape[1]):
            y = u * (F(0) if first[k] < F(0) else first[k]) - w * second[k]
            v[k] = u * h[k] + t * half_relu_tanh(y)


@part
def scaled_rows(p: int, parts: int, states: Any, scale: Any, read: Any) -> None:
    """The states, each times its scale, as neighbours read them."""
    for i in range(p, states.shape[0], parts):
        h, new, w = states[i], read[i], scale[i]
        for k in range(h.shape[0]):
            new[k] = w * h[k]


@part
def _advance(
    p: int,
    parts: int,
    rows: Any,
    states: Any,
    read: Any,
    graph: Any,
    omega: Any,
    weight: Any,
    tau: Any,
    work: Any,
) -> None:
    for lo in range(p * BLOCK, rows.shape[0], parts * BLOCK):
        block = rows[lo : min(lo + BLOCK, rows.shape[0])]
        _new_states(block, states, False, read, graph, omega, weight, tau[lo:], work[p])
        for a in range(block.shape[0]):
            h, v = states[lo + a], work[p, 0, a]
            for k in range(h.shape[0]):
                h[k] = v[k]


@Kernel
def advance(
    parts: int,
    states: Array,
    read: Array,
    graph: Structure,
    omega: Array,
    weight: Array,
    tau: Array,
) -> None:
    """Let the first nodes, as many as ``tau`` has, take a step in place. Then ``read`` has the
    states before it, scaled, as neighbours read them."""
    rows = np.arange(tau.shape[0])
    work = np.empty((parts, 3, BLOCK, read.shape[1]), np.float32)
    for p in prange(parts):
        scaled_rows(p, parts, states, graph.scale, read)
    for p in prange(parts):
        _advance(p, parts, rows, states, read, graph, omega, weight, tau, work)
