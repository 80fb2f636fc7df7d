"""What heads and decoder see of the states in training, and back."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import prange

from eegnn.nn.kernels.decisions import over_neighbours
from eegnn.nn.kernels.machine import BLOCK, Array, F, Kernel, part
from eegnn.nn.kernels.products import COLUMNS, product
from eegnn.nn.kernels.steps import FIRST


@part
def _look(
    p: int,
    parts: int,
    rows: Any,
    states: Any,
    heads: Any,
    decoder: Any,
    drawn: Any,
    below: int,
    factor: float,
    facts: Any,
    said: Any,
    work: Any,
) -> None:
    seen, heard, left, first = work[p, 0], work[p, 1], work[p, 2], 0
    if drawn.shape[0] == 0:
        heard, first = seen, facts.shape[0]
    for lo in range(p * BLOCK, rows.shape[0], parts * BLOCK):
        block = rows[lo : min(lo + BLOCK, rows.shape[0])]
        product(states, block, heads, seen)
        if drawn.shape[0] > 0:
            for a in range(block.shape[0]):
                h, random, z = states[block[a]], drawn[block[a]], left[a]
                for k in range(h.shape[0]):
                    z[k] = factor * h[k] if random[k] < below else F(0)
            product(left, FIRST[: block.shape[0]], decoder, heard)
        for c in range(facts.shape[0]):
            row = facts[c]
            for a in range(block.shape[0]):
                row[lo + a] = seen[a, c]
        for c in range(said.shape[0]):
            row = said[c]
            for a in range(block.shape[0]):
                row[lo + a] = heard[a, first + c]


@Kernel
def look(
    parts: int,
    states: Array,
    heads: Array,
    decoder: Array,
    drawn: Array,
    below: int,
    factor: float,
    facts: Array,
    said: Array,
) -> None:
    """``facts`` ``[3, n]`` and ``said`` ``[C, n]``: the states times panels of ``heads``, and,
    after dropout, times those of ``decoder``. What is kept, times ``factor``, is where the number
    ``drawn`` ``[n, m']`` is ``below``. If none are drawn nothing is dropped, and ``heads`` are the
    panels of both, one after the other: one product instead of two."""
    rows = np.arange(states.shape[0])
    width = max(-(-states.shape[1] // COLUMNS), heads.shape[0], decoder.shape[0]) * COLUMNS
    work = np.empty((parts, 3, BLOCK, width), np.float32)
    for p in prange(parts):
        _look(p, parts, rows, states, heads, decoder, drawn, below, factor, facts, said, work)


@part
def _neighbour_sums(p: int, parts: int, board: Any, rowptr: Any, col: Any, sums: Any) -> None:
    for lo in range(p * BLOCK, sums.shape[0], parts * BLOCK):
        for i in range(lo, min(lo + BLOCK, sums.shape[0])):
            sums[i] = over_neighbours(board, col, rowptr[i], rowptr[i + 1])


@Kernel
def neighbour_sums(parts: int, board: Array, rowptr: Array, col: Array, sums: Array) -> None:
    """One number ``[n]`` of each node, summed over the neighbours of each: a third of the time of
    PyTorch's sparse product."""
    for p in prange(parts):
        _neighbour_sums(p, parts, board, rowptr, col, sums)


@part
def _look_back(
    p: int,
    parts: int,
    states: Any,
    heads: Any,
    decoder: Any,
    drawn: Any,
    below: int,
    factor: float,
    by_facts: Any,
    by_said: Any,
    by_h: Any,
    by_heads: Any,
    by_decoder: Any,
    work: Any,
) -> None:
    z, by_z = work[p, 0], work[p, 1]
    for i in range(p, states.shape[0], parts):
        h, out = states[i], by_h[i]
        for k in range(h.shape[0]):
            by_z[k] = F(0)
        if drawn.shape[0] > 0:
            random = drawn[i]
            for k in range(h.shape[0]):
                z[k] = factor * h[k] if random[k] < below else F(0)
        else:
            for k in range(h.shape[0]):
                z[k] = h[k]
        for c in range(by_said.shape[0]):
            g, weight, total = by_said[c, i], decoder[c], by_decoder[p, c]
            for k in range(h.shape[0]):
                by_z[k] += g * weight[k]
                total[k] += g * z[k]
        if drawn.shape[0] > 0:
            random = drawn[i]
            for k in range(h.shape[0]):
                out[k] = factor * by_z[k] if random[k] < below else F(0)
        else:
            for k in range(h.shape[0]):
                out[k] = by_z[k]
        for c in range(by_facts.shape[0]):
            g, weight, total = by_facts[c, i], heads[c], by_heads[p, c]
            for k in range(h.shape[0]):
                out[k] += g * weight[k]
                total[k] += g * h[k]


@Kernel
def look_back(
    parts: int,
    states: Array,
    heads: Array,
    decoder: Array,
    drawn: Array,
    below: int,
    factor: float,
    by_facts: Array,
    by_said: Array,
    by_h: Array,
    by_heads: Array,
    by_decoder: Array,
) -> None:
    """The gradients of :func:`look`, those of ``heads`` ``[3, m']`` and ``decoder`` ``[C, m']``
    added to the first of ``by_heads`` and ``by_decoder``, which are 0."""
    work = np.empty((parts, 2, states.shape[1]), np.float32)
    heads_of = np.zeros((parts, heads.shape[0], heads.shape[1]), np.float32)
    decoder_of = np.zeros((parts, decoder.shape[0], decoder.shape[1]), np.float32)
    for p in prange(parts):
        _look_back(
            p,
            parts,
            states,
            heads,
            decoder,
            drawn,
            below,
            factor,
            by_facts,
            by_said,
            by_h,
            heads_of,
            decoder_of,
            work,
        )
    for p in range(parts):
        by_heads += heads_of[p]
        by_decoder += decoder_of[p]
