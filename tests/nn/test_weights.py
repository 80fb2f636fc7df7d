from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from eegnn.nn.weights import Antisymmetric, Storage, Symmetric

STORAGES: tuple[Storage, ...] = ("free", "paper")


@pytest.mark.parametrize("storage", STORAGES)
@pytest.mark.parametrize("channels", [1, 2, 5])
def test_matrices_have_their_symmetry_exactly(channels: int, storage: Storage) -> None:
    omega, weight = Antisymmetric(channels, storage)(), Symmetric(channels, storage)()
    assert omega.shape == weight.shape == (channels, channels)
    assert torch.equal(omega, -omega.T)
    assert torch.equal(weight, weight.T)
    assert weight.abs().sum() > 0
    assert (omega.abs().sum() > 0) == (channels > 1)


@pytest.mark.parametrize("storage", STORAGES)
def test_symmetry_survives_an_optimiser(storage: Storage) -> None:
    torch.manual_seed(0)
    omega, weight = Antisymmetric(4, storage), Symmetric(4, storage)
    start = omega().detach().clone(), weight().detach().clone()
    optimiser = torch.optim.Adam([*omega.parameters(), *weight.parameters()], lr=0.1)
    target = torch.randn(4, 4)
    for _ in range(3):
        optimiser.zero_grad()
        ((omega() - target).pow(2).sum() + (weight() - target).pow(2).sum()).backward()
        optimiser.step()
    assert not torch.equal(omega(), start[0])
    assert not torch.equal(weight(), start[1])
    assert torch.equal(omega(), -omega().T)
    assert torch.equal(weight(), weight().T)


@pytest.mark.parametrize(
    ("storage", "antisymmetric", "symmetric"), [("free", 10, 15), ("paper", 25, 35)]
)
def test_number_of_stored_values(storage: Storage, antisymmetric: int, symmetric: int) -> None:
    assert sum(p.numel() for p in Antisymmetric(5, storage).parameters()) == antisymmetric
    assert sum(p.numel() for p in Symmetric(5, storage).parameters()) == symmetric


def test_free_numbers_fill_the_triangles_row_by_row() -> None:
    omega, weight = Antisymmetric(3), Symmetric(3)
    with torch.no_grad():
        omega.value.copy_(torch.tensor([1.0, 2.0, 3.0]))
        weight.value.copy_(torch.tensor([1.0, 2.0, 3.0, 4.0, 5.0, 6.0]))
    assert omega().tolist() == [[0, 1, 2], [-1, 0, 3], [-2, -3, 0]]
    assert weight().tolist() == [[1, 2, 3], [2, 4, 5], [3, 5, 6]]


def test_paper_storage_is_graffs_diagonally_dominant_form() -> None:
    weight = Symmetric(4, "paper")
    value = weight.value.detach().double().numpy()
    expected = np.zeros((4, 4))
    for i in range(4):
        for j in range(i + 1, 4):
            expected[i, j] = expected[j, i] = value[i, j]
    for i in range(4):
        expected[i, i] = value[i, 4] * np.abs(expected[i]).sum() + value[i, 5]
    np.testing.assert_allclose(weight().detach().numpy(), expected, rtol=1e-6, atol=1e-7)


def test_paper_storage_antisymmetrises_by_the_difference() -> None:
    omega = Antisymmetric(3, "paper")
    assert torch.equal(omega(), omega.value - omega.value.T)


@pytest.mark.parametrize("storage", STORAGES)
@pytest.mark.parametrize("kind", [Antisymmetric, Symmetric])
def test_gradients_are_right(kind: type[Antisymmetric] | type[Symmetric], storage: Storage) -> None:
    module = kind(3, storage).double()

    def matrix(value: torch.Tensor) -> torch.Tensor:
        return torch.func.functional_call(module, {"value": value}, ())

    assert torch.autograd.gradcheck(matrix, (module.value.detach().requires_grad_(),))


@pytest.mark.parametrize("kind", [Antisymmetric, Symmetric])
def test_free_entries_start_with_variance_one_over_the_width(
    kind: type[Antisymmetric] | type[Symmetric],
) -> None:
    torch.manual_seed(0)
    value = kind(200).value.detach()
    bound = math.sqrt(3 / 200)
    assert value.abs().max() <= bound
    assert value.abs().max() > 0.99 * bound
    assert value.var().item() == pytest.approx(1 / 200, rel=0.05)


@pytest.mark.parametrize("storage", STORAGES)
@pytest.mark.parametrize("kind", [Antisymmetric, Symmetric])
def test_reset_draws_anew(kind: type[Antisymmetric] | type[Symmetric], storage: Storage) -> None:
    module = kind(4, storage)
    before = module().detach().clone()
    module.reset_parameters()
    assert not torch.equal(module(), before)


@pytest.mark.parametrize("kind", [Antisymmetric, Symmetric])
def test_an_unknown_storage_is_refused(kind: type[Antisymmetric] | type[Symmetric]) -> None:
    with pytest.raises(ValueError, match="storage must be one of 'free', 'paper', got 'dense'"):
        kind(3, "dense")  # type: ignore[arg-type]


def test_repr() -> None:
    assert repr(Antisymmetric(3)) == "Antisymmetric(3, storage='free')"
    assert repr(Symmetric(3, "paper")) == "Symmetric(3, storage='paper')"
