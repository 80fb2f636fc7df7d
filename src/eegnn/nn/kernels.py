"""Loops over rows for which PyTorch needs many operators, compiled by Numba.

Optional: :mod:`eegnn.nn.fused` does without where Numba is not installed. Only ``float32``; numbers
that are not (NaN) stay what they are, as in PyTorch. Exponentials and logarithms are polynomials,
which the compiler turns into vector instructions; their relative error is below 3e-7.

A step takes rows by :data:`BLOCK`: all that is made of them on the way stays in the nearest cache,
and rows that are left out cost nothing, wherever they are. That needs products of its own, since
PyTorch's are of whole matrices; they take 0.8 of the time of ``torch.mm`` (10,000 × 32 by 32 × 32,
AVX2, one thread).

All of it is in one file, since what Numba keeps on disk is made anew when the file of a kernel
changes, and not when another does.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable
from types import FunctionType
from typing import Any, NamedTuple

import numpy as np
import torch
from llvmlite import ir
from numba import config, get_num_threads, njit, prange, set_num_threads, types
from numba.core import cgutils
from numba.extending import intrinsic
from torch import Tensor
from torch.nn.functional import pad

# No flag that says there are no NaNs: they must get through.
_OPTIONS: dict[str, Any] = {
    "fastmath": {"contract", "nsz", "reassoc", "arcp"},
    "error_model": "numpy",  # a division that may raise is no vector instruction
    "nogil": True,
    "cache": True,
}
#: With fewer numbers to compute, several threads take longer than one.
PARALLEL_SIZE = 2**13
#: Rows that are computed together.
BLOCK = 32
Array = np.ndarray[Any, Any]
_LOCK = threading.Lock()  # some of Numba's pools of threads take one caller at a time


class Kernel:
    """A function that is compiled for one thread and for several, when first called.

    Args:
        function: of a number of parts, its loop over which is shared by threads, and of what the
            kernel is called with.
    """

    def __init__(self, function: Any) -> None:
        # What is kept on disk goes by the name of a function: one name would mean one of the two.
        other = FunctionType(function.__code__, function.__globals__, function.__name__)
        other.__qualname__ = f"{function.__qualname__}_parallel"
        self.serial = njit(**_OPTIONS)(function)
        self.parallel = njit(parallel=True, **_OPTIONS)(other)
        self.__doc__ = function.__doc__

    def __call__(self, size: int, *arguments: Any) -> Any:
        """Run it on as many threads as PyTorch uses; ``size`` counts the numbers to compute."""
        threads = min(torch.get_num_threads(), config.NUMBA_NUM_THREADS)  # type: ignore[attr-defined]
        if threads == 1 or size < PARALLEL_SIZE:
            return self.serial(1, *arguments)
        with _LOCK:
            before = get_num_threads()
            if before == threads:  # as it mostly is; saying so takes longer than a small kernel
                return self.parallel(threads, *arguments)
            set_num_threads(threads)
            try:
                return self.parallel(threads, *arguments)
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


_FLOAT = ir.FloatType()
#: What a register holds; where registers are longer or shorter, the compiler makes do.
_VECTOR = ir.VectorType(_FLOAT, 8)
#: Columns, and rows, of a product that are computed at once: as many registers as there are, but
#: for what they are computed from.
COLUMNS, _ROWS = 16, 4


def _place(builder: Any, array: Any, *index: Any) -> Any:
    """The address of an element of a C-contiguous array."""
    flat = index[0]
    for size, i in zip(cgutils.unpack_tuple(builder, array.shape)[1:], index[1:], strict=True):
        flat = builder.add(builder.mul(flat, size), i)
    return builder.gep(array.data, [flat])


def _load(builder: Any, place: Any, number: int) -> list[Any]:
    """Vectors that lie one after the other."""
    first = builder.bitcast(place, _VECTOR.as_pointer())
    where = [builder.gep(first, [ir.Constant(ir.IntType(32), j)]) for j in range(number)]
    return [builder.load(one, align=4) for one in where]


def _store(builder: Any, vectors: list[Any], place: Any) -> None:
    first = builder.bitcast(place, _VECTOR.as_pointer())
    for j, vector in enumerate(vectors):
        builder.store(vector, builder.gep(first, [ir.Constant(ir.IntType(32), j)]), align=4)


def _sums(builder: Any, number: int) -> list[Any]:
    """Vectors of zeros to be added to, which become registers."""
    places = [cgutils.alloca_once(builder, _VECTOR) for _ in range(number)]
    for place in places:
        builder.store(ir.Constant(_VECTOR, [0.0] * _VECTOR.count), place)
    return places


def _add(builder: Any, vector: Any, place: Any) -> None:
    flags = ("contract", "nsz", "reassoc")
    builder.store(builder.fadd(builder.load(place), vector, flags=flags), place)


@intrinsic
def _multiply(
    typing: Any, a: Any, i0: Any, i1: Any, i2: Any, i3: Any, panels: Any, p: Any, out: Any, o: Any
) -> Any:
    """Four rows of a product: ``out[o:o+4, 16p:16p+16] = a[[i0, i1, i2, i3], :k] @ panels[p]``.

    ``panels`` is ``[*, k, 16]``, see :func:`panels_of`. A loop in Python's words, however it is
    written, keeps sums in memory.
    """

    def generate(context: Any, builder: Any, signature: Any, given: Any) -> Any:
        a, panels, out = (
            context.make_array(signature.args[j])(context, builder, given[j]) for j in (0, 5, 7)
        )
        rows, p, o = given[1:5], given[6], given[8]
        per_row = COLUMNS // _VECTOR.count
        depth = cgutils.unpack_tuple(builder, panels.shape)[1]
        zero, sums = ir.Constant(depth.type, 0), _sums(builder, per_row * _ROWS)
        lanes = ir.Constant(ir.VectorType(ir.IntType(32), _VECTOR.count), [0] * _VECTOR.count)
        nothing = ir.Constant(_VECTOR, ir.Undefined)
        starts = [_place(builder, a, row, zero) for row in rows]
        panel = _place(builder, panels, p, zero, zero)
        with cgutils.for_range(builder, depth) as loop:
            offset = builder.mul(loop.index, ir.Constant(depth.type, COLUMNS))
            weights = _load(builder, builder.gep(panel, [offset]), per_row)
            for r, start in enumerate(starts):
                one = builder.load(builder.gep(start, [loop.index]))
                one = builder.insert_element(nothing, one, ir.Constant(ir.IntType(32), 0))
                one = builder.shuffle_vector(one, nothing, lanes)
                for j, weight in enumerate(weights):
                    term = builder.fmul(one, weight, flags=("contract", "nsz", "reassoc"))
                    _add(builder, term, sums[r * per_row + j])
        column = builder.mul(p, ir.Constant(p.type, COLUMNS))
        for r in range(_ROWS):
            found = [builder.load(s) for s in sums[r * per_row : (r + 1) * per_row]]
            row = builder.add(o, ir.Constant(o.type, r))
            _store(builder, found, _place(builder, out, row, column))
        return context.get_dummy_value()

    index = [types.intp] * 4
    return types.void(a, *index, panels, types.intp, out, types.intp), generate


#: So many rows before it is added, one is asked for.
_AHEAD = 12


def _row(builder: Any, rows: Any, e: Any, kind: Any) -> Any:
    row = builder.load(builder.gep(rows.data, [e]))
    return row if row.type == kind else builder.zext(row, kind)


def _fetch(builder: Any, place: Any, number: int) -> None:
    """Have vectors brought near."""
    word, pointer = ir.IntType(32), ir.IntType(8).as_pointer()
    function = cgutils.get_or_insert_function(
        builder.module,
        ir.FunctionType(ir.VoidType(), [pointer, word, word, word]),
        "llvm.prefetch.p0",
    )
    for j in range(0, number, 2):  # two to a line
        where = builder.gep(place, [ir.Constant(word, j * _VECTOR.count)])
        builder.call(function, [builder.bitcast(where, pointer), *(word(n) for n in (0, 3, 1))])


def _adder(number: int) -> Any:
    @intrinsic
    def add_rows(
        typing: Any, rows: Any, begin: Any, end: Any, a: Any, c: Any, out: Any, o: Any
    ) -> Any:
        """``out[o, c:c+w] = a[rows[begin:end], c:c+w].sum(0)``, in registers."""

        def generate(context: Any, builder: Any, signature: Any, given: Any) -> Any:
            rows, a, out = (
                context.make_array(signature.args[j])(context, builder, given[j]) for j in (0, 3, 5)
            )
            begin, end, c, o = given[1], given[2], given[4], given[6]
            sums, one = _sums(builder, number), ir.Constant(begin.type, 1)
            with cgutils.for_range_slice(builder, begin, end, one) as (e, _):
                row = _row(builder, rows, e, c.type)
                ahead = builder.add(e, ir.Constant(e.type, _AHEAD))
                is_there = builder.icmp_signed("<", ahead, end)
                ahead = _row(builder, rows, builder.select(is_there, ahead, e), c.type)
                _fetch(builder, _place(builder, a, ahead, c), number)
                for found, total in zip(
                    _load(builder, _place(builder, a, row, c), number), sums, strict=True
                ):
                    _add(builder, found, total)
            _store(builder, [builder.load(s) for s in sums], _place(builder, out, o, c))
            return context.get_dummy_value()

        i = types.intp
        return types.void(rows, i, i, a, i, out, i), generate

    return add_rows


_add_16, _add_32, _add_64 = _adder(2), _adder(4), _adder(8)


_F, _I = np.float32, np.int32
#: Of what is used as an index: Numba asks of any other whether it counts from the end.
_U = np.uint64
#: Adding it rounds to an integer, which the last bits then hold.
_ROUND = _F(1.5 * 2**23)
_ROUND_BITS = _I(_ROUND.view(np.int32))
_FIRST = np.arange(BLOCK)
_BITS = _F(1 / math.log(2))
_inlined = njit(inline="always", **{k: v for k, v in _OPTIONS.items() if k != "cache"})


def _part(function: Any) -> Any:
    """What a thread does with its part of the rows.

    Not inlined, since Numba would make parallel loops of what is in it. It allocates nothing, so
    no references have to be counted: without saying so, half of the time went into that.
    """
    options = {k: v for k, v in _OPTIONS.items() if k != "cache"}
    try:
        return njit(_nrt=False, **options)(function)  # type: ignore[call-overload]
    except KeyError:  # no option that Numba promises to keep
        return njit(**options)(function)


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


def panels_of(weight: Tensor) -> Array:
    """The columns of a matrix ``[k, m]`` by 16, ``[*, k, 16]``, the last ones 0."""
    k, m = weight.shape
    count = -(-m // COLUMNS)
    whole = pad(weight, (0, count * COLUMNS - m))
    return whole.view(k, count, COLUMNS).transpose(0, 1).contiguous().numpy()


@_inlined
def _product(a: Any, rows: Any, panels: Any, out: Any) -> None:
    """``out[:r] = a[rows] @ weight``, a multiple of four rows."""
    last = rows.shape[0] - 1
    for p in range(panels.shape[0]):
        for o in range(0, rows.shape[0], _ROWS):
            i1, i2, i3 = min(o + 1, last), min(o + 2, last), min(o + 3, last)
            _multiply(a, rows[o], rows[i1], rows[i2], rows[i3], panels, p, out, o)  # type: ignore[call-arg]


class Structure(NamedTuple):
    """A graph: its rows, 1/√degree and √degree, and edge terms ``[n, m']`` or ``[0, m']``."""

    rowptr: Array
    col: Array
    scale: Array
    undo: Array
    edge: Array


class Books(NamedTuple):
    """What is known of units, by their number.

    ``facts`` is ``[U, 3 + C]`` or wider: δ of a unit, its part in that of neighbours, 1/ν before
    its softplus, and what it would say. ``board`` repeats the second. ``answers`` ``[U, *]`` is
    what they have passed, to which they add when they leave.
    """

    facts: Array
    board: Array
    left: Array
    log_stay: Array
    answers: Array
    layer: Array
    tau: Array


class Manner(NamedTuple):
    """How heads decide: δ = own + share · Σ others + bias, 1/ν = softplus(cold) + ν₀.

    The log-odds of going on are δ where exits are sampled, else δ/ν; a unit leaves at once with a
    probability whose complement is exp ``log_keep``. ``step_size`` is used instead of τ unless it
    is negative.
    """

    bias: float
    nu0: float
    reads: bool
    sampled: bool
    log_keep: float
    step_size: float
    freeze: bool


#: Who leaves: whose log-probability of going on is at most a limit, who would rather, whose layer
#: it is, everyone.
THRESHOLD, ODDS, STATED, EVERYONE = range(4)
#: What units say: values, labels, classes.
VALUES, LABELS, CLASSES = range(3)


@_inlined
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
    new, inner, around = work[0], work[1], work[2]
    for a in range(rows.shape[0]):
        i = _U(rows[a])
        begin, end, c = graph.rowptr[i], graph.rowptr[i + _U(1)], 0
        while c + 64 <= read.shape[1]:
            _add_64(graph.col, begin, end, read, c, new, a)
            c += 64
        if c + 32 <= read.shape[1]:
            _add_32(graph.col, begin, end, read, c, new, a)
            c += 32
        if c < read.shape[1]:
            _add_16(graph.col, begin, end, read, c, new, a)
    _product(own, rows, omega, inner)
    _product(new, _FIRST[: rows.shape[0]], weight, around)
    for a in range(rows.shape[0]):
        i = _U(rows[a])
        w, t = graph.scale[i], _F(2) * tau[a]
        u = graph.undo[i] if scaled else _F(1)
        h, v, first, second = own[i], new[a], inner[a], around[a]
        if graph.edge.shape[0] > 0:
            term = graph.edge[i]
            for k in range(term.shape[0]):
                second[k] += term[k] / w
        for k in range(omega.shape[1]):
            y = u * (_F(0) if first[k] < _F(0) else first[k]) - w * second[k]
            v[k] = u * h[k] + t * _half_relu_tanh(y)


@_part
def _scale(p: int, parts: int, states: Any, scale: Any, read: Any) -> None:
    for i in range(p, states.shape[0], parts):
        h, new, w = states[i], read[i], scale[i]
        for k in range(h.shape[0]):
            new[k] = w * h[k]


@_part
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
        _scale(p, parts, states, graph.scale, read)
    for p in prange(parts):
        _advance(p, parts, rows, states, read, graph, omega, weight, tau, work)


@_part
def _go_back(p: int, parts: int, inner: Any, around: Any, tau: Any, grad: Any, by_tau: Any) -> None:
    for i in range(p, inner.shape[0], parts):
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
def go_back(
    parts: int, inner: Array, around: Array, tau: Array, grad: Array, by_tau: Array
) -> None:
    """The gradients of a step, from that of the new states and the products HΩ and ĀHW, in whose
    place they are written: that of z, and its part that goes through ReLU(HΩ)."""
    for p in prange(parts):
        _go_back(p, parts, inner, around, tau, grad, by_tau)


@_part
def _step_nodes(
    p: int,
    parts: int,
    rows: Any,
    read: Any,
    write: Any,
    graph: Any,
    omega: Any,
    weight: Any,
    heads: Any,
    books: Any,
    work: Any,
) -> None:
    new, seen, tau = work[p, 0], work[p, 1], work[p, 3, 0]
    for lo in range(p * BLOCK, rows.shape[0], parts * BLOCK):
        block = rows[lo : min(lo + BLOCK, rows.shape[0])]
        for a in range(block.shape[0]):
            tau[a] = books.tau[block[a]]
        _new_states(block, read, True, read, graph, omega, weight, tau, work[p])
        _product(new, _FIRST[: block.shape[0]], heads, seen)
        for a in range(block.shape[0]):
            i = _U(block[a])
            w, h, v, facts, found = graph.scale[i], write[i], new[a], books.facts[i], seen[a]
            for k in range(omega.shape[1]):
                h[k] = w * v[k]
            for k in range(facts.shape[0]):
                facts[k] = found[k]
            books.board[i] = found[1]


@Kernel
def step_nodes(
    parts: int,
    rows: Array,
    read: Array,
    write: Array,
    graph: Structure,
    omega: Array,
    weight: Array,
    heads: Array,
    books: Books,
) -> None:
    """Let some nodes take a step, from the states that neighbours read to those that they will
    read, and let the heads look."""
    width = max(read.shape[1], heads.shape[0] * COLUMNS, BLOCK)
    work = np.empty((parts, 4, BLOCK, width), np.float32)
    for p in prange(parts):
        _step_nodes(p, parts, rows, read, write, graph, omega, weight, heads, books, work)


@_part
def _step_graphs(
    p: int,
    parts: int,
    graphs: Any,
    ptr: Any,
    nodes: Any,
    read: Any,
    write: Any,
    graph: Any,
    omega: Any,
    weight: Any,
    heads: Any,
    books: Any,
    pooled: Any,
    share: Any,
    work: Any,
) -> None:
    new, tau = work[p, 0], work[p, 3, 0]
    for b in range(p, graphs.shape[0], parts):
        g = _U(graphs[b])
        total, facts = pooled[g], books.facts[g]
        for a in range(BLOCK):
            tau[a] = books.tau[g]
        for k in range(total.shape[0]):
            total[k] = _F(0)
        for lo in range(ptr[g], ptr[g + _U(1)], BLOCK):
            block = nodes[lo : min(lo + BLOCK, ptr[g + _U(1)])]
            _new_states(block, read, True, read, graph, omega, weight, tau, work[p])
            for a in range(block.shape[0]):
                w, h, v = graph.scale[lo + a], write[lo + a], new[a]
                for k in range(total.shape[0]):
                    h[k] = w * v[k]
                    total[k] += v[k]
        for k in range(total.shape[0]):
            total[k] *= share[g]
        for k in range(facts.shape[0]):
            facts[k] = _F(0)
        for c in range(heads.shape[0]):
            for k in range(total.shape[0]):
                one = total[k]
                for j in range(min(COLUMNS, facts.shape[0] - c * COLUMNS)):
                    facts[c * COLUMNS + j] += one * heads[c, k, j]


@Kernel
def step_graphs(
    parts: int,
    graphs: Array,
    ptr: Array,
    nodes: Array,
    read: Array,
    write: Array,
    graph: Structure,
    omega: Array,
    weight: Array,
    heads: Array,
    books: Books,
    pooled: Array,
    share: Array,
) -> None:
    """:func:`step_nodes` for all nodes of some graphs, whose sums times ``share`` are what the
    heads look at."""
    work = np.empty((parts, 4, BLOCK, max(read.shape[1], BLOCK)), np.float32)
    for p in prange(parts):
        _step_graphs(
            p,
            parts,
            graphs,
            ptr,
            nodes,
            read,
            write,
            graph,
            omega,
            weight,
            heads,
            books,
            pooled,
            share,
            work,
        )


@_inlined
def _over_neighbours(board: Any, col: Any, begin: Any, end: Any) -> Any:
    """Sum one number over neighbours."""
    t0, t1, t2, t3 = _F(0), _F(0), _F(0), _F(0)  # four sums that do not wait for each other
    e, end = _U(begin), _U(end)
    while e + _U(4) <= end:
        t0 += board[_U(col[e])]
        t1 += board[_U(col[e + _U(1)])]
        t2 += board[_U(col[e + _U(2)])]
        t3 += board[_U(col[e + _U(3)])]
        e += _U(4)
    while e < end:
        t0 += board[_U(col[e])]
        e += _U(1)
    return (t0 + t1) + (t2 + t3)


@_inlined
def _sigmoid(x: Any) -> Any:
    return _F(1) / (_F(1) + _exp2(-x * _BITS))


@_inlined
def _shares(said: Any, kind: int, count: int, most: Any, total: Any) -> None:
    """From what a block of units says, ``[C, *]`` (twice as many rows for labels), to what is
    mixed."""
    if kind == LABELS:
        half = said.shape[0] // 2
        for c in range(half):
            yes, no = said[c], said[half + c]
            for a in range(count):
                x = yes[a]
                yes[a], no[a] = _sigmoid(x), _sigmoid(-x)
    elif kind == CLASSES:
        for a in range(count):
            most[a], total[a] = said[0, a], _F(0)
        for c in range(1, said.shape[0]):
            row = said[c]
            for a in range(count):
                most[a] = row[a] if row[a] > most[a] else most[a]
        for c in range(said.shape[0]):
            row = said[c]
            for a in range(count):
                row[a] = _exp2((row[a] - most[a]) * _BITS)
                total[a] += row[a]
        for c in range(said.shape[0]):
            row = said[c]
            for a in range(count):
                row[a] /= total[a]


@_part
def _decide(
    p: int,
    parts: int,
    units: Any,
    layer: int,
    rule: int,
    limit: float,
    stated: Any,
    manner: Any,
    graph: Any,
    bias: Any,
    kind: int,
    books: Any,
    noted: Any,
    work: Any,
) -> int:
    own, said, number = work[p], work[p, 7:], 0
    score, tau, going, here, weight, most, total = (
        own[0],
        own[1],
        own[2],
        own[3],
        own[4],
        own[5],
        own[6],
    )
    for lo in range(p * BLOCK, units.shape[0], parts * BLOCK):
        block = units[lo : min(lo + BLOCK, units.shape[0])]
        count = block.shape[0]
        for a in range(count):
            i = _U(block[a])
            facts = books.facts[i]
            score[a] = facts[0] + manner.bias
            if manner.reads:
                w = graph.scale[i]
                begin, end = graph.rowptr[i], graph.rowptr[i + _U(1)]
                score[a] += w * w * _over_neighbours(books.board, graph.col, begin, end)
            tau[a], going[a] = facts[2], books.log_stay[i]
            for c in range(bias.shape[0]):
                said[c, a] = facts[3 + c] + bias[c]
        for a in range(count):
            scaled = score[a] * (_softplus(tau[a]) + manner.nu0)
            tau[a] = _sigmoid(scaled)
            score[a] = score[a] if manner.sampled else scaled
            here[a] = _exp2(going[a] * _BITS)
            going[a] += manner.log_keep - _softplus(-score[a])
            weight[a] = here[a] - _exp2(going[a] * _BITS)
        _shares(said, kind, count, most, total)
        for a in range(count):
            i = _U(block[a])
            if not books.left[i]:
                if rule == THRESHOLD:
                    leaves = going[a] <= limit
                elif rule == ODDS:
                    leaves = score[a] < _F(0)
                elif rule == STATED:
                    leaves = stated[i] <= layer
                else:
                    leaves = True
                if leaves:
                    books.left[i], books.layer[i] = True, layer
                    number += 1
                else:
                    books.log_stay[i] = going[a]
                share, answer = here[a] if leaves else weight[a], books.answers[i]
                for c in range(said.shape[0]):
                    answer[c] += share * said[c, a]
            t = tau[a] if manner.step_size < _F(0) else manner.step_size
            if not books.left[i]:
                noted[i] = t
            elif manner.freeze:
                t = _F(0)
            books.tau[i] = t
    return number


@Kernel
def decide(
    parts: int,
    units: Array,
    layer: int,
    rule: int,
    limit: float,
    stated: Array,
    manner: Manner,
    graph: Structure,
    bias: Array,
    kind: int,
    books: Books,
    noted: Array,
) -> int:
    """Let units decide, and some of them leave; ``bias`` is that of this exit, ``[C]``.

    Who leaves adds what it says, times the probability of being here, to what it has passed; who
    goes on, times that of being here and not going on.

    Returns:
        How many have left now.
    """
    number = 0
    work = np.empty((parts, 7 + books.answers.shape[1], BLOCK), np.float32)
    for p in prange(parts):
        number += _decide(
            p,
            parts,
            units,
            layer,
            rule,
            limit,
            stated,
            manner,
            graph,
            bias,
            kind,
            books,
            noted,
            work,
        )
    return number


@njit(**_OPTIONS)
def drop(rows: Array, left: Array, read: Array, write: Array) -> int:
    """Move the rows that have not left to the front; the others will be read as they are.

    Returns:
        How many have not left.
    """
    count = 0
    for a in range(rows.shape[0]):
        i = _U(rows[a])
        if left[i]:
            old, new = read[i], write[i]
            for k in range(old.shape[0]):
                new[k] = old[k]
        else:
            rows[count] = i
            count += 1
    return count


@njit(**_OPTIONS)
def reach(rowptr: Array, col: Array, rows: Array, inside: Array, steps: int) -> None:
    """Mark in ``inside`` ``[n]`` the rows from which a marked node is that many steps away."""
    fresh = np.empty(rows.shape[0], np.int64)
    for _ in range(steps):
        count = 0
        for a in range(rows.shape[0]):
            i = rows[a]
            if inside[i]:
                continue
            for e in range(rowptr[i], rowptr[i + 1]):
                if inside[col[e]]:
                    fresh[count] = i
                    count += 1
                    break
        if count == 0:
            break
        for k in range(count):
            inside[fresh[k]] = True
