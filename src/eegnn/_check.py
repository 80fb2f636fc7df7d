"""Argument checks: one sentence that names the argument, the value seen and what would be right."""

from __future__ import annotations

import math
import reprlib
import warnings
from collections.abc import Iterable, Sequence
from itertools import islice
from typing import Any

import torch
from torch import Tensor
from torch.utils.weak import WeakIdKeyDictionary

from eegnn._tracing import is_traced

#: Tensors whose entries are known to be finite, with their version counters.
_FINITE: WeakIdKeyDictionary = WeakIdKeyDictionary()


_REPR = reprlib.Repr()
_REPR.maxstring = _REPR.maxother = 120


def shown(value: Any) -> str:
    """Return the ``repr`` of a value for a message; of a long one, its beginning and its end."""
    return _REPR.repr(value)


def reason(error: BaseException) -> str:
    """Return what a library says of a file, cut: it may repeat a part of it."""
    text = str(error)
    return text if len(text) <= 300 else f"{text[:300]} …"


def listed(names: Iterable[str]) -> str:
    """Return names for a message; of very many the first, and of very long ones the beginning."""
    first = [str(name)[:80] for name in islice(names, 51)]
    return ", ".join(first[:50] + ["…"] * (len(first) > 50)) or "nothing"


def integer(name: str, value: Any, at_least: int, at_most: int | None = None) -> int:
    """Return ``value`` if it is an integer in this range."""
    if isinstance(value, bool) or not isinstance(value, int):
        raise TypeError(f"{name} must be an integer, got {shown(value)}")
    if value < at_least:
        raise ValueError(f"{name} must be at least {at_least}, got {value}")
    if at_most is not None and value > at_most:
        raise ValueError(f"{name} must be at most {at_most}, got {value}")
    return value


def number(name: str, value: Any, low: float, high: float = math.inf) -> float:
    """Return ``value`` if it is a finite number in ``[low, high]``."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise TypeError(f"{name} must be a number, got {shown(value)}")
    if not (low <= value <= high and math.isfinite(value)):
        span = f"in [{low:g}, {high:g}]" if math.isfinite(high) else f"at least {low:g}"
        raise ValueError(f"{name} must be {span}, got {value}")
    return float(value)


def boolean(name: str, value: Any) -> bool:
    """Return ``value`` if it is True or False."""
    if not isinstance(value, bool):
        raise TypeError(f"{name} must be True or False, got {shown(value)}")
    return value


def choice(name: str, value: Any, choices: Sequence[Any]) -> Any:
    """Return ``value`` if it is one of ``choices``."""
    if value not in choices:
        raise ValueError(
            f"{name} must be one of {', '.join(map(repr, choices))}, got {shown(value)}"
        )
    return value


def tensor(name: str, value: Any, sparse: bool = False) -> None:
    """Refuse what is not a dense tensor, or a sparse CSR matrix where ``sparse`` allows it."""
    if isinstance(value, torch.fx.Proxy):
        raise TypeError(
            f"{name} must be a torch.Tensor, got a torch.fx.Proxy: the model cannot be traced, as "
            f"PyG's to_hetero does; make the graph homogeneous first, by data.to_homogeneous()"
        )
    if not isinstance(value, Tensor):
        raise TypeError(f"{name} must be a torch.Tensor, got {type(value).__name__}")
    if value.layout != torch.strided and not (sparse and value.layout == torch.sparse_csr):
        raise TypeError(f"{name} must be a dense tensor, got {value.layout}: use {name}.to_dense()")
    if value.is_meta:
        raise ValueError(f"{name} is on the device meta, where tensors have no values")


def features(
    name: str,
    value: Any,
    rows: int | None,
    channels: int,
    dtype: torch.dtype,
    sparse: bool = False,
) -> None:
    """Refuse what is not a finite floating-point matrix ``[rows, channels]``."""
    tensor(name, value, sparse)
    if value.dim() != 2 or value.size(1) != channels or rows not in (None, value.size(0)):
        wanted = f"[{'N' if rows is None else rows}, {channels}]"
        raise ValueError(f"{name} must have shape {wanted}, got {list(value.shape)}")
    if not value.dtype.is_floating_point:
        raise TypeError(f"{name} must be floating point, got {value.dtype}: use {name}.float()")
    autocast = torch.is_autocast_enabled(value.device.type) and value.dtype != torch.float64
    if value.dtype != dtype and not autocast:
        raise TypeError(
            f"{name} has dtype {value.dtype}, but the model's weights are {dtype}: "
            f"convert one of them with .to()"
        )
    finite(name, value)


def finite(name: str, value: Tensor) -> None:
    """Refuse a matrix with NaN or infinite entries, or with such that overflow when multiplied.

    Entries that leave less than three digits of precision after the point are warned of. A tensor
    is looked at once, and again when its version counter tells of a change: on a GPU every look
    waits for the device. Where operators are traced there is nothing to look at.
    """
    if is_traced() or not value.numel():
        return
    if not value.is_inference() and _FINITE.get(value) == value._version:
        return
    entries = value.values() if value.layout == torch.sparse_csr else value
    if not entries.numel():
        return
    low, high = torch.stack(torch.aminmax(entries.detach())).tolist()
    largest, info = max(-low, high), torch.finfo(value.dtype)
    if not math.isfinite(largest):
        row = int((~value.to_dense().isfinite()).any(dim=1).nonzero()[0])
        raise ValueError(f"{name} holds NaN or infinite values, first in row {row}")
    if info.bits >= 32 and largest > 1e-3 / info.eps:
        if largest > info.max**0.5:
            raise ValueError(f"{name} holds values as large as {largest:g}: standardize it")
        warnings.warn(
            f"{name} holds values beyond {1e-3 / info.eps:.0e}, of which {value.dtype} keeps few "
            f"digits, so that results are inexact: standardize it, as by standardize=true in "
            f"training",
            stacklevel=2,
        )
    trust(value)


def trust(value: Tensor) -> Tensor:
    """Return a tensor that :func:`finite` need not look at: it was made of one that was checked."""
    if not value.is_inference():  # it has no version counter
        _FINITE[value] = value._version
    return value


def device(name: str, value: Any, wanted: torch.device, owner: str) -> None:
    """Refuse what is on another device than its ``owner``."""
    found = getattr(value, "device", wanted)
    if isinstance(found, torch.device) and found != wanted:
        raise ValueError(f"{name} is on {found}, but {owner} on {wanted}: move one of them")
