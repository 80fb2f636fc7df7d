"""Whether operators are recorded or transformed instead of merely run."""

from __future__ import annotations

import torch


def is_traced() -> bool:
    """Whether ``torch.compile`` or ``torch.export`` records, or ``torch.func`` transforms.

    Then no Python decision may depend on the value of a tensor, and only operators of PyTorch are
    known. ``torch.autograd.Function`` asks the same before it is applied.
    """
    return torch.compiler.is_compiling() or torch._C._are_functorch_transforms_active()


def is_passing() -> bool:
    """Whether tensors made now end with the trace: those of ``torch.export`` and ``torch.func``.

    What outlives a forward pass must not keep them. The compiler's tensors are real afterwards.
    """
    return is_traced() and (torch.compiler.is_exporting() or not torch.compiler.is_compiling())
