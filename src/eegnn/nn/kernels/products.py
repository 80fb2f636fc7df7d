"""Products of a few rows, with sums in registers.

PyTorch's are of whole matrices. These take 0.8 of the time of ``torch.mm`` (10,000 × 32 by 32 × 32,
AVX2, one thread), and their results never leave the nearest cache.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic
from torch import Tensor
from torch.nn.functional import pad

from eegnn.nn.kernels.machine import Array, inlined

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


def _in_rows(*arrays: Any) -> bool:
    """Whether arrays of these types are C-contiguous; nothing is compiled for any other."""
    return all(array.layout == "C" for array in arrays)


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

    if not _in_rows(a, panels, out):
        return None
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
        return (types.void(rows, i, i, a, i, out, i), generate) if _in_rows(rows, a, out) else None

    return add_rows


add_16, add_32, add_64 = _adder(2), _adder(4), _adder(8)


def panels_of(weight: Tensor) -> Array:
    """The columns of a matrix ``[k, m]`` by 16, ``[*, k, 16]``, the last ones 0."""
    k, m = weight.shape
    count = -(-m // COLUMNS)
    whole = pad(weight, (0, count * COLUMNS - m))
    return whole.view(k, count, COLUMNS).transpose(0, 1).contiguous().numpy()


@inlined
def product(a: Any, rows: Any, panels: Any, out: Any) -> None:
    """``out[:r] = a[rows] @ weight``, a multiple of four rows."""
    last = rows.shape[0] - 1
    for p in range(panels.shape[0]):
        for o in range(0, rows.shape[0], _ROWS):
            i1, i2, i3 = min(o + 1, last), min(o + 2, last), min(o + 3, last)
            _multiply(a, rows[o], rows[i1], rows[i2], rows[i3], panels, p, out, o)  # type: ignore[call-arg]
