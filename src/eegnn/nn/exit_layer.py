"""One layer of the exit loop: what the heads say of the states, and the step that follows."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Literal, NamedTuple

import torch
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from eegnn import _check
from eegnn.graph import Adjacency
from eegnn.nn.advance import advance
from eegnn.nn.graph_inference import graph_reader
from eegnn.nn.gumbel import continue_score, logistic_noise
from eegnn.nn.inference import Look, reader
from eegnn.nn.mixture import MIXTURES, leaky
from eegnn.nn.pooling import POOLS, said_of_graphs, spread
from eegnn.nn.steps import Step, as_steps, of_layer

Level = Literal["node", "graph"]
Objective = Literal["expected", "averaged", "sampled"]
AfterExit = Literal["evolve", "freeze"]
Answer = Literal["mixture", "state"]
Task = Literal["classification", "multilabel", "regression"]


class Decision(NamedTuple):
    """What the heads say before a step.

    ``units`` are the states ``[U, m']`` that would be decoded, ``score`` the log-odds of
    continuing on which the objective bases the probability of leaving, ``tau`` the step size,
    ``leave`` whether ``argmax{c} = 1``; the last three are ``[U]``.
    """

    units: Tensor
    score: Tensor
    tau: Tensor
    leave: Tensor


class ExitLayer(nn.Module):
    """What :class:`~eegnn.EarlyExit`, which explains the arguments, repeats."""

    def __init__(
        self,
        step: Step | Sequence[Step],
        confidence: Callable[[Tensor, Adjacency], Tensor],
        temperature: Callable[[Tensor, Adjacency], Tensor],
        num_layers: int,
        level: Level = "node",
        *,
        pool: str = "mean",
        objective: Objective = "expected",
        after_exit: AfterExit = "evolve",
        answer: Answer | None = None,
        step_size: float | Literal["adaptive", "mean"] = "adaptive",
        hard: bool = False,
        head_norm: bool = False,
        leak: float = 0.0,
        exit_threshold: float | None = None,
        task: Task = "classification",
        recompute: bool = False,
    ) -> None:
        super().__init__()
        self.recompute = _check.boolean("recompute", recompute)
        self.num_layers = _check.integer("num_layers", num_layers, at_least=1)
        self.level = _check.choice("level", level, ("node", "graph"))
        self.pool = _check.choice("pool", pool, tuple(POOLS))
        self.objective = _check.choice("objective", objective, ("expected", "averaged", "sampled"))
        self.after_exit = _check.choice("after_exit", after_exit, ("evolve", "freeze"))
        self.answer = _check_answer(answer, objective)
        self.step_size = _check_step_size(step_size, level)
        _check.boolean("hard", hard)
        if hard and objective != "sampled":
            raise ValueError("hard=True needs objective='sampled': nothing else is drawn")
        self.hard = hard
        self.head_norm = _check.boolean("head_norm", head_norm)
        self.task = _check.choice("task", task, tuple(MIXTURES))
        self.leak = _check_leak(leak, objective)
        self.leak_by_layer = 1 - (1 - self.leak) ** (1 / num_layers)
        if exit_threshold is not None:
            _check.number("exit_threshold", exit_threshold, 0, 1)
        self.exit_threshold = exit_threshold
        self.step = as_steps(step, num_layers)
        self.confidence = confidence
        self.temperature = temperature
        #: Called in evaluation with all states before the first step and after each; while it is
        #: set nothing is skipped.
        self.watch: Callable[[Tensor], None] | None = None

    def reset_parameters(self) -> None:
        """Draw all weights anew."""
        for part in (*self.steps(), self.confidence, self.temperature):
            if hasattr(part, "reset_parameters"):
                part.reset_parameters()

    def reader(self) -> Look:
        """What the heads say where no gradients are needed."""
        scale = _unit_scale if self.head_norm else None
        if self.level == "graph":
            return graph_reader(self.confidence, self.temperature, self.pool, scale)
        return reader(self.confidence, self.temperature, scale)

    def keep(self, function: Callable[..., Any], *given: Any) -> Any:
        """Call a function; with ``recompute`` keep for the backward pass only what it is given."""
        if self.recompute and torch.is_grad_enabled():
            return checkpoint(function, *given, use_reentrant=False)
        return function(*given)

    def decide(self, h: Tensor, adj: Adjacency, noisy: bool) -> Decision:
        """Let the heads look at states ``[n, m']``, with Gumbel noise if ``noisy``."""
        units = self.units(h, adj)
        seen_nodes, seen_units = h, units
        if self.head_norm:
            seen_units = _unit_scale(units)
            seen_nodes = seen_units if self.level == "node" else _unit_scale(h)
        confidence = self._look(self.confidence, seen_nodes, seen_units, adj)
        inverse = self._look(self.temperature, seen_nodes, seen_units, adj)
        # In the precision of the states, also under autocast: a product of many τ needs it.
        confidence, inverse = confidence.to(h.dtype), inverse.to(h.dtype)
        return self.judge(units, confidence[..., 0] - confidence[..., 1], inverse, noisy)

    def judge(self, units: Tensor, delta: Tensor, inverse: Tensor, noisy: bool) -> Decision:
        r"""What follows from :math:`\delta` and :math:`1/\nu`, both ``[U]``."""
        drawn = delta + logistic_noise(delta) if noisy else delta
        tau = continue_score(drawn, inverse, self.hard and self.training)
        # The argmax does not depend on ν: the sampled exit continues with probability σ(δ). The
        # others are defined by τ itself.
        score = delta if self.objective == "sampled" else leaky(delta * inverse, self.leak_by_layer)
        return Decision(units, score, tau, drawn < 0)

    def _look(
        self,
        head: Callable[[Tensor, Adjacency], Tensor],
        nodes: Tensor,
        units: Tensor,
        adj: Adjacency,
    ) -> Tensor:
        if self.level == "graph":
            return said_of_graphs(head, nodes, units, adj)
        return head(units, adj)

    def step_sizes(self, tau: Tensor, adj: Adjacency) -> Tensor:
        """Step sizes ``[U]``: those of the heads, or what replaces them."""
        if self.step_size == "adaptive":
            return tau
        if self.step_size == "mean":
            return spread(POOLS["mean"](tau.unsqueeze(-1), adj), adj).squeeze(-1)
        return torch.full_like(tau, float(self.step_size))

    def moving(self, tau: Tensor, adj: Adjacency, left: Tensor) -> Tensor:
        """:meth:`step_sizes`, but 0 for who has left, ``bool [U]``, and is not to move any more."""
        tau = self.step_sizes(tau, adj)
        if self.level == "graph" or self.after_exit == "freeze":
            tau = tau.masked_fill(left, 0.0)
        return tau

    def advance(
        self, h: Tensor, adj: Adjacency, steps: Sequence[Step], layer: int, tau: Tensor
    ) -> Tensor:
        """H + τ ΔH."""
        step = of_layer(steps, layer)
        if self.level == "graph":
            tau = spread(tau, adj)
        return advance(step, h, adj, tau, self.recompute)

    def steps(self) -> Iterable[Any]:
        """One step, or one for each layer."""
        return self.step if isinstance(self.step, nn.ModuleList) else (self.step,)

    def units(self, h: Tensor, adj: Adjacency) -> Tensor:
        """What would be decoded, ``[U, m']``."""
        return h if self.level == "node" else POOLS[self.pool](h, adj)

    def num_units(self, h: Tensor, adj: Adjacency) -> int:
        """How many can leave."""
        return h.size(0) if self.level == "node" else adj.num_graphs


def _unit_scale(h: Tensor) -> Tensor:
    """Each row divided by its root mean square (a quarter of the time of layer_norm on a CPU)."""
    mean_square = h.square().mean(dim=-1, keepdim=True)
    return h * torch.rsqrt(mean_square + 1e-6)


def _check_answer(answer: Answer | None, objective: Objective) -> Answer:
    if answer is None:
        return "state" if objective == "sampled" else "mixture"
    if answer == "mixture" and objective == "sampled":
        raise ValueError("answer='mixture' needs objective='expected' or 'averaged'")
    return _check.choice("answer", answer, ("mixture", "state"))


def _check_leak(leak: float, objective: Objective) -> float:
    if leak and objective == "sampled":
        raise ValueError("leak needs objective='expected' or 'averaged'")
    return _check.number("leak", leak, 0, 0.5)


def _check_step_size(step_size: float | str, level: Level) -> float | str:
    if step_size == "mean" and level == "graph":
        raise ValueError("step_size='mean' needs level='node': a graph has a single τ")
    if isinstance(step_size, str):
        return _check.choice("step_size", step_size, ("adaptive", "mean"))
    return _check.number("step_size", step_size, 0)
