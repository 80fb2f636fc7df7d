"""Program: what one forward pass of the exit loop is to run."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any, Literal, TypeVar

import torch
from torch import Tensor
from torch.utils.checkpoint import checkpoint

from eegnn.graph import Adjacency
from eegnn.nn.exits import Exits
from eegnn.nn.pairs import states_of_ends, sum_product_difference
from eegnn.nn.pooling import POOLS, spread
from eegnn.typing import AfterExit, Head, Level, Readout, Step

T = TypeVar("T")
#: Called with states ``[n, m']``, of pairs ``[P, 2m']``, and ``log_stay`` ``[U]``, before the first
#: step and after each.
Observer = Callable[[Tensor, Tensor], None]


@dataclass(frozen=True)
class Program:
    r"""The parts of Algorithms 1 and 2, bound to one graph.

    Attributes:
        steps: one step ``(h, adj) → ΔH``, or one for each layer.
        readout: the decoder.
        num_layers: the budget.
        max_layers: steps after which all units leave.
        confidence, temperature: the heads :math:`f_c` and :math:`f_\nu`; without them all units
            take all steps.
        level, pool, after_exit, step_size: see :class:`~eegnn.EarlyExit`.
        exit_threshold: see :func:`~eegnn.nn.exit_rule.wants_to_leave`.
        noisy: whether Gumbel noise is drawn.
        training: whether gradients need every step, and ``exits.cost`` is an expectation.
        hooked: whether a hook is registered on a module of the steps or heads, which is then called
            as a module, with all units.
        recompute: whether the backward pass computes each layer again instead of keeping it.
        observe: see :data:`Observer`.
    """

    steps: Sequence[Step]
    readout: Readout
    num_layers: int
    max_layers: int
    confidence: Head | None = None
    temperature: Head | None = None
    level: Level = "node"
    pool: str = "mean"
    after_exit: AfterExit = "evolve"
    step_size: float | Literal["adaptive", "mean"] = "adaptive"
    exit_threshold: float | None = None
    noisy: bool = False
    training: bool = False
    hooked: bool = False
    recompute: bool = False
    observe: Observer | None = None
    #: The heads as ``(h, adj) → [U]`` where they offer that, made once for a forward pass.
    _heads: tuple[Head, ...] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        heads = [head for head in (self.confidence, self.temperature) if head is not None]
        bound = heads if self.hooked else map(_as_scalar, heads)
        object.__setattr__(self, "_heads", tuple(bound))

    @property
    def freezes(self) -> bool:
        """Whether a unit that has left is not updated any more; graphs and pairs never are."""
        return self.level != "node" or self.after_exit == "freeze"

    @property
    def node_step_size(self) -> float:
        """The step size of all nodes with ``level="edge"``, where τ is that of pairs."""
        return 1.0 if self.step_size == "adaptive" else float(self.step_size)

    def step(self, layer: int) -> Step:
        """Return the step of this layer: its own, or the only one there is."""
        return of_layer(self.steps, layer)

    def units(self, h: Tensor, adj: Adjacency) -> Tensor:
        """Return what the readout decodes, see :func:`states_of_units`."""
        return states_of_units(self.level, self.pool, h, adj)

    def recomputed(self, function: Callable[..., Any], *args: Any) -> Any:
        """Call a function, whose inputs alone are kept for the backward pass with ``recompute``."""
        if self.recompute and torch.is_grad_enabled():
            return checkpoint(function, *args, use_reentrant=False)
        return function(*args)

    def look(self, h: Tensor, units: Tensor, adj: Adjacency) -> tuple[Tensor, Tensor]:
        r"""Return :math:`\delta = C_0 - C_1` and :math:`1/\nu`, both ``[U]``.

        In a :func:`~eegnn.subgraph.neighborhood` they are right for its targets, which come first.

        Args:
            h: states of nodes ``[n, m']``, for heads that read neighbors. With ``level="graph"``
                their outputs are averaged over each graph.
            units: what :meth:`units` returns, for the other heads. Of pairs they are given
                :func:`~eegnn.nn.pairs.sum_product_difference`.
            adj: the graph.
        """
        if self.level == "node":
            units = units[: adj.num_targets]
        elif self.level == "edge":
            units = sum_product_difference(units)
        delta, inv_temperature = (
            self._averaged(bound(h, adj), adj) if _reads_neighbors(head) else bound(units, adj)
            for head, bound in zip((self.confidence, self.temperature), self._heads, strict=True)
        )
        if delta.dim() == 2:
            delta = delta[:, 0] - delta[:, 1]
        # In the precision of the states, also under autocast: a product of many τ needs it.
        return delta.to(h.dtype), inv_temperature.to(h.dtype)

    def _averaged(self, out: Tensor, adj: Adjacency) -> Tensor:
        """Return the outputs of a head on nodes, with ``level="graph"`` their means."""
        if self.level == "node":
            return out
        pooled = POOLS["mean"](out if out.dim() > 1 else out.unsqueeze(-1), adj)
        return pooled if out.dim() > 1 else pooled.squeeze(-1)

    def step_sizes(self, tau: Tensor, adj: Adjacency) -> Tensor:
        """Return the step sizes ``[U]``: those of the heads, or what replaces them."""
        if self.step_size == "adaptive":
            return tau
        if self.step_size == "mean":
            return spread(POOLS["mean"](tau.unsqueeze(-1), adj), adj).squeeze(-1)
        return tau.new_full(tau.shape, float(self.step_size))

    def on_nodes(self, value: Tensor, adj: Adjacency) -> Tensor:
        """Return a value for each node, from one for each unit."""
        return value if self.level == "node" else spread(value, adj)


def states_of_units(level: Level, pool: str, h: Tensor, adj: Adjacency) -> Tensor:
    """Return the states of nodes ``[n, m']``, pooled ones of graphs ``[graphs, m']``, or those of
    both ends of ``adj.pairs``, ``[P, 2m']``: what is decoded."""
    if level == "edge":
        assert adj.pairs is not None
        return states_of_ends(h, adj.pairs)
    return h if level == "node" else POOLS[pool](h, adj)


def of_layer(steps: Sequence[T], layer: int) -> T:
    """Return what takes states from this layer to the next: its own, or the only one there is."""
    return steps[layer if len(steps) > 1 else 0]


def execute(program: Program, h: Tensor, adj: Adjacency) -> tuple[Tensor, Exits]:
    """Run a program by the fastest backend that can; :func:`eegnn.engine.choose` decides."""
    return _engine().execute(program, h, adj)


def explain(program: Program, h: Tensor) -> str:
    """Say which backend :func:`execute` takes, and why."""
    choice = _engine().choose(program, h)
    return f"{choice.backend}: {choice.reason}"


def execute_nodes(program: Program, *args: Any) -> tuple[Tensor, Exits]:
    """Run a program for some nodes alone; see :func:`eegnn.engine.on_demand.run`."""
    return _engine().execute_nodes(program, *args)


def refuses_nodes(program: Program, like: Tensor) -> str | None:
    """Return why a program can only be run with all nodes; ``None`` if it can with some.

    Args:
        program: what is to be run.
        like: a tensor of the dtype and on the device of the states.
    """
    choice = _engine().choose(program, like)
    return None if choice.backend == "pruned" else choice.reason


def _engine() -> ModuleType:
    """Import the engine, which imports the method: the only place where that is done."""
    from eegnn import engine

    return engine


def _as_scalar(head: Head) -> Head:
    return head.bind_scalar() if hasattr(head, "bind_scalar") else head


def _reads_neighbors(head: Head | None) -> bool:
    return bool(getattr(head, "uses_graph", False))
