"""What the heads decide at some nodes: step sizes, and which nodes leave."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import logsigmoid

from eegnn.graph import Adjacency
from eegnn.nn.exit_rule import wants_to_leave
from eegnn.nn.gumbel import continue_score
from eegnn.nn.program import Program


def decide(
    program: Program, h: Tensor, adj: Adjacency, log_stay: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """Let the heads look at the targets of a graph, for ``level="node"`` and without noise.

    Args:
        program: what is run; without heads all nodes go on, with its one step size.
        h: states ``[n, m']``.
        adj: the graph, with all that the heads see.
        log_stay: ``[num_targets]``, the log-probability of having gone on so far.

    Returns:
        ``[num_targets]`` each: the step sizes, which nodes want to leave, and ``log_stay``, which
        is updated only where there is a threshold.
    """
    count = adj.num_targets
    if program.confidence is None:
        never = torch.zeros_like(log_stay, dtype=torch.bool)
        return h.new_full((count,), float(program.step_size)), never, log_stay
    delta, inv_temperature = (value[:count] for value in program.look(h, h, adj))
    tau = program.step_sizes(continue_score(delta, inv_temperature), adj)
    if program.exit_threshold is not None:
        log_stay = log_stay + logsigmoid(delta)
    return tau, wants_to_leave(delta, log_stay, program.exit_threshold), log_stay
