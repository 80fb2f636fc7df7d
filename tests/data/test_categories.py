from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from torch import Tensor, nn

from eegnn.data.categories import ATOMS, BONDS, check_categories, one_hot, width


def by_hand(features: NDArray[Any], sizes: tuple[int, ...]) -> list[list[float]]:
    """One row after the other, one column after the other."""
    rows = []
    for row in features.tolist():
        made: list[float] = []
        for code, size in zip(row, sizes, strict=False):
            made += [1.0 if kind == code else 0.0 for kind in range(size)]
        rows.append(made + row[len(sizes) :])
    return rows


def drawn(n: int, sizes: tuple[int, ...], numbers: int = 0, seed: int = 0) -> NDArray[np.float64]:
    generator = np.random.default_rng(seed)
    codes = generator.integers(0, sizes, size=(n, len(sizes)))
    return np.concatenate([codes, generator.integers(-9, 9, (n, numbers)) / 8], axis=1)


@settings(deadline=None)
@given(
    st.lists(st.integers(1, 5), min_size=1, max_size=4).map(tuple),
    st.integers(0, 5),
    st.integers(0, 3),
)
def test_every_kind_gets_a_column(sizes: tuple[int, ...], n: int, numbers: int) -> None:
    features = drawn(n, sizes, numbers)
    found = one_hot(torch.from_numpy(features), sizes)
    assert found.tolist() == by_hand(features, sizes)
    assert found.size(1) == width(features.shape[1], sizes)


def test_integers_become_float32_and_numbers_keep_their_precision() -> None:
    codes = torch.tensor([[1, 0], [0, 2]])
    assert one_hot(codes, (2, 3)).dtype == torch.float32
    assert one_hot(codes.int(), (2, 3)).tolist() == [[0, 1, 1, 0, 0], [1, 0, 0, 0, 1]]
    for dtype in (torch.float32, torch.float64):
        assert one_hot(codes.to(dtype), (2, 3)).dtype == dtype


def test_without_categories_nothing_is_copied() -> None:
    x = torch.rand(3, 2)
    assert one_hot(x, ()) is x
    assert width(2, ()) == 2


def test_a_linear_layer_on_them_is_a_sum_of_embeddings() -> None:
    tables = [nn.Embedding(size, 4) for size in ATOMS]
    codes = torch.from_numpy(drawn(20, ATOMS)).long()
    expected: Tensor = sum(table(codes[:, k]) for k, table in enumerate(tables))
    weight = torch.cat([table.weight for table in tables])
    assert torch.allclose(one_hot(codes, ATOMS) @ weight, expected, atol=1e-6)


def test_the_sizes_are_those_of_ogb() -> None:
    features = pytest.importorskip("ogb.utils.features")
    assert list(ATOMS) == features.get_atom_feature_dims()
    assert list(BONDS) == features.get_bond_feature_dims()


@pytest.mark.parametrize(
    ("value", "shown"), [(3.0, "3"), (-1.0, "-1"), (1.5, "1.5"), (float("nan"), "nan"), (1e9, "1e")]
)
def test_what_is_no_category_is_named(value: float, shown: str) -> None:
    features = torch.zeros(5, 3)
    features[4, 1] = value
    with pytest.raises(ValueError, match=rf"x: column 1 must hold .* in 0 … 2, got {shown}"):
        check_categories("x", features, (2, 3))
    features[4, 1], features[4, 2] = 2, value
    if not np.isnan(value):
        check_categories("x", features, (2, 3))
        assert one_hot(features, (2, 3))[4].tolist() == pytest.approx([1, 0, 0, 0, 1, value])


def test_integers_out_of_range_are_named() -> None:
    with pytest.raises(ValueError, match=r"edge_attr: column 0 .* in 0 … 4, got 5"):
        check_categories("edge_attr", torch.tensor([[4, 0, 0], [5, 0, 0]]), BONDS)


def test_columns_that_are_missing_are_missed() -> None:
    with pytest.raises(ValueError, match=r"x must have shape \[n, 9 or more\].*got \[3, 8\]"):
        check_categories("x", torch.zeros(3, 8), ATOMS)
