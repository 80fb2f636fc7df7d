"""Categorical features, such as the element of an atom, as one-hot columns."""

from __future__ import annotations

from itertools import accumulate

import torch
from torch import Tensor

#: Number of categories in each column of OGB's molecules (``ogb.utils.features``).
ATOMS = (119, 5, 12, 12, 10, 6, 6, 2, 2)
BONDS = (5, 6, 2)


def width(columns: int, sizes: tuple[int, ...]) -> int:
    """Number of columns after :func:`one_hot`."""
    return columns - len(sizes) + sum(sizes)


def one_hot(features: Tensor, sizes: tuple[int, ...]) -> Tensor:
    r"""Replace each categorical column by one column for each category, 0 or 1.

    A linear layer on these columns is the sum of one embedding for each categorical column, as in
    OGB's encoders: :math:`\sum_k \mathbf{e}_{c_k}\mathbf{W}_k = \sum_k \mathbf{W}_k[c_k]`. So
    models need no embeddings.

    Args:
        features: ``[n, len(sizes) + F]``: categories, which may be whole floating-point numbers and
            are in range (:func:`check_categories`), then F numbers.
        sizes: number of categories in each of the first columns; empty where there are none.

    Returns:
        ``[n, sum(sizes) + F]``, floating point; ``features`` itself where ``sizes`` is empty.
    """
    if not sizes:
        return features
    codes, rest = features[:, : len(sizes)].long(), features[:, len(sizes) :]
    dtype = features.dtype if features.is_floating_point() else torch.get_default_dtype()
    encoded = features.new_zeros(len(features), sum(sizes), dtype=dtype)
    # Column by column: a tensor of all first columns would have to be sent to a GPU each time.
    for code, first in zip(codes.T, accumulate(sizes, initial=0), strict=False):
        encoded.scatter_(1, (code + first).unsqueeze(1), 1.0)
    return torch.cat([encoded, rest.to(dtype)], dim=1) if rest.size(1) else encoded


def check_categories(name: str, features: Tensor, sizes: tuple[int, ...]) -> None:
    """Refuse features whose first columns are no categories; ``name`` is what they are called."""
    if not sizes:
        return
    check_columns(name, features, sizes)
    given = features[:, : len(sizes)]
    codes = given.long()
    wrong = (codes != given) | (codes < 0) | (codes >= torch.tensor(sizes))
    if bool(wrong.any()):
        row, column = wrong.nonzero()[0].tolist()
        raise ValueError(
            f"{name}: column {column} must hold categories, whole numbers in "
            f"0 … {sizes[column] - 1}, got {given[row, column].item():g}"
        )


def check_columns(name: str, features: Tensor, sizes: tuple[int, ...]) -> None:
    """Refuse features with fewer columns than there are categories."""
    if sizes and (features.dim() != 2 or features.size(1) < len(sizes)):
        raise ValueError(
            f"{name} must have shape [n, {len(sizes)} or more], for {len(sizes)} columns hold "
            f"categories, got {list(features.shape)}"
        )
