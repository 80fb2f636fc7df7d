"""The parts of a model that learn, and how large their gradients are."""

from __future__ import annotations

from torch import Tensor, nn
from torch.nn.utils import get_total_norm

from eegnn.nn.early_exit import EarlyExit


def parts_of(model: nn.Module) -> dict[str, list[nn.Parameter]]:
    r"""Return the parameters of each part of a model.

    A model with a ``loop`` of type :class:`~eegnn.EarlyExit` has the parts ``confidence``
    (:math:`f_c`), ``temperature`` (:math:`f_\nu`) and ``backbone``, which is everything else; any
    other model has ``backbone`` only.
    """
    loop = getattr(model, "loop", None)
    heads = (
        {"confidence": loop.confidence, "temperature": loop.temperature}
        if isinstance(loop, EarlyExit)
        else {}
    )
    parts = {
        name: list(head.parameters()) if isinstance(head, nn.Module) else []
        for name, head in heads.items()
    }
    known = {id(parameter) for part in parts.values() for parameter in part}
    parts["backbone"] = [p for p in model.parameters() if id(p) not in known]
    return parts


class GradientNorms:
    r"""The norm of the gradient of each part of a model, as a mean over the steps of an epoch.

    .. math::
        \frac{1}{S} \sum_{s=1}^{S} \lVert \nabla_{\theta} \mathcal{L}_s \rVert_2

    A head with norm 0 gets no signal: its decisions stay what they were at the start.

    Args:
        model: the model, see :func:`parts_of`.
    """

    def __init__(self, model: nn.Module) -> None:
        self._parts = parts_of(model)
        self._norms: list[list[Tensor]] = []

    def add(self) -> None:
        """Take the gradients of a step, before they are clipped; what has none counts as 0."""
        self._norms.append(
            [
                get_total_norm([p.grad for p in part if p.grad is not None])
                for part in self._parts.values()
            ]
        )

    def mean(self) -> dict[str, float]:
        """Return the mean of the steps since the last call, for each part."""
        steps, self._norms = self._norms, []
        return {
            part: sum(float(norm) for norm in norms) / len(norms)
            for part, norms in zip(self._parts, zip(*steps, strict=True), strict=True)
        }
