"""Inference for pairs of nodes on a graph that shrinks: see :mod:`eegnn.nn.pair_loop`."""

from __future__ import annotations

import torch
from torch import Tensor

from eegnn.engine.step import InPlaceStep
from eegnn.graph import Adjacency
from eegnn.nn.exit_rule import wants_to_leave
from eegnn.nn.exits import ExitRecorder, Exits
from eegnn.nn.gumbel import continue_score
from eegnn.nn.pairs import states_of_ends
from eegnn.nn.program import Program, of_layer
from eegnn.nn.sas_conv import SASStep
from eegnn.subgraph import neighborhood

#: Pairs are dropped, and the nodes that they depend on are searched for, once this share of the
#: pairs that were active at the last search remains.
SEARCH = 0.5


def run(program: Program, h: Tensor, adj: Adjacency) -> tuple[Tensor, Exits]:
    """Run the loop for pairs without gradients and noise.

    A pair that has left is not computed, and a node only as long as an end of an active pair can be
    reached from it in the steps that remain: with :math:`k` steps to come, the nodes within
    :math:`k - 1` hops of such an end.

    Args:
        program: with steps of SAS-GNN.
        h: initial states ``[n, m']``.
        adj: the graph with pairs.
    """
    assert adj.pairs is not None
    pairs, h = adj.pairs, h.clone()
    z = states_of_ends(h, pairs)
    steps = [InPlaceStep(step) for step in program.steps if isinstance(step, SASStep)]
    recorder = ExitRecorder(z.size(0), program.max_layers, program.num_layers, h)
    searched = recorder.num_active
    if program.observe is not None:
        program.observe(z.clone(), recorder.log_stay)
    for layer in range(program.max_layers):
        delta, inv_temperature = program.look(h, z, adj)
        tau = continue_score(delta, inv_temperature).masked_fill_(recorder.left, 0.0)
        leave = wants_to_leave(delta, recorder.decide(delta), program.exit_threshold)
        change, factor = of_layer(steps, layer).change(h, adj)
        factor *= program.node_step_size
        z.addcmul_(tau.unsqueeze(-1), states_of_ends(change, pairs), value=factor)
        h[: adj.num_targets].add_(change, alpha=factor)
        recorder.step(tau, leave, z)
        if program.observe is not None:
            program.observe(z.clone(), recorder.log_stay)
        if recorder.num_active == 0:
            break
        remaining = program.max_layers - layer - 1
        if remaining and recorder.num_active <= SEARCH * searched:
            searched = recorder.num_active
            active = (~recorder.left).nonzero().view(-1)
            recorder.narrow(active)
            z, pairs = z.index_select(0, active), pairs.index_select(1, active)
            adj, h, pairs = _reached(adj, h, pairs, remaining)
    state, exits = recorder.finish(expected=False, backend="pruned")
    return program.readout(state), exits


def _reached(
    adj: Adjacency, h: Tensor, pairs: Tensor, steps: int
) -> tuple[Adjacency, Tensor, Tensor]:
    """Leave out nodes whose states reach no end of these pairs in the steps that remain."""
    inside = h.new_zeros(adj.num_nodes)
    inside[pairs.view(-1)] = 1
    structure, size = adj.unweighted(), 0
    for _ in range(steps - 1):
        inside = (inside + structure.propagate(inside, "sum")).clamp_(max=1)
        if (grown := int(inside.count_nonzero())) == size:
            break
        size = grown
    # In a smaller graph the last nodes are only read: they have no entries, and old states.
    rows = inside[: adj.num_targets].nonzero().view(-1)
    if 2 * rows.numel() > adj.num_nodes:  # a smaller graph would not pay for itself
        return adj, h, pairs
    part, order = neighborhood(adj, rows)
    number = torch.empty(adj.num_nodes, dtype=torch.int64, device=h.device)
    number[order] = torch.arange(order.numel(), device=h.device)
    return part, h.index_select(0, order), number[pairs]
