"""A simulated accelerator: tensors that claim another device and hold the numbers of the CPU.

They refuse to be mixed with tensors of the CPU and to become NumPy arrays, and their operations can
be recorded, so that what would be wrong or slow on a GPU fails or is counted on a machine without
one. PyTorch's own Python backend of the device type ``PrivateUse1`` carries them: nothing is
compiled, and modules, autograd and optimisers treat the device as any other.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import torch
from torch import Tensor
from torch.utils._pytree import tree_leaves, tree_map_only
from torch.utils.backend_registration import _setup_privateuseone_for_python_backend

aten = torch.ops.aten


class _DeviceModule:
    """What PyTorch asks of ``torch.simulated``.

    Random numbers are those of the CPU, so that they are the same on both. The state of the
    device's own is kept and means nothing.
    """

    random_state = torch.zeros(1, dtype=torch.uint8)

    def is_available(self) -> bool:
        return True

    is_initialized = is_available

    def device_count(self) -> int:
        return 1

    def current_device(self) -> int:
        return 0

    def synchronize(self, device: Any = None) -> None:
        _record("synchronize")

    def get_rng_state(self, device: Any = None) -> Tensor:
        return self.random_state

    def set_rng_state(self, state: Tensor, device: Any = None) -> None:
        self.random_state = state

    def manual_seed_all(self, seed: int) -> None:
        """The CPU was seeded already."""

    def get_amp_supported_dtype(self) -> list[torch.dtype]:
        return [torch.float16, torch.bfloat16]

    def _is_in_bad_fork(self) -> bool:
        return False


_setup_privateuseone_for_python_backend("simulated", backend_module=_DeviceModule())
DEVICE = torch.device("simulated", 0)

#: Operations after which the host waits for a GPU, since it must know a number or a size.
WAITS = {
    aten._local_scalar_dense,
    aten.nonzero,
    aten.masked_select,
    aten._unique2,
    aten.unique_dim,
    aten.unique_consecutive,
    aten.equal,
    aten.bincount,
}
#: Operations on floating-point numbers that CUDA refuses under ``use_deterministic_algorithms``.
NOT_DETERMINISTIC = {aten.cumsum, aten.histc, aten.kthvalue, aten.median, aten.put_}
#: What is counted, and refused, inside :func:`recorded` and :func:`without_float64`.
_records: list[Counter[str]] = []
_float64_refused = False


class SimulatedTensor(Tensor):
    """A tensor on the simulated accelerator; ``raw`` has its numbers."""

    raw: Tensor

    @staticmethod
    def __new__(cls, raw: Tensor) -> SimulatedTensor:
        place: dict[str, Any] = {"layout": raw.layout}
        if raw.layout == torch.strided:
            place = {"strides": raw.stride(), "storage_offset": raw.storage_offset()}
        if _float64_refused and raw.dtype in (torch.float64, torch.complex128):
            raise TypeError("the simulated device has no float64, as MPS has none")
        tensor: SimulatedTensor = torch.Tensor._make_wrapper_subclass(
            cls, raw.size(), dtype=raw.dtype, device=DEVICE, **place
        )
        tensor.raw = raw
        return tensor

    @classmethod
    def __torch_dispatch__(  # type: ignore[override]
        cls, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        return _run(func, args, kwargs or {})

    def tolist(self) -> Any:
        return self.cpu().tolist()

    def __repr__(self) -> str:  # type: ignore[override]
        return f"simulated({self.raw!r})"


def _run(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Compute with the numbers of the CPU, and put the result where it belongs."""
    op = func.overloadpacket
    inputs = [value for value in tree_leaves((args, kwargs)) if isinstance(value, Tensor)]
    device = None if kwargs.get("device") is None else torch.device(kwargs["device"])
    if op is aten.copy_:
        _record_transfer(args[1].device, args[0].device)
    elif op is aten._to_copy:
        _record_transfer(inputs[0].device, device or inputs[0].device)
    else:
        _refuse(op, inputs)
    if op in WAITS or _reads_sizes(op, args, kwargs):
        _record(op.__name__)
    if device is not None:
        kwargs = {**kwargs, "device": torch.device("cpu")}
    raw_args, raw_kwargs = tree_map_only(SimulatedTensor, lambda t: t.raw, (args, kwargs))
    out = func(*raw_args, **raw_kwargs)
    if not func._schema.returns or (device is not None and device.type == "cpu"):
        return out
    if op.__name__.endswith("_") and inputs:  # in place
        return args[0]
    return tree_map_only(Tensor, SimulatedTensor, out)


def _refuse(op: Any, inputs: list[Tensor]) -> None:
    """Refuse what a GPU would; a single number may stay on the CPU, anything larger may not."""
    strange = [x for x in inputs if not isinstance(x, SimulatedTensor) and x.dim() > 0]
    if strange:
        raise RuntimeError(
            f"{op.__name__}: expected all tensors to be on the same device, but found one of shape "
            f"{list(strange[0].shape)} on {strange[0].device} beside {DEVICE}"
        )
    deterministic = torch.are_deterministic_algorithms_enabled()
    if deterministic and op in NOT_DETERMINISTIC and inputs[0].is_floating_point():
        raise RuntimeError(f"{op.__name__} does not have a deterministic implementation")


def _reads_sizes(op: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    """Whether the size of the result is that of a mask, or a sum of numbers on the device."""
    if op is aten.repeat_interleave:
        return kwargs.get("output_size") is None
    if op in (aten.index, aten.index_put, aten.index_put_, aten._index_put_impl_):
        return any(i is not None and i.dtype in (torch.bool, torch.uint8) for i in args[1])
    return False


def _record_transfer(source: torch.device, target: torch.device) -> None:
    if source.type != target.type:
        _record("to the CPU" if target.type == "cpu" else "from the CPU")


def _record(what: str) -> None:
    for record in _records:
        record[what] += 1


@contextmanager
def recorded() -> Iterator[Counter[str]]:
    """Yield how often the host waits for the device in here, and data is sent, by name."""
    record: Counter[str] = Counter()
    _records.append(record)
    try:
        yield record
    finally:
        _records.remove(record)


@contextmanager
def without_float64() -> Iterator[None]:
    """Refuse float64 in here, as MPS does."""
    global _float64_refused
    _float64_refused = True
    try:
        yield
    finally:
        _float64_refused = False


def _fallback(func: Any, *args: Any, **kwargs: Any) -> Any:
    """Operations without a tensor of the device, such as ``torch.zeros(3, device=DEVICE)``."""
    return _run(func, args, kwargs)


def _copy_from(source: Tensor, target: Tensor, non_blocking: bool = False) -> Tensor:
    """What ``torch.tensor([1.0], device=DEVICE)`` calls."""
    out: Tensor = _run(aten.copy_.default, (target, source), {})
    return out


def _in_low_precision(func: Any, *args: Any, **kwargs: Any) -> Any:
    """What autocast does to a product."""
    dtype = torch.get_autocast_dtype("simulated")
    key = torch._C.DispatchKeySet(torch._C._dispatch_key_parse("AutocastPrivateUse1"))
    with torch._C._ExcludeDispatchKeyGuard(key):
        cast = lambda x: x.to(dtype) if x.dtype == torch.float32 else x  # noqa: E731
        return func(*tree_map_only(Tensor, cast, args), **kwargs)


_LIBRARIES = [torch.library.Library("_", "IMPL"), torch.library.Library("aten", "IMPL")]
_LIBRARIES[0].fallback(_fallback, "PrivateUse1")
_LIBRARIES[1].impl("_copy_from", _copy_from, "PrivateUse1")
_LIBRARIES[0].fallback(torch.library.fallthrough_kernel, "AutocastPrivateUse1")
for _name in ("mm", "addmm", "mv", "bmm", "matmul", "linear"):
    _product = getattr(aten, _name).default
    _LIBRARIES[1].impl(_name, partial(_in_low_precision, _product), "AutocastPrivateUse1")
# PyTorch would make an empty tensor and change its size, which a wrapper cannot.
for _name in ("arange", "arange.start", "arange.start_step", "eye", "linspace", "randperm"):
    _packet, _, _overload = _name.partition(".")
    _op = getattr(getattr(aten, _packet), _overload or "default")
    _LIBRARIES[1].impl(_name, partial(_fallback, _op), "PrivateUse1")
# Python runs in these operations, which the threads that autograd starts for a device must not
# outlive: the backward pass stays in the thread that asks for it.
torch.autograd.set_multithreading_enabled(False)
