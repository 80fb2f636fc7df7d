"""The simulated accelerator refuses what a GPU refuses, and counts what a GPU is waited for."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import torch
from torch import Tensor

from tests.accelerator import DEVICE, recorded, without_float64

X = torch.arange(6.0).view(3, 2)


def test_tensors_are_made_there_and_come_back() -> None:
    for made in (X.to(DEVICE), torch.tensor(X.tolist(), device=DEVICE), X.clone().to("simulated")):
        assert made.device == DEVICE
        assert torch.equal(made.cpu(), X)
    assert torch.arange(3, device=DEVICE).tolist() == [0, 1, 2]
    assert torch.zeros(2, device=DEVICE).new_ones(3).device == DEVICE


def test_a_module_learns_there_as_on_the_cpu() -> None:
    found = []
    for device in ("cpu", DEVICE):
        torch.manual_seed(0)
        module = torch.nn.Sequential(torch.nn.Linear(2, 4), torch.nn.Tanh()).to(device)
        optimizer = torch.optim.Adam(module.parameters())
        module(X.to(device)).square().sum().backward()
        optimizer.step()
        found.append([parameter.detach().cpu() for parameter in module.parameters()])
        assert all(parameter.device == torch.device(device) for parameter in module.parameters())
    assert all(torch.equal(a, b) for a, b in zip(*found, strict=True))


@pytest.mark.parametrize(
    "mix",
    [
        lambda x: x + X,
        lambda x: X @ x.T,
        lambda x: x[torch.tensor([0, 1])],
        lambda x: torch.cat([x, X]),
        lambda x: x.index_add(0, torch.tensor([0, 1, 2]), x),
        lambda x: torch.nn.functional.linear(x, X),
    ],
)
def test_it_refuses_to_mix(mix: Callable[[Tensor], Tensor]) -> None:
    with pytest.raises(RuntimeError, match="expected all tensors to be on the same device"):
        mix(X.to(DEVICE))
    assert torch.equal((X.to(DEVICE) * torch.tensor(2.0)).cpu(), 2 * X)  # a number may be anywhere


def test_it_becomes_no_array() -> None:
    with pytest.raises(RuntimeError, match="numpy"):
        X.to(DEVICE).numpy()
    with pytest.raises((RuntimeError, TypeError), match="numpy"):
        np.asarray(X.to(DEVICE))


@pytest.mark.parametrize(
    ("call", "waits"),
    [
        (lambda x: x.sum().item(), 1),
        (lambda x: bool((x > 0).any()), 1),
        (lambda x: x.tolist(), 1),
        (lambda x: x.cpu(), 1),
        (lambda x: (x > 0).nonzero(), 1),
        (lambda x: x[x > 0], 1),
        (lambda x: torch.unique(x), 1),
        (lambda x: torch.equal(x, x), 1),
        (lambda x: torch.bincount(x[:, 0].long()), 1),
        (lambda x: torch.repeat_interleave(x, x[:, 0].long(), dim=0), 1),
        (lambda x: torch.repeat_interleave(x, x[:, 0].long(), dim=0, output_size=6), 0),
        (lambda x: x.new_tensor([1.0]), 1),
        (lambda x: x.new_full((), 1.0), 0),
        (lambda x: torch.where(x > 0, x, 0.0).sum(dim=0), 0),
        (lambda x: x.sort().values[x[:, 0].long() % 3], 0),
    ],
)
def test_waiting_is_counted(call: Callable[[Tensor], object], waits: int) -> None:
    x = X.to(DEVICE)
    with recorded() as found:
        call(x)
    assert sum(found.values()) == waits, found


def test_a_product_is_in_low_precision_under_autocast() -> None:
    x = X.to(DEVICE)
    with torch.autocast("simulated", torch.bfloat16):
        assert (x @ x.T).dtype == torch.bfloat16
        assert (x + x).dtype == torch.float32


def test_it_refuses_what_is_not_deterministic() -> None:
    x = X.to(DEVICE)
    torch.use_deterministic_algorithms(True)
    try:
        assert x.long().cumsum(0).tolist() == X.long().cumsum(0).tolist()
        with pytest.raises(RuntimeError, match="cumsum does not have a deterministic"):
            x.cumsum(0)
    finally:
        torch.use_deterministic_algorithms(False)


def test_it_can_do_without_float64() -> None:
    with without_float64(), pytest.raises(TypeError, match="no float64"):
        X.to(DEVICE).double()
    assert X.to(DEVICE).double().dtype == torch.float64
