"""Where a model runs and in which precision."""

from __future__ import annotations

import os
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any, Literal, get_args

import torch
from torch import Tensor
from torch.amp.grad_scaler import GradScaler

from eegnn import _check

#: As Lightning names them: everything in float32, or products in 16 bits and sums in 32.
Precision = Literal["32", "bf16-mixed", "16-mixed"]
_PRODUCTS = {"bf16-mixed": torch.bfloat16, "16-mixed": torch.float16}


_CPU_DEVICE = torch.device("cpu")


@dataclass(frozen=True)
class Compute:
    """A device and a precision.

    They belong to the way a run is done, not to what it is: no setting of a
    :class:`~eegnn.train.config.Config`, and a run may go on with others.

    Attributes:
        device: where weights and data are.
        precision: ``"32"``; or of products in training and evaluation, ``"bf16-mixed"`` and
            ``"16-mixed"``, with weights and states in float32 (:class:`torch.autocast`).
    """

    device: torch.device = _CPU_DEVICE
    precision: Precision = "32"

    @classmethod
    def choose(cls, device: str = "auto", precision: str = "32") -> Compute:
        """Return what these names mean on this machine.

        Args:
            device: ``"cpu"``, ``"cuda"``, ``"cuda:1"`` or ``"mps"``; ``"auto"`` for CUDA, else MPS,
                else the CPU. Of the processes of ``torchrun`` each takes the CUDA device of its
                own number.
            precision: see :data:`Precision`.

        Raises:
            ValueError: there is no such device or precision.
        """
        _check.choice("precision", precision, get_args(Precision))
        found = _device(_automatic() if device == "auto" else device)
        if found.type == "cuda":
            torch.cuda.set_device(found)  # its random numbers, and collective operations
        return cls(found, precision)  # type: ignore[arg-type]

    def autocast(self) -> AbstractContextManager[Any]:
        """Return the context of a forward pass."""
        if self.precision == "32":
            return nullcontext()
        return torch.autocast(self.device.type, _PRODUCTS[self.precision])

    def scaler(self) -> GradScaler:
        """Return what scales a loss, so that gradients do not vanish in float16."""
        return GradScaler(self.device.type, enabled=self.precision == "16-mixed")

    def synchronize(self) -> None:
        """Wait until the device has finished its work, so that it can be timed."""
        if self.device.type != "cpu":
            torch.get_device_module(self.device).synchronize()

    def random_state(self) -> Tensor | None:
        """Return the state of the device's own random numbers; ``None`` for the CPU."""
        if self.device.type == "cpu":
            return None
        return torch.get_device_module(self.device).get_rng_state()

    def set_random_state(self, state: Tensor) -> None:
        """Go on with what :meth:`random_state` returned."""
        torch.get_device_module(self.device).set_rng_state(state)

    def as_dict(self) -> dict[str, str]:
        """Return the names of device and precision, for records."""
        return {"device": str(self.device), "precision": self.precision}


#: Single precision on the CPU.
CPU = Compute()


def _automatic() -> str:
    if torch.cuda.is_available():
        return "cuda"
    return "mps" if torch.backends.mps.is_available() and _processes() == 1 else "cpu"


def _processes() -> int:
    """Return how many processes ``torchrun`` started."""
    return int(os.environ.get("WORLD_SIZE", "1"))


def _device(name: str) -> torch.device:
    """Return a device that is here, with a number where it has one."""
    try:
        device = torch.device(name)
        module = torch.get_device_module(device)
    except RuntimeError:
        raise ValueError(f"device must be auto, cpu, cuda, cuda:N or mps, got {name!r}") from None
    if device.type == "cpu":
        return _CPU_DEVICE
    if not module.is_available():
        raise ValueError(
            f"device must be one that this machine has, got {name!r}: PyTorch {torch.__version__} "
            f"finds no {device.type.upper()} device"
        )
    if _processes() > 1 and (device.type != "cuda" or device.index is not None):
        raise ValueError(
            f"device must be cpu or cuda with torchrun, without a number, got {name!r}"
        )
    index = int(os.environ.get("LOCAL_RANK", "0")) if device.index is None else device.index
    if index >= module.device_count():
        raise ValueError(
            f"device must be one of the {module.device_count()} that this machine has, got "
            f"{device.type}:{index}"
        )
    return torch.device(device.type, index)
