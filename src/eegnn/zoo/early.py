"""Early exit on any backbone: the models EE+GCN, EE+SAGE, … of the paper's appendix."""

from __future__ import annotations

from typing import Any, Unpack

from eegnn import _check
from eegnn.nn.exit_model import ExitArguments, ExitModel
from eegnn.nn.model import arguments_in
from eegnn.typing import Level
from eegnn.zoo.registry import STEPS, find


class EEModel(ExitModel):
    r"""The exit loop over the step of another model.

    .. math::
        \mathbf{H}^{l+1} = \mathbf{H}^l + \boldsymbol\tau^l\,\mathrm{step}(\mathbf{H}^l)

    This is Algorithm 1 with another message-passing function in its line
    :math:`\mathbf{H}^{l+1} \gets \mathbf{H}^l + \boldsymbol\tau^l\Delta\mathbf{H}^l`.

    Args:
        in_channels, hidden_channels, out_channels: see :class:`~eegnn.nn.model.GraphModel`.
        num_layers: the budget; the paper's :math:`L = 20` counts from 0 and is 21 steps.
        level: who leaves, ``"node"`` or ``"graph"``.
        backbone: whose step, a name from :data:`eegnn.zoo.registry.STEPS`.
        activation: of the step; ``None`` for its own default. The paper tries ``"relu"`` and
            ``"relu_tanh"``.
        shared: one step for all layers, as in the paper's deep regime, or one for each, as in its
            count of parameters against :math:`L`.
        **kwargs: loop and heads, see :class:`~eegnn.nn.exit_model.ExitModel`; ``pool``,
            ``dropout``, ``decoder_layers``, see :class:`~eegnn.nn.model.GraphModel`.
    """

    def __init__(
        self,
        in_channels: int,
        hidden_channels: int,
        out_channels: int,
        num_layers: int = 21,
        level: Level = "node",
        *,
        backbone: str = "gcn",
        activation: str | None = None,
        shared: bool = True,
        **kwargs: Unpack[ExitArguments],
    ) -> None:
        own = arguments_in(locals())
        _check.boolean("shared", shared)
        step = find(STEPS[_check.choice("backbone", backbone, tuple(STEPS))])
        options = {} if activation is None else {"activation": activation}

        def make_step() -> Any:
            if shared:
                return step(hidden_channels, **options)
            return [step(hidden_channels, **options) for _ in range(num_layers)]

        super().__init__(
            make_step, in_channels, hidden_channels, out_channels, num_layers, level, **kwargs
        )
        self.config |= own
