"""Loops over rows for which PyTorch needs many operators, compiled by Numba.

Optional: :mod:`eegnn.nn.fused` does without where Numba is not installed. Only ``float32``; numbers
that are not (NaN) stay what they are, as in PyTorch. Exponentials and logarithms are polynomials,
which the compiler turns into vector instructions; their relative error is below 3e-7.

All of it is in one file, since what Numba keeps on disk is made anew when the file of a kernel
changes, and not when another does.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable
from types import FunctionType
from typing import Any

import numpy as np
import torch
from llvmlite import ir
from numba import config, get_num_threads, njit, prange, set_num_threads, types
from numba.extending import intrinsic

# No flag that says there are no NaNs: they must get through.
_OPTIONS: dict[str, Any] = {
    "fastmath": {"contract", "nsz", "reassoc", "arcp"},
    "error_model": "numpy",  # a division that may raise is no vector instruction
    "nogil": True,
    "cache": True,
}
#: With fewer numbers to compute, several threads take longer than one.
PARALLEL_SIZE = 2**13
Array = np.ndarray[Any, Any]
_LOCK = threading.Lock()  # some of Numba's pools of threads take one caller at a time


class Kernel:
    """A function that is compiled for one thread and for several, when first called.

    Args:
        function: its loops over ``prange`` may be shared by threads.
    """

    def __init__(self, function: Any) -> None:
        # What is kept on disk goes by the name of a function: one name would mean one of the two.
        other = FunctionType(function.__code__, function.__globals__, function.__name__)
        other.__qualname__ = f"{function.__qualname__}_parallel"
        self.serial = njit(**_OPTIONS)(function)
        self.parallel = njit(parallel=True, **_OPTIONS)(other)
        self.__doc__ = function.__doc__

    def __call__(self, size: int, *arguments: Any) -> None:
        """Run it on as many threads as PyTorch uses; ``size`` counts the numbers to compute."""
        threads = min(torch.get_num_threads(), config.NUMBA_NUM_THREADS)  # type: ignore[attr-defined]
        if threads == 1 or size < PARALLEL_SIZE:
            self.serial(*arguments)
            return
        with _LOCK:
            before = get_num_threads()
            set_num_threads(threads)
            try:
                self.parallel(*arguments)
            finally:
                set_num_threads(before)


@intrinsic
def _bits(typing: Any, x: Any) -> Any:
    """The bits of a ``float32`` as an ``int32``."""

    def generate(context: Any, builder: Any, signature: Any, given: Any) -> Any:
        return builder.bitcast(given[0], ir.IntType(32))

    return types.int32(types.float32), generate


@intrinsic
def _from_bits(typing: Any, x: Any) -> Any:
    """The ``float32`` with these bits."""

    def generate(context: Any, builder: Any, signature: Any, given: Any) -> Any:
        return builder.bitcast(given[0], ir.FloatType())

    return types.float32(types.int32), generate


_F, _I = np.float32, np.int32
#: Of what is used as an index: Numba asks of any other whether it counts from the end.
_U = np.uint64
#: Adding it rounds to an integer, which the last bits then hold.
_ROUND = _F(1.5 * 2**23)
_ROUND_BITS = _I(_ROUND.view(np.int32))
_BITS = _F(1 / math.log(2))
_inlined = njit(inline="always", **{k: v for k, v in _OPTIONS.items() if k != "cache"})


def _fit(function: Callable[[Any], Any], low: float, high: float, degree: int) -> list[np.float32]:
    """The coefficients of a polynomial that is close to a function on an interval."""
    nodes = np.cos(np.pi * (np.arange(200) + 0.5) / 200)
    x = (low + high) / 2 + (high - low) / 2 * nodes
    fit = np.polynomial.Polynomial.fit(x, function(x), degree, domain=[low, high]).convert()
    return [_F(c) for c in fit.coef]


_E0, _E1, _E2, _E3, _E4, _E5, _E6 = _fit(np.exp2, -0.5, 0.5, 6)
_L0, _L1, _L2, _L3, _L4, _L5, _L6, _L7, _L8, _L9 = _fit(lambda x: np.log1p(x) / x, 0, 1, 9)


@_inlined
def _exp2(x: Any) -> Any:
    """2ˣ, between 2⁻¹²⁶ and 2¹²⁶."""
    # Comparisons in this direction let NaN through.
    x = _F(-126.0) if x < _F(-126.0) else x
    x = _F(126.0) if x > _F(126.0) else x
    # Integers are narrowed at once: Numba makes 64 bits of them, which are no vectors of 32.
    whole = _I(_bits(x + _ROUND) - _ROUND_BITS)  # type: ignore[call-arg]
    r = x - _F(whole)
    p = _E6
    p = p * r + _E5
    p = p * r + _E4
    p = p * r + _E3
    p = p * r + _E2
    p = p * r + _E1
    p = p * r + _E0
    return p * _from_bits(_I(_I(whole + _I(127)) << _I(23)))


@_inlined
def _log1p(x: Any) -> Any:
    """log(1 + x) for 0 ≤ x ≤ 1."""
    p = _L9
    p = p * x + _L8
    p = p * x + _L7
    p = p * x + _L6
    p = p * x + _L5
    p = p * x + _L4
    p = p * x + _L3
    p = p * x + _L2
    p = p * x + _L1
    p = p * x + _L0
    return p * x


@_inlined
def _softplus(x: Any) -> Any:
    """log(1 + eˣ)."""
    return (_F(0) if x < _F(0) else x) + _log1p(_exp2(-abs(x) * _BITS))


@_inlined
def _half_relu_tanh(y: Any) -> Any:
    """ReLU(tanh(z)) / 2 from y = −2z / ln 2."""
    s = _F(1) / (_F(1) + _exp2(y)) - _F(0.5)
    return _F(0) if s < _F(0) else s


@Kernel
def advance(states: Array, inner: Array, around: Array, tau: Array) -> None:
    """H ← H + τ ReLU(tanh(z)), where −2z / ln 2 = ReLU(inner) − around; ``tau`` is ``[n]``."""
    for i in prange(states.shape[0]):
        t = _F(2) * tau[i]
        h, own, others = states[i], inner[i], around[i]
        for k in range(h.shape[0]):
            y = (_F(0) if own[k] < _F(0) else own[k]) - others[k]
            h[k] += t * _half_relu_tanh(y)


@Kernel
def go_back(inner: Array, around: Array, tau: Array, grad: Array, by_tau: Array) -> None:
    """The gradients of a step, from that of the new states and the products HΩ and ĀHW, in whose
    place they are written: that of z, and its part that goes through ReLU(HΩ)."""
    for i in prange(inner.shape[0]):
        own, others, g, t = inner[i], around[i], grad[i], tau[i]
        total = _F(0)
        for k in range(own.shape[0]):
            before = own[k]
            z = others[k] - (_F(0) if before < _F(0) else before)
            y = _F(2) * _half_relu_tanh(-_F(2) * _BITS * z)
            by_y = g[k]
            total += by_y * y
            # No branch around a product, or there are no vectors.
            by_z = t * by_y * (_F(1) - y * y)
            by_z = by_z if y > _F(0) else _F(0)
            others[k] = by_z
            own[k] = by_z if before > _F(0) else _F(0)
        by_tau[i] = total


@Kernel
def advance_nodes(
    names: Array,
    states: Array,
    inner: Array,
    around: Array,
    scale: Array,
    tau: Array,
    books: int,
    noted: Array,
    scaled: Array,
) -> None:
    """:func:`advance` for some nodes, ``around`` still to be scaled. The new states, scaled, also
    go where neighbours read them, and τ of the first so many, who have books, where it is
    noted."""
    for a in prange(states.shape[0]):
        t, w = _F(2) * tau[a], scale[a]
        if a < books:
            noted[names[a]] = tau[a]
        h, own, others, read = states[a], inner[a], around[a], scaled[names[a]]
        for k in range(h.shape[0]):
            y = (_F(0) if own[k] < _F(0) else own[k]) - w * others[k]
            v = h[k] + t * _half_relu_tanh(y)
            h[k] = v
            read[k] = w * v


@Kernel
def advance_graphs(
    names: Array,
    ptr: Array,
    scaled: Array,
    inner: Array,
    around: Array,
    scale: Array,
    tau: Array,
    noted: Array,
    pooled: Array,
) -> None:
    """:func:`advance_nodes` for all nodes of graphs, which share τ, with scaled states alone, of
    which ``inner`` was made; and the sums of the states."""
    for g in prange(names.shape[0]):
        t = _F(2) * tau[g]
        noted[names[g]] = tau[g]
        total = pooled[g]
        for k in range(total.shape[0]):
            total[k] = _F(0)
        for i in range(ptr[g], ptr[g + 1]):
            w = scale[i]
            u = _F(1) / w
            h, own, others = scaled[i], inner[i], around[i]
            for k in range(h.shape[0]):
                y = u * (_F(0) if own[k] < _F(0) else own[k]) - w * others[k]
                v = u * h[k] + t * _half_relu_tanh(y)
                h[k] = w * v
                total[k] += v


@Kernel
def add_neighbours(
    names: Array, value: Array, rowptr: Array, col: Array, board: Array, total: Array
) -> None:
    """Sum one number over the neighbours of some nodes, who first write theirs on the board."""
    for a in prange(names.shape[0]):
        board[_U(names[a])] = value[a]
    for a in prange(names.shape[0]):
        t0, t1, t2, t3 = _F(0), _F(0), _F(0), _F(0)  # four sums that do not wait for each other
        e, end = _U(rowptr[a]), _U(rowptr[a + 1])
        while e + _U(4) <= end:
            t0 += board[_U(col[e])]
            t1 += board[_U(col[e + _U(1)])]
            t2 += board[_U(col[e + _U(2)])]
            t3 += board[_U(col[e + _U(3)])]
            e += _U(4)
        while e < end:
            t0 += board[_U(col[e])]
            e += _U(1)
        total[a] = (t0 + t1) + (t2 + t3)


@Kernel
def decide(
    own: Array,
    around: Array,
    share: Array,
    cold: Array,
    bias: float,
    nu0: float,
    sampled: bool,
    tau: Array,
    log_stay: Array,
    log_keep: float,
    log_next: Array,
    here: Array,
    weight: Array,
) -> None:
    """From what the heads say to τ and to the probability of going on.

    δ = own + around · share + bias, 1/ν = softplus(cold) + ν₀, and the log-odds of going on are δ
    where exits are sampled, else δ/ν. Of the first so many units, who have books, that makes the
    log-probability of going on, and the probabilities of being here, and of being here and not
    going on; or, if ``weight`` is empty, no more than the log-odds.
    """
    for a in prange(tau.shape[0]):
        delta = own[a] + around[a] * share[a] + bias
        scaled = delta * (_softplus(cold[a]) + nu0)
        tau[a] = _F(1) / (_F(1) + _exp2(-scaled * _BITS))
        if a < log_next.shape[0]:
            log_next[a] = delta if sampled else scaled
    for a in prange(weight.shape[0]):
        stay = log_stay[a]
        going = stay - _softplus(-log_next[a]) + log_keep
        p = _exp2(stay * _BITS)
        here[a] = p
        weight[a] = p - _exp2(going * _BITS)
        log_next[a] = going


@njit(**_OPTIONS)
def leave(
    layer: int,
    leaving: Array,
    log_next: Array,
    here: Array,
    weight: Array,
    said: Array,
    log_stay: Array,
    left: Array,
    passed: Array,
    names: Array,
    gone: Array,
    exit_layer: Array,
    answers: Array,
) -> int:
    """Let some units leave.

    What exits say is ``[*, U]``; those who leave write it with what they have passed to the row of
    ``answers`` that has their name, the others add it to what they have passed.

    Returns:
        How many have left; ``gone`` begins with their positions.
    """
    count = 0
    for a in range(left.shape[0]):
        if leaving[a] and not left[a]:
            name = _U(names[a])
            for c in range(said.shape[0]):
                answers[name, c] = passed[c, a] + here[a] * said[c, a]
            exit_layer[name] = layer
            left[a] = True
            gone[count] = a
            count += 1
    # Of those who have left too, where it does not matter: without exceptions it takes half the
    # time.
    for c in range(said.shape[0]):
        total, now = passed[c], said[c]
        for a in range(left.shape[0]):
            total[a] += weight[a] * now[a]
    for a in range(left.shape[0]):
        log_stay[a] = log_next[a]
    return count


@njit(**_OPTIONS)
def reach(rowptr: Array, col: Array, names: Array, inside: Array, steps: int) -> None:
    """Mark in ``inside`` ``[n]`` the rows from which a marked node is that many steps away."""
    fresh = np.empty(names.shape[0], np.int64)
    for _ in range(steps):
        count = 0
        for a in range(names.shape[0]):
            if inside[names[a]]:
                continue
            for e in range(rowptr[a], rowptr[a + 1]):
                if inside[col[e]]:
                    fresh[count] = names[a]
                    count += 1
                    break
        if count == 0:
            break
        for k in range(count):
            inside[fresh[k]] = True


@njit(**_OPTIONS)
def select_rows(rowptr: Array, col: Array, rows: Array, new_rowptr: Array, new_col: Array) -> int:
    """Write the entries of some rows of a CSR structure one after the other; return how many."""
    end = 0
    for a in range(rows.shape[0]):
        begin, size = rowptr[rows[a]], rowptr[rows[a] + 1] - rowptr[rows[a]]
        new_rowptr[a] = end
        for e in range(size):
            new_col[end + e] = col[begin + e]
        end += size
    new_rowptr[rows.shape[0]] = end
    return end


@njit(**_OPTIONS)
def select_graphs(
    graphs: Array,
    ptr: Array,
    rowptr: Array,
    col: Array,
    scaled: Array,
    new_ptr: Array,
    new_rowptr: Array,
    new_col: Array,
    new_scaled: Array,
    rows: Array,
) -> tuple[int, int]:
    """Write the entries and states of some graphs one after the other, nodes numbered anew.

    Returns:
        The number of nodes, ``rows`` beginning with the numbers that they had, and of entries.
    """
    row, end = 0, 0
    for g in range(graphs.shape[0]):
        first, last = ptr[graphs[g]], ptr[graphs[g] + 1]
        new_ptr[g] = row
        begin, shift = rowptr[first], first - row
        for e in range(rowptr[last] - begin):
            new_col[end + e] = col[begin + e] - shift
        for i in range(first, last):
            new_rowptr[row] = end + rowptr[i] - begin
            old, new = scaled[i], new_scaled[row]
            for k in range(old.shape[0]):
                new[k] = old[k]
            rows[row] = i
            row += 1
        end += rowptr[last] - begin
    new_ptr[graphs.shape[0]] = row
    new_rowptr[row] = end
    return row, end
