"""Early exit on any backbone: the models EE+GCN, EE+SAGE, … of the paper's appendix."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass

from eegnn import _check
from eegnn.nn.exit_model import ExitModel
from eegnn.typing import Step
from eegnn.zoo.registry import ENTRIES, STEPS, find


@dataclass(eq=False, repr=False)
class EEModel(ExitModel):
    r"""The exit loop over the step of another model.

    .. math::
        \mathbf{H}^{l+1} = \mathbf{H}^l + \boldsymbol\tau^l\,\mathrm{step}(\mathbf{H}^l)

    This is Algorithm 1 with another message-passing function in its line
    :math:`\mathbf{H}^{l+1} \gets \mathbf{H}^l + \boldsymbol\tau^l\Delta\mathbf{H}^l`.

    Args:
        backbone: whose step, a name from :data:`eegnn.zoo.registry.STEPS`.
        activation: of the step; ``None`` for its own default. The paper tries ``"relu"`` and
            ``"relu_tanh"``.
        shared: one step for all layers, as in the paper's deep regime, or one for each, as in its
            count of parameters against :math:`L`.
    """

    _: KW_ONLY
    backbone: str = "gcn"
    activation: str | None = None
    shared: bool = True

    def make_step(self) -> Step | Sequence[Step]:
        """Return a step of the backbone, or one for each layer."""
        model = find(ENTRIES[_check.choice("backbone", self.backbone, STEPS)].home)
        self.supports_edge_weight = model.supports_edge_weight
        self.supports_directed = model.supports_directed
        options = {} if self.activation is None else {"activation": self.activation}
        if self.shared:
            return model.step(self.hidden_channels, **options)
        return [model.step(self.hidden_channels, **options) for _ in range(self.num_layers)]
