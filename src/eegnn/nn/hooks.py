"""Hooks of PyTorch: where there are some, modules are called as modules."""

from __future__ import annotations

from typing import Any

from torch import nn


def is_hooked(*modules: Any) -> bool:
    """Whether a hook is registered on one of these modules, or on one within it."""
    return any(
        part._forward_hooks
        or part._forward_pre_hooks
        or part._backward_hooks
        or part._backward_pre_hooks
        for module in modules
        if isinstance(module, nn.Module)
        for part in module.modules()
    )
