"""What is monitored while a model trains: the norms of its gradients, and its exits."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn
from torch.nn.utils import get_total_norm

from eegnn.nn.early_exit import EarlyExit
from eegnn.nn.exit_model import ExitModel
from eegnn.nn.exits import Exits
from eegnn.nn.model import GraphModel
from eegnn.train.config import Config

#: Exits have collapsed when this share of the units leaves at layer 1 for this many epochs.
COLLAPSED_SHARE, COLLAPSED_EPOCHS = 0.95, 10
#: Exits are unused when no unit leaves early for this share of all epochs, and at least this many.
UNUSED_SHARE, UNUSED_EPOCHS = 0.2, 20


class GradientNorms:
    r"""The norm of the gradient of each part of a model, as a mean over the steps of an epoch.

    .. math::
        \frac{1}{S} \sum_{s=1}^{S} \lVert \nabla_{\theta} \mathcal{L}_s \rVert_2

    A model with a ``loop`` of type :class:`~eegnn.EarlyExit` has the parts ``confidence``
    (:math:`f_c`), ``temperature`` (:math:`f_\nu`) and ``backbone``, which is everything else; any
    other model has ``backbone`` only. A head with norm 0 gets no signal: its decisions stay what
    they were at the start.

    Args:
        model: the model that is trained.
    """

    def __init__(self, model: nn.Module) -> None:
        self._parts: dict[str, list[nn.Parameter]] = {}
        loop = getattr(model, "loop", None)
        if isinstance(loop, EarlyExit):
            for name, head in (("confidence", loop.confidence), ("temperature", loop.temperature)):
                self._parts[name] = list(head.parameters()) if isinstance(head, nn.Module) else []
        in_heads = {id(parameter) for head in self._parts.values() for parameter in head}
        self._parts["backbone"] = [p for p in model.parameters() if id(p) not in in_heads]
        self._steps: list[Tensor] = []

    def add(self) -> None:
        """Record the gradients of a step, before they are clipped; a missing one counts as 0."""
        self._steps.append(torch.stack([_norm(part) for part in self._parts.values()]))

    def mean(self) -> dict[str, float]:
        """Return the mean over the steps since the last call, for each part."""
        steps, self._steps = torch.stack(self._steps).tolist(), []  # a GPU is waited for here alone
        return {
            part: sum(norms) / len(norms)
            for part, norms in zip(self._parts, zip(*steps, strict=True), strict=True)
        }


def _norm(part: list[nn.Parameter]) -> Tensor:
    """The norm of the gradients of some parameters, where these are."""
    found = get_total_norm([p.grad for p in part if p.grad is not None])
    return found.to(part[0].device) if part else found


class ExitMonitor:
    """Looks at the exits after each epoch, and gives each of two warnings once.

    * *Collapse*: all units left at layer 1, or nearly all for ten epochs in a row.
    * *Unused exits*: all units went to the full depth for a fifth of the epochs in a row. Nothing
      is lost, but nothing is saved either.

    Args:
        config: of the run.
        model: the model that is trained; there are no warnings for one without exits.
    """

    def __init__(self, config: Config, model: GraphModel) -> None:
        self._has_exits = isinstance(model, ExitModel) and model.num_layers > 1
        self._cost_weight = config.cost_weight
        self._unused_limit = max(UNUSED_EPOCHS, math.ceil(UNUSED_SHARE * config.epochs))
        self._collapsed_epochs = self._unused_epochs = 0  # in a row
        self._warned_of: set[str] = set()

    def check(self, epoch: int, exits: Exits) -> str | None:
        """Return the warning that is due, if any.

        Args:
            epoch: counted from 1.
            exits: of the validation part.
        """
        if not self._has_exits:
            return None
        collapsed = bool((exits.layer == 1).double().mean() >= COLLAPSED_SHARE)
        self._collapsed_epochs = self._collapsed_epochs + 1 if collapsed else 0
        unused = bool((exits.layer == exits.num_layers).all())
        self._unused_epochs = self._unused_epochs + 1 if unused else 0

        if exits.collapsed or self._collapsed_epochs == COLLAPSED_EPOCHS:
            return self._once("collapse", self._collapse_warning(epoch, exits))
        if self._unused_epochs == self._unused_limit:
            return self._once("unused", self._unused_warning(exits))
        return None

    def _once(self, kind: str, warning: str) -> str | None:
        if kind in self._warned_of:
            return None
        self._warned_of.add(kind)
        return warning

    def _collapse_warning(self, epoch: int, exits: Exits) -> str:
        what = (
            f"all units left at layer 1 at epoch {epoch}"
            if exits.collapsed
            else f"{COLLAPSED_SHARE:.0%} or more left at layer 1 in the {COLLAPSED_EPOCHS} epochs "
            f"up to {epoch}"
        )
        change = "a larger options.continue_bias"
        if self._cost_weight > 0:
            change += f" or a smaller cost_weight (now {self._cost_weight:g})"
        return f"{what}: if that lasts, train again with {change}"

    def _unused_warning(self, exits: Exits) -> str:
        change = "a small cost_weight such as 0.01"
        if self._cost_weight > 0:
            change = f"a larger cost_weight (now {self._cost_weight:g})"
        return (
            f"no unit left before layer {exits.num_layers} in {self._unused_limit} epochs in a "
            f"row: for earlier exits, train again with {change}"
        )
