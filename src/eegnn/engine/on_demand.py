"""Answers for a few nodes of a large graph: each reads as far around it as it takes steps."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from eegnn.engine.decide import decide
from eegnn.engine.growing import Buffer, GrowingNeighborhood, OverBudgetError, Part
from eegnn.engine.pruned import hops_of
from eegnn.engine.step import InPlaceStep
from eegnn.nn.exits import ExitRecorder, Exits, Touched
from eegnn.nn.program import Program, of_layer
from eegnn.nn.sas_conv import SASStep
from eegnn.source import GraphSource

#: Once this share of the nodes has been read, the whole graph is computed.
SHARE = 0.25


def run(
    program: Program,
    encode: Callable[[Tensor], Tensor],
    source: GraphSource,
    nodes: Tensor,
    max_nodes: int | None = None,
) -> tuple[Tensor, Exits]:
    r"""Run Algorithm 1 for some nodes; the result is that of the whole graph.

    A step and the heads before it see :math:`R` hops, so the state of a node after :math:`l` steps
    depends on what is within :math:`Rl` hops. All nodes begin alone. As long as any wants another
    step, what is needed for it is found from the inside out: for layer :math:`l` at these nodes,
    layer :math:`l - 1` within :math:`R` hops, for those of them that lack it layer :math:`l - 2`
    within :math:`R` more, and so on down to features of nodes that have not been read. Then it is
    computed from the outside in. Each state is computed once and kept.

    With ``after_exit="freeze"`` a neighbour that has left keeps its state. Whether it has is known:
    all its decisions up to the layer that is asked for have been computed on the way to it, with
    all that they depend on. Nothing is read around a neighbour for steps after it left.

    Args:
        program: one that :func:`~eegnn.engine.pruned.refuses` nothing of, for ``level="node"``.
        encode: from features ``[k, m]`` to initial states ``[k, m']``.
        source: the graph.
        nodes: ``int64 [U]``, different nodes.
        max_nodes: how many nodes may be read. A node that would need more answers with the state
            that it has, and ``exits.truncated`` is true for it.

    Returns:
        Output ``[U, C]`` and :class:`~eegnn.nn.exits.Exits`.
    """
    if not nodes.numel():
        h = encode(source.features(nodes))
        exits = Exits.all_at(0, program.num_layers, h, backend="on_demand")
        exits.touched = Touched(0, 0)
        exits.truncated = None if max_nodes is None else nodes.bool()
        return program.readout(h), exits
    return _Run(program, encode, source, nodes, max_nodes).run()


class _Run:
    """One call of :func:`run`.

    Nodes have the numbers of ``near``. ``states`` has a row for each state that was computed, and
    ``place`` the row of each node and layer; ``done`` is the last layer that a node has.
    """

    def __init__(
        self,
        program: Program,
        encode: Callable[[Tensor], Tensor],
        source: GraphSource,
        nodes: Tensor,
        max_nodes: int | None,
    ) -> None:
        self.program, self.encode, self.source = program, encode, source
        self.max_nodes, hops = max_nodes, hops_of(program)
        assert hops is not None
        self.hops = hops
        self.steps = [InPlaceStep(step) for step in program.steps if isinstance(step, SASStep)]
        self.near = GrowingNeighborhood(source, nodes, max_nodes)
        # The neighbourhood numbers its first nodes in ascending order.
        self.active = torch.searchsorted(self.near.nodes, nodes)
        h = self._features(0)
        self.states, self.log_stay = Buffer(h), Buffer(h[:, 0])
        self.done = Buffer(nodes)
        self.place = Buffer(nodes.new_empty(0, program.max_layers + 1))
        self._keep(h)
        units = (nodes.numel(), program.max_layers, program.num_layers)
        self.recorder = ExitRecorder(*units, h, program.readout)
        self.units = torch.arange(nodes.numel(), device=nodes.device)  # those that are active
        self.truncated = torch.zeros(nodes.numel(), dtype=torch.bool, device=nodes.device)
        self.parts: list[Part] = []

    def run(self) -> tuple[Tensor, Exits]:
        touched: Touched | None = None
        for layer in range(1, self.program.max_layers + 1):
            if not self.active.numel():
                break
            self._demand(layer)
            if self._is_much():
                touched = self._run_whole(layer)
                break
            self._compute(layer)
        out, exits = self.recorder.finish(expected=False, backend="on_demand")
        exits.touched = touched or Touched(self.near.nodes.numel(), self.near.num_edges)
        exits.truncated = None if self.max_nodes is None else self.truncated
        return out, exits

    def _is_much(self) -> bool:
        """Whether the whole graph is to be computed."""
        n = self.source.num_nodes
        return (self.max_nodes is None or n <= self.max_nodes) and (
            self.near.nodes.numel() > SHARE * n
        )

    def _demand(self, layer: int) -> None:
        """Find what it takes to bring the active nodes to a layer; stop those for whom it is too
        much."""
        kept = self._affordable(self.active, layer)
        if kept.numel() < self.active.numel():
            stays = torch.isin(self.active, kept)
            rows = (~stays).nonzero().view(-1)
            self.recorder.stop(rows, self._state(self.active, layer - 1))
            self.truncated[self.units[rows]] = True
            self._continue_with(stays)
            self.parts = self._parts(self.active, layer)

    def _affordable(self, nodes: Tensor, layer: int) -> Tensor:
        """Those of some nodes that can be brought to a layer within the budget."""
        try:
            self.parts = self._parts(nodes, layer)
            return nodes
        except OverBudgetError:
            if nodes.numel() == 1:
                return nodes[:0]
        halves = nodes.tensor_split(2)
        return torch.cat([self._affordable(half, layer) for half in halves])

    def _parts(self, nodes: Tensor, layer: int) -> list[Part]:
        """For this layer, the one before and so on: who lacks it, and what they see."""
        parts: list[Part] = []
        for ring in range(layer):
            if not nodes.numel():
                break
            known = self.parts[ring] if ring < len(self.parts) else None
            if known is None or not torch.equal(known.targets, nodes):
                known = self.near.part(nodes, self.hops)
                self.done.extend(self.near.nodes.numel() - self.done.size)[:] = -1
            parts.append(known)
            lacks = self.done.values.index_select(0, known.nodes) < layer - ring - 1
            nodes = known.nodes[lacks]
        return parts

    def _compute(self, layer: int) -> None:
        """Compute what :meth:`_demand` found, and let the active nodes decide."""
        self._keep(self._features(self.log_stay.size))
        for ring in reversed(range(len(self.parts))):
            tau, leave, state = self._take(self.parts[ring], layer - ring)
        if self.active.numel():
            self._record(tau, leave, state)

    def _take(self, part: Part, layer: int) -> tuple[Tensor, Tensor, Tensor]:
        """Bring the targets of a part to a layer: step sizes, who leaves, and states."""
        program, targets = self.program, part.targets
        h = self._state(part.nodes, layer - 1)
        log_stay = self.log_stay.values
        tau, leave, log_stay[targets] = decide(program, h, part.adj, log_stay[targets])
        first = self.states.size
        new = self.states.extend(targets.numel())
        of_layer(self.steps, layer - 1)(h, part.adj, tau, new)
        rows = torch.arange(first, self.states.size, device=targets.device)
        self.place.values[targets, layer] = rows
        self.done.values[targets] = layer
        if program.freezes:  # who has left has the same state at all layers that follow
            gone = targets[leave]
            self.place.values[gone, layer:] = rows[leave].unsqueeze(-1)
            self.done.values[gone] = program.max_layers
        return tau, leave, new

    def _record(self, tau: Tensor, leave: Tensor, state: Tensor) -> None:
        """Note a step of the active nodes, and go on with those who stay."""
        self.recorder.step(tau, leave, state)
        if bool(self.recorder.left.any()):
            self._continue_with(~self.recorder.left)

    def _continue_with(self, stays: Tensor) -> None:
        rows = stays.nonzero().view(-1)
        self.active, self.units = self.active[rows], self.units[rows]
        self.recorder.narrow(rows)

    def _run_whole(self, layer: int) -> Touched:
        """Compute the whole graph from the beginning, until the active nodes have left."""
        program, asked = self.program, self.near.nodes[self.active]
        x, adj = self.source.whole()
        h = self.encode(x).clone()
        log_stay, left = h.new_zeros(adj.num_nodes), torch.zeros_like(adj.degree, dtype=torch.bool)
        for step in range(1, program.max_layers + 1):
            tau, leave, log_stay = decide(program, h, adj, log_stay)
            if program.freezes:
                tau = tau.masked_fill(left, 0.0)
                left |= leave
            of_layer(self.steps, step - 1)(h, adj, tau)
            if step >= layer:
                self._record(tau[asked], leave[asked], h[asked])
                asked = self.near.nodes[self.active]
                if not asked.numel():
                    break
        return Touched(adj.num_nodes, adj.num_edges)

    def _features(self, start: int) -> Tensor:
        """The initial states of the nodes from this number on."""
        nodes = self.near.nodes[start:]
        x = self.source.features(nodes)
        if not bool(x.isfinite().all()):
            row = int((~x.isfinite()).any(dim=1).nonzero()[0])
            raise ValueError(f"x holds NaN or infinite values at node {int(nodes[row])}")
        return self.encode(x)

    def _keep(self, h: Tensor) -> None:
        """Keep initial states of nodes that have none yet."""
        start, count = self.log_stay.size, h.size(0)
        self.log_stay.extend(count).zero_()
        self.done.extend(start + count - self.done.size)
        self.done.values[start:] = 0
        rows = torch.arange(self.states.size, self.states.size + count, device=h.device)
        self.states.extend(count)[:] = h
        self.place.extend(count)[:, 0] = rows

    def _state(self, nodes: Tensor, layer: int) -> Tensor:
        """States after a layer, ``[k, m']``."""
        rows = self.place.values[:, layer].index_select(0, nodes)
        return self.states.values.index_select(0, rows)
