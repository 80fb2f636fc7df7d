"""Inference on a graph that shrinks: what nobody needs any more is not computed."""

from __future__ import annotations

import torch
from torch import Tensor

from eegnn.graph import Adjacency
from eegnn.nn.exit_rule import wants_to_leave
from eegnn.nn.exits import ExitRecorder, Exits
from eegnn.nn.gumbel import continue_score
from eegnn.nn.heads import HEADS, Confidence, Temperature, reach
from eegnn.nn.program import Program
from eegnn.nn.sas_conv import SASStep

#: Computing a row of a step, with its share of heads and readout, takes the time of this many
#: entries of the sparse product (width 32: 150 ns a row, 2.2 ns an entry).
ROW_WORK = 64
#: Making a smaller graph takes the time of so many steps on it.
BUILD_WORK = 2.0
#: The graph is to shrink once so many of those who were here when it was last tried remain. For
#: nodes trying takes a search through the graph, for graphs almost nothing.
TRY = {"node": 0.5, "graph": 0.75}
#: A graph with fewer nodes is not worth making smaller.
SMALLEST = 1024


def refuses(program: Program) -> str | None:
    """Return why a program cannot be run on a shrinking graph; ``None`` if it can.

    Graphs can always be dropped from a batch. Nodes can be left out only where it is known how far
    the step and the heads see.
    """
    if program.level == "graph":
        return None
    if not all(isinstance(step, SASStep) for step in program.steps):
        return "the step is not SAS-GNN's: it may compute something else on a part of the graph"
    if program.step_size == "mean":
        return "step_size='mean' needs the heads of all nodes"
    for head in (program.confidence, program.temperature):
        if not (isinstance(head, Confidence | Temperature) and type(head.head) in HEADS.values()):
            return "it is not known how many hops the heads see"
    return None


def run(program: Program, h: Tensor, adj: Adjacency) -> tuple[Tensor, Exits]:
    """Run Algorithm 1 or 2 without gradients and noise; see :func:`eegnn.nn.exit_loop.run`.

    * The loop ends when everyone has left.
    * A graph that has left is dropped from the batch.
    * A node is not computed once no node that is still here can be influenced by it in the steps
      that remain, or, with ``after_exit="freeze"``, once it has left.

    A smaller graph has to be made first, which is done when it saves more than it takes.
    """
    return _Run(program, h, adj).run()


class _Run:
    """One call of :func:`run`.

    The rows of ``h`` are those of ``adj``; the units that are still in the records come first.
    """

    def __init__(self, program: Program, h: Tensor, adj: Adjacency) -> None:
        self.program, self.h, self.adj = program, h.clone(), adj
        count = h.size(0) if program.level == "node" else adj.num_graphs
        self.recorder = ExitRecorder(count, program.max_layers, program.num_layers, h)
        self.tried = count  # how many were here when it was last tried to make the graph smaller

    def run(self) -> tuple[Tensor, Exits]:
        limit = self.program.max_layers
        self._observe()
        for layer in range(limit):
            self._layer(layer)
            self._observe()
            here = int((~self.recorder.left).sum())
            if here == 0:
                break
            if here <= TRY[self.program.level] * self.tried and layer + 1 < limit:
                self.tried = here
                self._narrow(limit - layer - 1)
        state, exits = self.recorder.finish(expected=False, backend="pruned")
        return self.program.readout(state), exits

    def _layer(self, layer: int) -> None:
        """One layer of the loop, for the rows that are left."""
        program, recorder = self.program, self.recorder
        count = recorder.left.numel()
        inner = self.adj.inner if program.level == "node" else self.adj.num_graphs
        delta, inv_temperature = (value[:inner] for value in program.look(self.h, self.adj))
        tau = program.step_sizes(continue_score(delta, inv_temperature), self.adj)
        if program.freezes:
            still = torch.zeros_like(tau, dtype=torch.bool)
            still[:count] = ~recorder.left
            tau = tau.masked_fill(~still, 0.0)
        leave = wants_to_leave(
            delta[:count], recorder.decide(delta[:count]), program.exit_threshold
        )
        self._step(layer, program.on_nodes(tau, self.adj))
        units = program.units(self.h, self.adj)[:count]
        # At node level these are the states themselves, which the next step changes.
        recorder.step(tau[:count], leave, units.clone() if recorder.state is None else units)

    def _observe(self) -> None:
        """Show the states, of which none is missing where nobody leaves before the last step."""
        if self.program.observe is not None:
            self.program.observe(self.h.clone(), self.recorder.log_stay)

    def _step(self, layer: int, tau: Tensor) -> None:
        step = self.program.step(layer)
        if isinstance(step, SASStep):
            step.advance_(self.h, self.adj, tau)
        else:
            self.h = torch.addcmul(self.h, tau.unsqueeze(-1), step(self.h, self.adj))

    def _narrow(self, steps: int) -> None:
        """Leave out rows that do not matter in the ``steps`` to come, if that pays."""
        here = (~self.recorder.left).nonzero().view(-1)
        if self.program.level == "graph":
            if self.adj.batch is None:
                return
            self.adj, order = self.adj.select_graphs(~self.recorder.left)
        else:
            rows = None if self.adj.inner < SMALLEST else self._rows(here, steps)
            if rows is None:
                return
            self.adj, order = self.adj.around(rows)
        self.h = self.h.index_select(0, order)
        self.recorder.narrow(here)

    def _rows(self, here: Tensor, steps: int) -> Tensor | None:
        """Those who are here, then all others that have to be computed for their sake.

        Each step, and the heads before it, see :math:`R` hops. Rows that are left out keep an old
        state, and what is wrong with it comes :math:`R` hops nearer with every step: with
        :math:`k` steps to come, rows within :math:`Rk - 1` hops suffice. Where nodes that left do
        not move, no state is old, and the heads need :math:`R - 1` hops.
        """
        program = self.program
        hops = max(reach(program.confidence), reach(program.temperature), 1)
        inside = self.h.new_zeros(self.adj.num_nodes, 1)
        inside[here] = 1
        size = here.numel()
        for _ in range(hops - 1 if program.freezes else hops * steps - 1):
            if not self._worth(inside[: self.adj.inner, 0].nonzero().view(-1), steps):
                return None
            inside = (inside + self.adj.propagate(inside, "sum")).clamp_(max=1)
            grown = int(inside[: self.adj.inner].sum())
            if grown == size:
                break
            size = grown
        inside[here] = 0
        rows = torch.cat([here, inside[: self.adj.inner, 0].nonzero().view(-1)])
        return rows if self._worth(rows, steps) else None

    def _worth(self, rows: Tensor, steps: int) -> bool:
        """Whether computing only these rows saves more than making the smaller graph takes."""
        now = self.adj.num_edges + ROW_WORK * self.adj.inner
        then = int(self.adj.degree[rows].sum()) + ROW_WORK * rows.numel()
        return steps * (now - then) > BUILD_WORK * then
