r"""Symmetric and antisymmetric matrices that stay so whatever the optimiser does.

Two ways to store them:

* ``"free"`` keeps only the free numbers, :math:`m(m-1)/2` and :math:`m(m+1)/2`.
* ``"paper"`` keeps what the paper's code keeps, so that its parameter counts match: :math:`m^2`
  numbers for :math:`\mathbf{\Omega}_{as} = \mathbf{\Omega} - \mathbf{\Omega}^\top`, and
  :math:`m(m+2)` for GRAFF's diagonally dominant :math:`\mathbf{W}_s`.
"""

from __future__ import annotations

import math
from typing import Literal

import torch
from torch import Tensor, nn

from eegnn import _check

Storage = Literal["free", "paper"]


class Antisymmetric(nn.Module):
    r"""An antisymmetric matrix :math:`\mathbf{\Omega}_{as} = -\mathbf{\Omega}_{as}^\top`.

    Called without arguments, it returns the matrix ``[channels, channels]``.
    """

    index: Tensor
    sign: Tensor

    def __init__(self, channels: int, storage: Storage = "free") -> None:
        super().__init__()
        self.channels = channels
        self.storage = _check.choice("storage", storage, ("free", "paper"))
        if storage == "paper":
            self.value = nn.Parameter(torch.empty(channels, channels))
        else:
            self.value = nn.Parameter(torch.empty(channels * (channels - 1) // 2))
            upper = torch.ones(channels, channels).triu(diagonal=1)
            self.register_buffer("index", _triangle_index(channels, diagonal=1), persistent=False)
            self.register_buffer("sign", upper - upper.T, persistent=False)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw entries of variance :math:`1/m`, as Glorot does for a square matrix."""
        _glorot_(self.value, self.channels)

    def forward(self) -> Tensor:
        """Return the matrix."""
        if self.storage == "paper":
            return self.value - self.value.T
        if self.channels == 1:  # no free number: the only antisymmetric 1×1 matrix is zero
            return self.value.new_zeros(1, 1)
        return self.value[self.index] * self.sign.to(self.value.dtype)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.channels}, storage={self.storage!r})"


class Symmetric(nn.Module):
    r"""A symmetric matrix :math:`\mathbf{W}_s = \mathbf{W}_s^\top`.

    With ``storage="paper"``, the strict upper triangle of the first :math:`m` columns, mirrored,
    gives :math:`\mathbf{W}^0`, and the last two columns :math:`q, r` the diagonal
    :math:`q_i \sum_j |W^0_{ij}| + r_i`.

    Called without arguments, it returns the matrix ``[channels, channels]``.
    """

    index: Tensor

    def __init__(self, channels: int, storage: Storage = "free") -> None:
        super().__init__()
        self.channels = channels
        self.storage = _check.choice("storage", storage, ("free", "paper"))
        if storage == "paper":
            self.value = nn.Parameter(torch.empty(channels, channels + 2))
        else:
            self.value = nn.Parameter(torch.empty(channels * (channels + 1) // 2))
            self.register_buffer("index", _triangle_index(channels, diagonal=0), persistent=False)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw entries of variance :math:`1/m`, as Glorot does for a square matrix."""
        _glorot_(self.value, self.channels)

    def forward(self) -> Tensor:
        """Return the matrix."""
        if self.storage == "free":
            return self.value[self.index]
        upper = self.value[:, :-2].triu(diagonal=1)
        mirrored = upper + upper.T
        q, r = self.value[:, -2], self.value[:, -1]
        return mirrored + torch.diag(q * mirrored.abs().sum(dim=1) + r)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.channels}, storage={self.storage!r})"


def _triangle_index(channels: int, diagonal: int) -> Tensor:
    """``[m, m]``: which free number stands at (i, j) and (j, i)."""
    row, col = torch.triu_indices(channels, channels, offset=diagonal)
    index = torch.zeros(channels, channels, dtype=torch.int64)
    index[row, col] = index[col, row] = torch.arange(row.numel())
    return index


def _glorot_(value: Tensor, channels: int) -> None:
    bound = math.sqrt(3.0 / channels)
    with torch.no_grad():
        value.uniform_(-bound, bound)
