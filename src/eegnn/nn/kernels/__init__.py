"""Loops over rows for which PyTorch needs many operators, compiled by Numba.

Optional: :mod:`eegnn.nn.fused` does without where Numba is not installed. Only ``float32``; numbers
that are not (NaN) stay what they are, as in PyTorch. Exponentials and logarithms are polynomials;
their relative error is below 3e-7.

A step takes rows by 32: all that is made of them on the way stays in the nearest cache, and rows
that are left out cost nothing, wherever they are.
"""

from eegnn.nn.kernels.decisions import (
    CLASSES,
    EVERYONE,
    LABELS,
    ODDS,
    STATED,
    THRESHOLD,
    UNSURE_CLASSES,
    UNSURE_LABELS,
    VALUES,
    Manner,
    decide,
    drop,
    reach,
)
from eegnn.nn.kernels.looks import look, look_back, neighbour_sums
from eegnn.nn.kernels.products import COLUMNS, panels_of
from eegnn.nn.kernels.steps import Books, Structure, advance, step_graphs, step_nodes
from eegnn.nn.kernels.training import before, go_back, go_back_again, walk

__all__ = [
    "CLASSES",
    "COLUMNS",
    "EVERYONE",
    "LABELS",
    "ODDS",
    "STATED",
    "THRESHOLD",
    "UNSURE_CLASSES",
    "UNSURE_LABELS",
    "VALUES",
    "Books",
    "Manner",
    "Structure",
    "advance",
    "before",
    "decide",
    "drop",
    "go_back",
    "go_back_again",
    "look",
    "look_back",
    "neighbour_sums",
    "panels_of",
    "reach",
    "step_graphs",
    "step_nodes",
    "walk",
]
