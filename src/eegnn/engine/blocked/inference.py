"""Evaluation of one huge graph: layer by layer, and in each layer block by block."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.nn.functional import embedding_bag, pad

from eegnn.distributed import Ranks
from eegnn.engine.blocked.block import Block, Blocks
from eegnn.engine.blocked.states import new_states
from eegnn.engine.decide import decide
from eegnn.engine.pruned import hops_of
from eegnn.engine.step import InPlaceStep
from eegnn.graph import Adjacency
from eegnn.nn.eegnn import EEGNN
from eegnn.nn.evaluation_mode import evaluation_mode
from eegnn.nn.exits import ExitRecorder, Exits
from eegnn.nn.model import GraphModel
from eegnn.nn.program import Program, of_layer
from eegnn.nn.sas_conv import SASStep
from eegnn.nn.sas_gnn import SASGNN
from eegnn.subgraph import first_targets

#: Up to so many CSR entries the graphs of all blocks are kept, 28 bytes an entry; those of a larger
#: graph, perhaps mapped from files, are made anew in each layer.
KEPT_EDGES = 2**25


def infer(
    model: GraphModel,
    x: Tensor | None,
    blocks: Blocks,
    edge_attr: Tensor | None = None,
    *,
    max_layers: int | None = None,
    exit_threshold: float | None = None,
) -> tuple[Tensor, Exits]:
    r"""What ``model.predict(x, edge_index)`` returns, with the memory of a block.

    For each layer, and in it for each block, the states of its core and halo are read from a file,
    the nodes of the core decide and take their step, and their new states go to a second file: no
    approximation. In memory are the graph, unless it is mapped from files, the states of one block
    and the result; states of all nodes are in temporary files
    (:func:`~eegnn.engine.blocked.states.new_states`), twice :math:`4 n m'` bytes.

    A block is skipped once it can matter no more: with ``after_exit="freeze"`` when all its nodes
    have left; else when no block with active nodes can be reached from it, a block a layer, in the
    layers that remain.

    Where ``torch.distributed`` is initialised, as in a program started by ``torchrun``, all ranks
    call this with the same arguments, share the blocks, tell each other the states at the
    boundary after each layer, and return the same result.

    Args:
        model: an :class:`~eegnn.EEGNN`, or an :class:`~eegnn.SASGNN` with ``solver="euler"``, for
            nodes.
        x: node features ``[n, in_channels]``, perhaps mapped from a file
            (``torch.from_numpy(numpy.load(path, mmap_mode="c"))``); ``None`` for none.
        blocks: the graph, see :func:`~eegnn.engine.blocked.partition`.
        edge_attr: edge features, as in ``model.predict``.
        max_layers, exit_threshold: as in ``model.predict``.

    Returns:
        Predictions ``[n, out_channels]`` and :class:`~eegnn.Exits`; of a node that has left, step
        sizes are 0 where its block was skipped.
    """
    check_model(model)
    assert isinstance(model, EEGNN | SASGNN)
    with evaluation_mode(model), torch.no_grad(), _on_cpu():
        x, adj = model._enter(x, blocks.adj, edge_attr, None)
        program = model.program(
            adj, edge_attr, max_layers=max_layers, exit_threshold=exit_threshold
        )
        if program.hooked:
            raise ValueError("blocks take steps apart and would not call their hooks: remove them")
        return _Inference(model, x, blocks, program).run()


def check_model(model: GraphModel) -> None:
    """Refuse a model whose steps see more than neighbours, or that is not ours to take apart."""
    if not isinstance(model, EEGNN | SASGNN):
        raise ValueError(f"blocks need model eegnn or sasgnn, got {type(model).__name__}")
    if model.level != "node":
        raise ValueError(f"blocks are for level='node', got level={model.level!r}")
    if isinstance(model, EEGNN) and model.loop.step_size == "mean":
        raise ValueError("blocks do not go with step_size='mean', which needs all nodes at once")
    if isinstance(model, SASGNN) and model.solver != "euler":
        raise ValueError(f"blocks need solver='euler', got {model.solver!r}")
    if model.encoder.bias.device.type != "cpu":
        raise ValueError(f"blocks are computed on the CPU, got {model.encoder.bias.device}")


class _Part(NamedTuple):
    """A block as inference needs it.

    Attributes:
        rows: where the states of its core and its halo are, ring by ring.
        adj: the core, which are its targets, and the halo, as far as steps and heads see.
    """

    rows: Tensor
    adj: Adjacency


def _on_cpu() -> AbstractContextManager[Any]:
    """Let new tensors be made on the CPU; entering a device makes every call of PyTorch slower."""
    is_default = torch.get_default_device().type == "cpu"
    return nullcontext() if is_default else torch.device("cpu")


class _Inference:
    """One call of :func:`infer`."""

    def __init__(self, model: EEGNN | SASGNN, x: Tensor, blocks: Blocks, program: Program) -> None:
        self.model, self.blocks, self.program = model, blocks, program
        self.ranks = Ranks.current()
        weight = model.encoder.bias
        shape = (blocks.num_nodes, weight.numel(), weight.dtype)
        self.now, self.next = new_states(*shape), new_states(*shape)
        # Rows of the states: block after block, so that a core is a slice.
        self.stop = torch.tensor([core.numel() for core in blocks.cores]).cumsum(0).tolist()
        self.place = torch.empty(blocks.num_nodes, dtype=blocks.adj.col.dtype)
        self.place[_all(blocks)] = torch.arange(blocks.num_nodes, dtype=self.place.dtype)
        self.owned = [index for index in range(len(blocks)) if self._owns(index)]
        self.parts: dict[int, _Part] = {}  # those that are kept
        self.scratch = torch.empty_like(self.place)
        self.near = torch.zeros(len(blocks), len(blocks), dtype=torch.bool)
        self.steps = [InPlaceStep(step) for step in program.steps if isinstance(step, SASStep)]
        hops = hops_of(program)
        assert hops is not None
        self.hops = hops
        self.edges = self._lay_out()
        self.recorders: dict[int, ExitRecorder] = {}
        for index in self.owned:
            self._encode(index, x)
        self.active = torch.tensor([core.numel() for core in blocks.cores])
        self._exchange(self.now, range(len(blocks)))

    def run(self) -> tuple[Tensor, Exits]:
        limit = self.program.max_layers
        for layer in range(limit):
            needed = self._needed(limit - layer - 1)
            for index in needed:
                if self._owns(index):
                    self._visit(index, layer)
            self._count()
            if not self.active.any():
                break
            self._exchange(self.next, needed)
            self.now, self.next = self.next, self.now
            if self.program.freezes:
                self._keep(needed)
        return self._result(layer + 1)

    def _owner(self, index: int) -> int:
        """The rank that computes a block; neighbouring numbers belong to the same rank."""
        return index * self.ranks.size // len(self.blocks)

    def _owns(self, index: int) -> bool:
        return self._owner(index) == self.ranks.rank

    def _slice(self, index: int) -> slice:
        """Where the states of the core of a block are."""
        return slice(self.stop[index] - self.blocks.cores[index].numel(), self.stop[index])

    def _part(self, index: int) -> _Part:
        """A block, made when it is visited unless it was kept."""
        return self.parts.get(index) or self._as_part(self._block(index))

    def _block(self, index: int) -> Block:
        return self.blocks.neighborhood(index, self.hops, self.scratch)

    def _as_part(self, block: Block) -> _Part:
        return _Part(self.place[block.nodes], first_targets(block.adj, block.core.numel()))

    def _lay_out(self) -> list[Tensor]:
        """Find out which blocks read which, and keep those of this rank if they are not too large.

        Returns:
            For each block, the rows that other ranks read.
        """
        blocks, ranks = self.blocks, self.ranks
        read = torch.zeros(blocks.num_nodes, dtype=torch.bool)
        for index in range(len(blocks)):
            block = self._block(index)
            around = torch.bincount(blocks.assignment[block.halo], minlength=len(blocks)) > 0
            self.near[index] = around
            for other in around.nonzero().view(-1).tolist() if ranks.size > 1 else ():
                if self._owner(other) != self._owner(index):
                    read[block.halo[blocks.assignment[block.halo] == other]] = True
            if self._owns(index) and blocks.adj.num_edges <= KEPT_EDGES:
                self.parts[index] = self._as_part(block)
        return [self.place[core[read[core]]] for core in blocks.cores]

    def _encode(self, index: int, x: Tensor) -> None:
        core = self.blocks.cores[index]
        h = self.model._encode(x[core])
        self.now[self._slice(index)] = h
        program = self.program
        self.recorders[index] = ExitRecorder(
            core.numel(), program.max_layers, program.num_layers, h, program.readout
        )

    def _needed(self, layers: int) -> list[int]:
        """Blocks that matter yet, with so many layers to come after this one."""
        needed = self.active > 0
        if not self.program.freezes:
            for _ in range(layers):
                grown = needed | self.near[needed].any(dim=0)
                if torch.equal(grown, needed):
                    break
                needed = grown
        return needed.nonzero().view(-1).tolist()

    def _visit(self, index: int, layer: int) -> None:
        """Let the nodes of a block decide and take their step."""
        part, recorder = self._part(index), self.recorders[index]
        h = _rows_of(self.now, part.rows)
        sizes, leave, recorder.log_stay = decide(self.program, h, part.adj, recorder.log_stay)
        if self.program.freezes:
            sizes = sizes.masked_fill(recorder.left, 0.0)
        new = self.next[self._slice(index)]
        of_layer(self.steps, layer)(h, part.adj, sizes, new)
        recorder.step(sizes, leave, new)

    def _count(self) -> None:
        """Let all ranks know how many nodes of each block are active."""
        self.active.zero_()
        for index, recorder in self.recorders.items():
            self.active[index] = recorder.num_active
        self.ranks.all_reduce_(self.active)

    def _exchange(self, states: Tensor, indices: list[int] | range) -> None:
        """Bring to all ranks what they read of blocks that others have computed."""
        for index in indices:
            rows = self.edges[index]
            if rows.numel() == 0:  # always so where there is one rank
                continue
            values = states[rows]
            self.ranks.broadcast_(values, self._owner(index))
            if not self._owns(index):
                states[rows] = values

    def _keep(self, indices: list[int]) -> None:
        """Copy the states of blocks that are finished to the other states, where the others read
        them after the next step."""
        for index in indices:
            if self.active[index] == 0:
                rows = self._slice(index) if self._owns(index) else self.edges[index]
                self.next[rows] = self.now[rows]

    def _result(self, steps: int) -> tuple[Tensor, Exits]:
        like, n = self.now, self.blocks.num_nodes
        out, tau = like.new_empty(n, self.model.out_channels), like.new_zeros(steps, n)
        layer, time = torch.empty(n, dtype=torch.int64), like.new_empty(n)
        for index, core in enumerate(self.blocks.cores):
            found = out[core], layer[core], time[core], tau[:, core]  # room, on other ranks
            if self._owns(index):
                own, exits = self.recorders.pop(index).finish(expected=False)
                skipped = steps - exits.tau.size(0)
                found = own, exits.layer, exits.time, pad(exits.tau, (0, 0, 0, skipped))
            for part in found:
                self.ranks.broadcast_(part, self._owner(index))
            out[core], layer[core], time[core], tau[:, core] = found
        cost = layer.to(time.dtype).sum() / max(n * self.model.num_layers, 1)
        return out, Exits(layer, time, tau, cost, self.model.num_layers)


def _rows_of(values: Tensor, rows: Tensor) -> Tensor:
    """``values[rows]``, as bags of one row: their kernel fetches rows ahead.

    For 18,500 rows of 128 bytes, of a million, that took 0.5 ms and ``index_select`` 1.4 ms.
    """
    ends = torch.arange(rows.numel() + 1, dtype=rows.dtype)
    return embedding_bag(rows, values, ends, mode="sum", include_last_offset=True)


def _all(blocks: Blocks) -> Tensor:
    return torch.cat(blocks.cores) if len(blocks) else torch.empty(0, dtype=torch.int64)
