"""Exponentials and logarithms that the compiler turns into vector instructions."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from eegnn.nn.kernels.machine import F, inlined

_I = np.int32
#: From natural logarithms to those of base 2.
BITS = F(1 / math.log(2))
#: Adding it rounds to an integer, which the last bits then hold.
_ROUND = F(1.5 * 2**23)
_ROUND_BITS = _I(_ROUND.view(np.int32))


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


def _fit(function: Callable[[Any], Any], low: float, high: float, degree: int) -> list[np.float32]:
    """The coefficients of a polynomial that is close to a function on an interval."""
    nodes = np.cos(np.pi * (np.arange(200) + 0.5) / 200)
    x = (low + high) / 2 + (high - low) / 2 * nodes
    fit = np.polynomial.Polynomial.fit(x, function(x), degree, domain=[low, high]).convert()
    return [F(c) for c in fit.coef]


_E0, _E1, _E2, _E3, _E4, _E5, _E6 = _fit(np.exp2, -0.5, 0.5, 6)
_L0, _L1, _L2, _L3, _L4, _L5, _L6, _L7, _L8, _L9 = _fit(lambda x: np.log1p(x) / x, 0, 1, 9)


@inlined
def exp2(x: Any) -> Any:
    """2ˣ, between 2⁻¹²⁶ and 2¹²⁶."""
    # Comparisons in this direction let NaN through.
    x = F(-126.0) if x < F(-126.0) else x
    x = F(126.0) if x > F(126.0) else x
    # Integers are narrowed at once: Numba makes 64 bits of them, which are no vectors of 32.
    whole = _I(_bits(x + _ROUND) - _ROUND_BITS)  # type: ignore[call-arg]
    r = x - F(whole)
    p = _E6
    p = p * r + _E5
    p = p * r + _E4
    p = p * r + _E3
    p = p * r + _E2
    p = p * r + _E1
    p = p * r + _E0
    return p * _from_bits(_I(_I(whole + _I(127)) << _I(23)))


@inlined
def log1p(x: Any) -> Any:
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


@inlined
def softplus(x: Any) -> Any:
    """log(1 + eˣ)."""
    return (F(0) if x < F(0) else x) + log1p(exp2(-abs(x) * BITS))


@inlined
def half_relu_tanh(y: Any) -> Any:
    """ReLU(tanh(z)) / 2 from y = −2z / ln 2."""
    s = F(1) / (F(1) + exp2(y)) - F(0.5)
    return F(0) if s < F(0) else s


@inlined
def sigmoid(x: Any) -> Any:
    """1 / (1 + e⁻ˣ)."""
    return F(1) / (F(1) + exp2(-x * BITS))
