"""Exponentials and logarithms, against those of NumPy in double precision."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

numba: Any = pytest.importorskip("numba")
maths: Any = pytest.importorskip("eegnn.nn.kernels.maths")


def each(function: Any, x: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Call an inlined function on each number."""

    def loop(x: Any, out: Any) -> None:
        for i in range(x.size):
            out[i] = function(x[i])

    given = x.astype(np.float32)
    out = np.empty_like(given)
    numba.njit(loop)(given, out)
    return out.astype(np.float64)


def relative(found: Any, truth: Any) -> float:
    return float(np.max(np.abs(found - truth) / np.maximum(np.abs(truth), 1e-38)))


def floats(low: float, high: float, count: int = 20_001) -> np.ndarray[Any, Any]:
    return np.linspace(low, high, count).astype(np.float32).astype(np.float64)


def test_powers_of_two_are_as_exact_as_stated() -> None:
    x = floats(-100, 100)
    assert relative(each(maths.exp2, x), np.exp2(x)) < 3e-7
    assert each(maths.exp2, np.array([0.0, 1.0, -3.0])).tolist() == [1.0, 2.0, 0.125]


def test_powers_of_two_end_where_floats_do() -> None:
    ends = each(maths.exp2, np.array([-1e6, -np.inf, 1e6, np.inf]))
    assert ends.tolist() == [2.0**-126] * 2 + [2.0**126] * 2


def test_logarithms_are_as_exact_as_stated() -> None:
    x = floats(0, 1)
    assert relative(each(maths.log1p, x), np.log1p(x)) < 3e-7
    small = floats(1e-30, 1e-3)
    assert relative(each(maths.log1p, small), np.log1p(small)) < 3e-7


def test_softplus_is_exact_on_both_sides() -> None:
    x = floats(-5, 80)
    assert relative(each(maths.softplus, x), np.logaddexp(0, x)) < 6e-7
    far = floats(-80, -5)  # a float this large is only so exact, and it is an exponent
    error = np.abs(each(maths.softplus, far) / np.logaddexp(0, far) - 1)
    assert np.all(error < np.abs(far) * 2**-23)


def test_the_activation_is_half_of_relu_of_tanh() -> None:
    z = floats(-6, 6)
    y = (-2 / np.log(2) * z).astype(np.float32).astype(np.float64)
    truth = np.maximum(np.tanh(-y * np.log(2) / 2), 0) / 2
    assert np.max(np.abs(each(maths.half_relu_tanh, y) - truth)) < 2e-7


@pytest.mark.parametrize("name", ["exp2", "softplus", "half_relu_tanh"])
def test_what_is_no_number_stays_none(name: str) -> None:
    assert np.isnan(each(getattr(maths, name), np.array([np.nan]))).all()
