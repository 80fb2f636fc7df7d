"""Inference on a graph that shrinks: states that no prediction depends on are not computed."""

from __future__ import annotations

import torch
from torch import Tensor

from eegnn.engine.pruned_pairs import run as run_pairs
from eegnn.engine.step import InPlaceStep
from eegnn.graph import Adjacency
from eegnn.nn.exit_rule import wants_to_leave
from eegnn.nn.exits import ExitRecorder, Exits
from eegnn.nn.gumbel import continue_score
from eegnn.nn.heads import Confidence, Temperature
from eegnn.nn.program import Program, of_layer
from eegnn.nn.sas_conv import SASStep
from eegnn.subgraph import first_targets, neighborhood, select_graphs
from eegnn.typing import Step

#: Computing a row of a step, with its share of heads and readout, takes the time of this many
#: entries of the sparse product (width 32: 150 ns a row, 2.2 ns an entry).
ROW_WORK = 64
#: Making a smaller graph takes the time of so many steps on it (Minesweeper 1, Tolokers 2.5).
BUILD_WORK = 1.5
#: Where nodes that have left go on evolving, it takes a search to find the nodes that active ones
#: depend on: it is made once this share of the nodes that were active at the last one remains.
SEARCH = 0.25
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
    if program.confidence is not None and hops_of(program) is None:
        return "it is not known how many hops the heads see"
    return None


def hops_of(program: Program) -> int | None:
    """Return how many hops a step sees with the heads before it; ``None`` if it is not known."""
    hops = 1
    for head in (program.confidence, program.temperature):
        if head is not None:
            if not isinstance(head, Confidence | Temperature):
                return None
            hops = max(hops, head.head.num_hops)
    return hops


def run(program: Program, h: Tensor, adj: Adjacency) -> tuple[Tensor, Exits]:
    """Run Algorithm 1 or 2 without gradients and noise; see :func:`eegnn.nn.exit_loop.run`.

    * Steps of SAS-GNN are taken in place.
    * The loop ends when all units have left.
    * A graph that has left is dropped from the batch.
    * A node is not computed once no active node can be influenced by it in the steps that remain,
      or, with ``after_exit="freeze"``, once it has left.

    A smaller graph has to be made first, which is done when it saves more than it takes.
    """
    if program.confidence is None:
        return _run_to_the_end(program, h, adj)
    if program.level == "edge":
        return run_pairs(program, h, adj)
    return _Run(program, h, adj).run()


def _run_to_the_end(program: Program, h: Tensor, adj: Adjacency) -> tuple[Tensor, Exits]:
    """Take all steps, with one step size."""
    steps, h, tau = _in_place(program), h.clone(), float(program.step_size)
    for layer in range(program.max_layers):
        h = _take(of_layer(steps, layer), h, adj, tau)
    units = program.units(h, adj)
    exits = Exits.all_at(program.max_layers, program.num_layers, units, tau, "pruned")
    return program.readout(units), exits


def _in_place(program: Program) -> list[InPlaceStep | Step]:
    """Return the steps of a program, those of SAS-GNN as steps in place."""
    return [InPlaceStep(step) if isinstance(step, SASStep) else step for step in program.steps]


def _take(step: InPlaceStep | Step, h: Tensor, adj: Adjacency, tau: Tensor | float) -> Tensor:
    """Return H + τΔH, perhaps in the memory of H."""
    if isinstance(step, InPlaceStep):
        step(h, adj, tau)
        return h
    return h + (tau.unsqueeze(-1) if isinstance(tau, Tensor) else tau) * step(h, adj)


class _Run:
    """One call of :func:`run` with heads.

    The rows of ``h`` are those of ``adj``; the units that are still in the records come first.
    Where nodes that have left are not updated, the units in the records are the targets of ``adj``.
    """

    def __init__(self, program: Program, h: Tensor, adj: Adjacency) -> None:
        self.program, self.h, self.adj = program, h.clone(), adj
        self.steps = _in_place(program)
        self.z = program.units(self.h, adj)  # what the readout decodes
        count = self.z.size(0)
        self.recorder = ExitRecorder(count, program.max_layers, program.num_layers, h)
        self.complete = adj.num_targets  # the first so many nodes have all their entries
        self.work = _work(program, adj)
        self.wasted = 0.0  # work on units that had left, since the graph was made
        self.searched = count  # active units at the last search

    def run(self) -> tuple[Tensor, Exits]:
        limit = self.program.max_layers
        self._observe()
        for layer in range(limit):
            self._layer(layer)
            self._observe()
            if self.recorder.num_active == 0:
                break
            if layer + 1 < limit and self._is_time():
                self._narrow(limit - layer - 1)
        state, exits = self.recorder.finish(expected=False, backend="pruned")
        return self.program.readout(state), exits

    def _layer(self, layer: int) -> None:
        """Take one layer of the loop for the rows that remain."""
        program, recorder = self.program, self.recorder
        count = recorder.left.numel()
        targets = self.adj.num_targets if program.level == "node" else self.adj.num_graphs
        delta, inv_temperature = (
            value[:targets] for value in program.look(self.h, self.z, self.adj)
        )
        tau = program.step_sizes(continue_score(delta, inv_temperature), self.adj)
        if program.freezes:
            tau.masked_fill_(recorder.left, 0.0)
        delta = delta[:count]
        # Without a threshold or an observer the probability of having left is not needed.
        asked = program.exit_threshold is not None or program.observe is not None
        log_stay = recorder.decide(delta) if asked else recorder.log_stay
        leave = wants_to_leave(delta, log_stay, program.exit_threshold)
        step = of_layer(self.steps, layer)
        self.h = _take(step, self.h, self.adj, program.on_nodes(tau, self.adj))
        self.z = program.units(self.h, self.adj)
        recorder.step(tau[:count], leave, self.z[:count])

    def _observe(self) -> None:
        """Call the observer, with all states: with one, no unit leaves before the last step."""
        if self.program.observe is not None:
            self.program.observe(self.h.clone(), self.recorder.log_stay)

    def _is_time(self) -> bool:
        """Whether the graph is to be made smaller now.

        Where units that have left are not updated, that is when the work wasted on them equals the
        work of making the graph smaller: so the total is never much more than necessary.
        """
        active = self.recorder.num_active
        if not self.program.freezes:
            if active > SEARCH * self.searched:
                return False
            self.searched = active
            return True
        if active == self.recorder.left.numel():
            return False
        needed = float(self.work[~self.recorder.left].sum())
        self.wasted += float(self.work.sum()) - needed
        if self.wasted <= BUILD_WORK * needed:
            return False
        self.wasted = 0.0
        return True

    def _narrow(self, steps: int) -> None:
        """Leave out rows that do not matter in the ``steps`` to come, if that pays."""
        active = (~self.recorder.left).nonzero().view(-1)
        if self.program.level == "graph":
            if self.adj.batch is None:
                return
            self.adj, order = select_graphs(self.adj, ~self.recorder.left)
        else:
            rows = None if self.adj.num_targets < SMALLEST else self._rows(active, steps)
            if rows is None:
                return
            self.adj, order = neighborhood(self.adj, rows)
            self.complete = rows.numel()
            if self.program.freezes:
                self.adj = first_targets(self.adj, active.numel())
        self.h = self.h.index_select(0, order)
        self.z = self.program.units(self.h, self.adj)
        self.work = _work(self.program, self.adj)
        self.recorder.narrow(active)

    def _rows(self, active: Tensor, steps: int) -> Tensor | None:
        """Return the active nodes, then the other nodes that their states will depend on.

        Each step, and the heads before it, see :math:`R` hops. Rows that are left out keep an old
        state, and its error comes :math:`R` hops nearer with every step: with :math:`k` steps to
        come, rows within :math:`Rk - 1` hops suffice. Where nodes that left keep their states, none
        is old, and the heads need :math:`R - 1` hops.
        """
        hops, freezes = hops_of(self.program), self.program.freezes
        assert hops is not None
        inside = self.h.new_zeros(self.adj.num_nodes)
        inside[active] = 1
        updated = inside  # the nodes that take the steps
        structure, size = self.adj.unweighted(), active.numel()
        for _ in range(hops - 1 if freezes else hops * steps - 1):
            if not self._worth(updated, steps):
                return None
            inside = (inside + structure.propagate(inside, "sum")).clamp_(max=1)
            updated = updated if freezes else inside
            grown = int(inside[: self.complete].count_nonzero())
            if grown == size:
                break
            size = grown
        if not self._worth(updated, steps):
            return None
        around = inside[: self.complete].clone()
        around[active] = 0
        return torch.cat([active, around.nonzero().view(-1)])

    def _worth(self, updated: Tensor, steps: int) -> bool:
        """Whether steps of these nodes alone save more than making the smaller graph takes."""
        work = (self.adj.degree + ROW_WORK).to(updated.dtype)
        then = updated[: self.complete] @ work[: self.complete]
        now = self.adj.num_edges + ROW_WORK * self.adj.num_targets
        return bool(steps * (now - then) > BUILD_WORK * then)


def _work(program: Program, adj: Adjacency) -> Tensor:
    """Return the work of a step on each unit, ``[U]``, in entries of the sparse product."""
    if program.level == "node":
        return (adj.degree[: adj.num_targets] + ROW_WORK).float()
    return (adj.rowptr[adj.ptr].diff() + ROW_WORK * adj.ptr.diff()).float()
