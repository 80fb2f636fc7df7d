from __future__ import annotations

import pickle

import pytest
import torch

from eegnn.compute import CPU, Compute
from tests.accelerator import DEVICE


@pytest.fixture(autouse=True)
def _alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("WORLD_SIZE", raising=False)
    monkeypatch.delenv("LOCAL_RANK", raising=False)


def pretend(monkeypatch: pytest.MonkeyPatch, cuda: int = 0, mps: bool = False) -> None:
    """Let PyTorch find these devices."""
    monkeypatch.setattr(torch.cuda, "is_available", lambda: cuda > 0)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: cuda)
    monkeypatch.setattr(torch.cuda, "set_device", lambda device: None)
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: mps)
    monkeypatch.setattr(torch.mps, "is_available", lambda: mps)
    monkeypatch.setattr(torch.mps, "device_count", lambda: int(mps))


@pytest.mark.parametrize(
    ("cuda", "mps", "device"),
    [(2, True, "cuda:0"), (1, False, "cuda:0"), (0, True, "mps:0"), (0, False, "cpu")],
)
def test_auto_is_cuda_then_mps_then_the_cpu(
    monkeypatch: pytest.MonkeyPatch, cuda: int, mps: bool, device: str
) -> None:
    pretend(monkeypatch, cuda, mps)
    assert Compute.choose().device == torch.device(device)


@pytest.mark.parametrize("name", ["cuda", "cuda:1", "mps", "xpu"])
def test_a_device_that_is_not_here_is_refused(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    pretend(monkeypatch)
    kind = name.split(":")[0].upper()
    with pytest.raises(ValueError, match=rf"device must be .* got '{name}': .* finds no {kind}"):
        Compute.choose(name)


@pytest.mark.parametrize("name", ["gpu", "meta", "", "cuda:x", "auto:1"])
def test_what_is_no_device_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match=r"device must be auto, cpu, cuda, cuda:N or mps, got"):
        Compute.choose(name)


def test_a_number_beyond_the_last_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    pretend(monkeypatch, cuda=2)
    assert Compute.choose("cuda:1").device == torch.device("cuda:1")
    with pytest.raises(ValueError, match="one of the 2 that this machine has, got cuda:2"):
        Compute.choose("cuda:2")


def test_each_process_of_torchrun_has_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    pretend(monkeypatch, cuda=2)
    monkeypatch.setenv("WORLD_SIZE", "3")
    for rank in (0, 1):
        monkeypatch.setenv("LOCAL_RANK", str(rank))
        assert Compute.choose("cuda").device == torch.device("cuda", rank)
    monkeypatch.setenv("LOCAL_RANK", "2")
    with pytest.raises(ValueError, match="one of the 2 that this machine has, got cuda:2"):
        Compute.choose("cuda")
    assert Compute.choose("cpu") == CPU
    with pytest.raises(ValueError, match=r"with torchrun, without a number, got 'cuda:1'"):
        Compute.choose("cuda:1")
    pretend(monkeypatch, mps=True)
    assert Compute.choose("auto") == CPU
    with pytest.raises(ValueError, match=r"must be cpu or cuda with torchrun"):
        Compute.choose("mps")


def test_precisions_are_those_of_lightning() -> None:
    with pytest.raises(ValueError, match="precision must be one of '32', 'bf16-mixed', '16-mixed'"):
        Compute.choose("cpu", "16")
    product = torch.ones(2, 2)
    for precision, dtype in (
        ("32", torch.float32),
        ("bf16-mixed", torch.bfloat16),
        ("16-mixed", torch.float16),
    ):
        compute = Compute.choose("cpu", precision)
        with compute.autocast():
            assert (product @ product).dtype == dtype
        assert compute.scaler().is_enabled() is (precision == "16-mixed")
        assert compute.as_dict() == {"device": "cpu", "precision": precision}


def test_it_travels_to_other_processes() -> None:
    compute = Compute.choose("simulated", "bf16-mixed")
    assert compute.device == DEVICE
    assert pickle.loads(pickle.dumps(compute)) == compute


def test_the_cpu_has_no_random_numbers_beside_its_own() -> None:
    assert CPU.random_state() is None
    CPU.synchronize()
    simulated = Compute(DEVICE)
    simulated.set_random_state(torch.tensor([3], dtype=torch.uint8))
    state = simulated.random_state()
    assert state is not None
    assert state.tolist() == [3]
