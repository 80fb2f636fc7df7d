"""Whether the compiled kernels are used: they are where Numba is installed."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import lru_cache
from importlib import import_module
from types import ModuleType

import torch
from torch import Tensor

_ALONE = ContextVar("alone", default=False)


def kernels_for(h: Tensor) -> ModuleType | None:
    """Return :mod:`eegnn.nn.kernels` if these states are for it: ``float32`` on a CPU."""
    plain = h.dtype == torch.float32 and h.device.type == "cpu" and type(h) is Tensor
    if not plain or _ALONE.get() or torch.compiler.is_compiling():
        return None
    return _kernels()


@contextmanager
def pytorch_alone() -> Iterator[None]:
    """Do without the kernels, to compare."""
    token = _ALONE.set(True)
    try:
        yield
    finally:
        _ALONE.reset(token)


@lru_cache(maxsize=1)
def _kernels() -> ModuleType | None:
    try:
        return import_module("eegnn.nn.kernels")
    except (ImportError, RuntimeError):  # the latter where nothing can be kept on disk
        return None
