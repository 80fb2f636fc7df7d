"""Loops over rows for which PyTorch needs many operators, compiled by Numba.

Optional: PyTorch alone does the same where Numba is not installed. Only ``float32``; numbers
that are not (NaN) stay what they are, as in PyTorch. Exponentials and logarithms are polynomials;
their relative error is below 3e-7.

A step takes rows by 32: all that is made of them on the way stays in the nearest cache, and rows
that are left out cost nothing, wherever they are.
"""

from eegnn.nn.kernels.products import COLUMNS, panels_of
from eegnn.nn.kernels.steps import Structure, advance
from eegnn.nn.kernels.training import before, go_back, go_back_again, walk

__all__ = [
    "COLUMNS",
    "Structure",
    "advance",
    "before",
    "go_back",
    "go_back_again",
    "panels_of",
    "walk",
]
