r"""Symmetric and antisymmetric matrices that stay so whatever the optimiser does.

Two ways to store them:

* ``"free"`` keeps only the free numbers, :math:`m(m-1)/2` and :math:`m(m+1)/2`.
* ``"paper"`` keeps what the paper's code keeps, so that its parameter counts match: :math:`m^2`
  numbers for :math:`\mathbf{\Omega}_{as} = \mathbf{\Omega} - \mathbf{\Omega}^\top`, and
  :math:`m(m+2)` for GRAFF's diagonally dominant :math:`\mathbf{W}_s`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, ClassVar, Literal, Self

import torch
from torch import Tensor, nn

from eegnn import _check

Storage = Literal["free", "paper"]


class _FreeNumbers(nn.Module):
    """A matrix made of a vector of free numbers, and of buffers that say where each of them stands.

    The buffers are not saved. They are made again where a module leaves the meta device: there
    ``to_empty`` leaves them undefined, and ``load_state_dict(assign=True)`` leaves them behind.
    """

    diagonal: ClassVar[int]  #: the first diagonal with free numbers
    paper_columns: ClassVar[int] = 0  #: columns of ``storage="paper"`` beside the m of a matrix
    index: Tensor

    def __init__(self, channels: int, storage: Storage = "free") -> None:
        super().__init__()
        self.channels = channels
        self.storage = _check.choice("storage", storage, ("free", "paper"))
        shape: tuple[int, ...] = (channels, channels + self.paper_columns)
        if storage == "free":
            shape = (channels * (channels + 1 - 2 * self.diagonal) // 2,)
        self.value = nn.Parameter(torch.empty(shape))
        self._make_buffers()
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw entries of variance :math:`1/m`, as Glorot does for a square matrix."""
        bound = math.sqrt(3.0 / self.channels)
        with torch.no_grad():
            self.value.uniform_(-bound, bound)

    def _make_buffers(self) -> None:
        """Make the buffers on the device of the numbers."""
        if self.storage == "free":
            index = _triangle_index(self.channels, self.diagonal, self.value.device)
            self.register_buffer("index", index, persistent=False)

    def _apply(self, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> Self:
        was_meta = self.value.is_meta
        super()._apply(fn, recurse)
        if was_meta:
            self._make_buffers()
        return self

    def _load_from_state_dict(self, *args: Any, **kwargs: Any) -> None:
        was_meta = self.value.is_meta
        super()._load_from_state_dict(*args, **kwargs)
        if was_meta:
            self._make_buffers()

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.channels}, storage={self.storage!r})"


class Antisymmetric(_FreeNumbers):
    r"""An antisymmetric matrix :math:`\mathbf{\Omega}_{as} = -\mathbf{\Omega}_{as}^\top`.

    Called without arguments, it returns the matrix ``[channels, channels]``.
    """

    diagonal = 1
    sign: Tensor

    def _make_buffers(self) -> None:
        super()._make_buffers()
        if self.storage == "free":
            upper = self.value.new_ones(self.channels, self.channels).triu(diagonal=1)
            self.register_buffer("sign", upper - upper.T, persistent=False)

    def forward(self) -> Tensor:
        """Return the matrix, ``[channels, channels]``."""
        if self.storage == "paper":
            return self.value - self.value.T
        if self.channels == 1:  # no free number: the only antisymmetric 1×1 matrix is zero
            return self.value.new_zeros(1, 1)
        return self.value[self.index] * self.sign.to(self.value.dtype)


class Symmetric(_FreeNumbers):
    r"""A symmetric matrix :math:`\mathbf{W}_s = \mathbf{W}_s^\top`.

    With ``storage="paper"``, the strict upper triangle of the first :math:`m` columns, mirrored,
    gives :math:`\mathbf{W}^0`, and the last two columns :math:`q, r` the diagonal
    :math:`q_i \sum_j |W^0_{ij}| + r_i`.

    Called without arguments, it returns the matrix ``[channels, channels]``.
    """

    diagonal = 0
    paper_columns = 2

    def forward(self) -> Tensor:
        """Return the matrix, ``[channels, channels]``."""
        if self.storage == "free":
            return self.value[self.index]
        upper = self.value[:, :-2].triu(diagonal=1)
        mirrored = upper + upper.T
        q, r = self.value[:, -2], self.value[:, -1]
        return mirrored + torch.diag(q * mirrored.abs().sum(dim=1) + r)


def _triangle_index(channels: int, diagonal: int, device: torch.device) -> Tensor:
    """``[m, m]``: which free number stands at (i, j) and (j, i)."""
    row, col = torch.triu_indices(channels, channels, offset=diagonal, device=device)
    index = torch.zeros(channels, channels, dtype=torch.int64, device=device)
    index[row, col] = index[col, row] = torch.arange(row.numel(), device=device)
    return index
