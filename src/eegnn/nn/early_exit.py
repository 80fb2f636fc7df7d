"""The exit loop of Algorithms 1 and 2, over any step."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Literal, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn.functional import logsigmoid
from torch.utils.checkpoint import checkpoint

from eegnn import _check
from eegnn.graph import Adjacency
from eegnn.nn.answers import MixtureAnswer, Readout, Record, StateAnswer
from eegnn.nn.exits import Exits
from eegnn.nn.fused import fused_walk
from eegnn.nn.graph_inference import GraphWalk, graph_reader
from eegnn.nn.gumbel import continue_score, logistic_noise
from eegnn.nn.inference import Look, NodeWalk, Plan, Rules, hops, reader
from eegnn.nn.ledger import Ledger
from eegnn.nn.mixture import MIXTURES, exit_log_probabilities, leaky, mixed_exits
from eegnn.nn.pooling import POOLS, said_of_graphs, spread
from eegnn.nn.recompute import advance_again
from eegnn.nn.sas import SASStep
from eegnn.nn.steps import Step, as_steps, bound
from eegnn.nn.streamed import Layers, streamed_mixture

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


class EarlyExit(nn.Module):
    r"""Repeat a step until each unit has decided to leave (Algorithms 1 and 2).

    Before step :math:`l = 0 \dots L-1` the heads look at the states, and the soft score of
    *continue* becomes the step size (the Neural Adaptive Step):

    .. math::
        \tau^l = \sigma\bigl((C^l_0 - C^l_1 + g_0 - g_1)/\nu^l\bigr), \qquad
        \mathbf{H}^{l+1} = \mathbf{H}^l + \tau^l\,\Delta\mathbf{H}^l

    A unit (a node, or a graph) leaves where ``argmax`` says *exit*, and answers. Those that remain
    leave at :math:`L`.

    Three objectives train the heads with the task loss alone:

    * ``"sampled"``, the paper's: Gumbel noise in training, gradients reach :math:`f_c` through
      :math:`\tau` only.
    * ``"expected"``: no noise. A unit leaves at layer :math:`l` with probability
      :math:`w_l = (1-\tau^l)\prod_{k<l}\tau^k`, and training sees the exact mixture of all
      exits, so every decision gets a gradient. At evaluation a unit leaves once its probability
      of having left reaches one half.
    * ``"averaged"``: the same exits, but the loss is the average :math:`\sum_l w_l\,\ell_l` of the
      losses at each exit instead of the loss of their mixture, so that every exit must be right by
      itself: :meth:`Exits.average_loss <eegnn.Exits.average_loss>` of the training output.

    Args:
        step: a callable ``(h, adj) → Δh``, for instance a :class:`~eegnn.nn.sas.SASConv` or any
            PyG convolution that keeps the width; or a list of ``num_layers`` of them. A step with
            a method ``bind(adj, edge_attr)`` is bound once for each forward pass.
        confidence: a callable ``(h, adj) → C [U, 2]``, logits of *continue* and *exit*.
        temperature: a callable ``(h, adj) → 1/ν [U]``.
        num_layers: the budget :math:`L`.
        level: who leaves, ``"node"`` or ``"graph"``.
        pool: how the nodes of a graph become its state: ``"mean"``, ``"add"`` or ``"max"``.
        objective: ``"expected"``, ``"averaged"`` or ``"sampled"``.
        after_exit: a node that left goes on evolving for the sake of its neighbours
            (``"evolve"``, Algorithm 1 to the letter), or keeps the state it left with
            (``"freeze"``, which saves work; in training with ``"expected"``, later exits then
            count the state at the exit that evaluation would take). A graph that left is done
            with either way.
        answer: what a unit says when it leaves: ``"state"``, the paper's, decodes its state;
            ``"mixture"`` adds to it the exits it has passed, each with its probability, as
            training does (:class:`~eegnn.nn.answers.MixtureAnswer`). By default ``"mixture"``
            unless sampled.
        step_size: ``"adaptive"`` for :math:`\tau` of each unit, ``"mean"`` for its mean over the
            nodes of a graph, or a number, for the ablation.
        hard: straight-through :math:`\tau \in \{0, 1\}` in training (``"sampled"`` only).
        head_norm: scale each state to root mean square 1 before the heads look at it, so that
            their logits do not grow with ‖H‖, which never decreases. Steadier with large heads,
            worse with the small default ones.
        leak: the probability that a unit leaves before layer :math:`L` whatever the heads say, the
            same at every layer. Then every layer is trained to answer a little, and an
            ``exit_threshold`` below ``leak`` shortens everyone's way: by it, nobody goes further
            than :math:`L \log(1 - \theta) / \log(1 - \mathrm{leak})`. Not for ``"sampled"``.
        task: what the output means, and so how outputs of several exits mix:
            ``"classification"`` (one of several classes), ``"multilabel"`` (independent yes/no
            labels), ``"regression"``.
        recompute: keep no more than the states of each layer for the backward pass, and compute
            the rest again there: less memory, up to a third more time. With ``"expected"`` the
            exits then have the last output alone.
    """

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
        self._leak = 1 - (1 - self.leak) ** (1 / num_layers)  # at each layer
        self.step = as_steps(step, num_layers)
        self.confidence = confidence
        self.temperature = temperature
        #: Called in evaluation with all states before the first step and after each; while it is
        #: set nothing is skipped.
        self.watch: Callable[[Tensor], None] | None = None

    def reset_parameters(self) -> None:
        """Draw all weights anew."""
        for part in (*self._steps(), self.confidence, self.temperature):
            if hasattr(part, "reset_parameters"):
                part.reset_parameters()

    def forward(
        self,
        h: Tensor,
        adj: Adjacency,
        edge_attr: Tensor | None = None,
        readout: Readout | None = None,
        bias: Tensor | None = None,
        *,
        max_layers: int | None = None,
        exit_threshold: float | None = None,
        sample: bool | None = None,
    ) -> tuple[Tensor, Exits]:
        """Run the loop.

        Args:
            h: initial states ``[n, m']``.
            adj: the graph.
            edge_attr: edge features for a step that uses them.
            readout: decoder ``[U, m'] → [U, C]``; by default the states at the exit come back.
            bias: ``[L + 1, C]``, added to what the decoder says at each layer.
            max_layers: stop everyone after so many steps.
            exit_threshold: a unit leaves once its probability of having left reaches this value.
                ``None``: the objective's own rule. Evaluation only.
            sample: draw Gumbel noise. ``None``: in training, for ``"sampled"``.

        Returns:
            Output ``[U, C]`` and :class:`~eegnn.nn.exits.Exits`.
        """
        limit = self._limit(max_layers)
        log_stay_limit = self._log_stay_limit(exit_threshold)
        steps = [bound(step, adj, edge_attr) for step in self._steps()]
        if sample and self.objective != "sampled":
            raise ValueError("sample=True needs objective='sampled': nothing else is drawn")
        if self.training and self.objective != "sampled":
            return self._mixture(h, adj, steps, readout or _states, bias, limit)
        noisy = self.training if sample is None else sample
        answer = StateAnswer(readout or _states, bias)
        if readout is not None and self.answer == "mixture":
            answer = MixtureAnswer(readout, self.task, bias)
        if self._may_skip(h, noisy):
            plan = self._plan(steps, limit, log_stay_limit)
            return self.follow(plan, h, adj, answer)
        return self._walk(h, adj, steps, answer, limit, log_stay_limit, noisy)

    def plan(
        self,
        adj: Adjacency,
        edge_attr: Tensor | None = None,
        *,
        max_layers: int | None = None,
        exit_threshold: float | None = None,
    ) -> Plan:
        """What evaluation follows: for :meth:`follow`, or for who holds the states elsewhere.

        Args:
            adj, edge_attr, max_layers, exit_threshold: as in :meth:`forward`.
        """
        steps = [bound(step, adj, edge_attr) for step in self._steps()]
        return self._plan(steps, self._limit(max_layers), self._log_stay_limit(exit_threshold))

    def follow(
        self, plan: Plan, h: Tensor, adj: Adjacency, answer: StateAnswer
    ) -> tuple[Tensor, Exits]:
        """Evaluate by a plan, leaving out what nobody needs; without gradients.

        Args:
            plan: from :meth:`plan`.
            h, adj: as in :meth:`forward`.
            answer: what units say when they leave.

        Returns:
            As :meth:`forward`.
        """
        fused = fused_walk(self, h, adj, plan, answer)
        if fused is not None:
            return fused.run(self.num_layers)
        if self.level == "graph":
            return GraphWalk(h, adj, plan, answer, self.pool).run(self.num_layers)
        return NodeWalk(h, adj, plan, answer).run(self.num_layers)

    def trace(
        self,
        h: Tensor,
        adj: Adjacency,
        edge_attr: Tensor | None = None,
        readout: Readout | None = None,
        bias: Tensor | None = None,
    ) -> tuple[Tensor, Tensor]:
        r"""Let everyone go on to the end, and decode at every layer; without noise.

        Args:
            h, adj, edge_attr, readout, bias: as in :meth:`forward`.

        Returns:
            Outputs ``[L + 1, U, C]``, and ``[L, U]``, the log-probability of going on after the
            decision at each layer, to which an exit threshold is compared.
        """
        readout = readout or _states
        steps = [bound(step, adj, edge_attr) for step in self._steps()]
        if self._may_skip(h, noisy=False):  # to the bit what evaluation computes
            record = Record(readout, bias)
            plan = self._plan(steps, self.num_layers, -math.inf)
            self.follow(plan, h, adj, record)
            return torch.stack(record.outputs), torch.stack(record.log_here[1:])
        ledger = Ledger(self._num_units(h, adj), self.num_layers, h)
        outputs, log_stay = [], []
        for layer in range(self.num_layers):
            decision = self._decide(h, adj, noisy=False)
            outputs.append(readout(decision.units))
            log_stay.append(ledger.survive(decision.score))
            h = self._advance(h, adj, steps, layer, self._tau(decision.tau, adj, ledger))
        outputs.append(readout(self._units(h, adj)))
        return _shifted(torch.stack(outputs), bias), torch.stack(log_stay)

    def _mixture(
        self,
        h: Tensor,
        adj: Adjacency,
        steps: Sequence[Step],
        readout: Readout,
        bias: Tensor | None,
        limit: int,
    ) -> tuple[Tensor, Exits]:
        """Training without sampling: the exact mixture over all exits.

        Who would have left matters to nobody but frozen nodes, so the books are kept for all layers
        at once: less to do on small graphs.
        """
        if self.recompute and self.objective == "expected" and self._can_stream(h, steps, readout):
            return self._streamed(h, adj, steps, readout, bias, limit)
        decide = self._decisions_at_once if self._can_wait(h) and limit else self._decisions
        units, score, tau = decide(h, adj, steps, limit)
        if self.recompute:
            outputs = torch.stack([self._keep(readout, one) for one in units])
        else:
            outputs = _decoded(readout, units)
        outputs = _shifted(outputs, bias)
        exits = mixed_exits(score, tau.detach(), self.num_layers)
        log_weight = exit_log_probabilities(score)
        out = MIXTURES[self.task].mean(log_weight, outputs)
        return out, dataclasses.replace(exits, outputs=outputs, log_weight=log_weight)

    def _can_stream(self, h: Tensor, steps: Sequence[Step], readout: Readout) -> bool:
        """Whether all that gradients go to is known."""
        parts = (self.confidence, self.temperature, readout)
        return (
            torch.is_grad_enabled()
            and not torch.is_autocast_enabled(h.device.type)
            and all(isinstance(step, SASStep) and step.conv.norm is None for step in steps)
            and all(isinstance(part, nn.Module) or part is _states for part in parts)
        )

    def _streamed(
        self,
        h: Tensor,
        adj: Adjacency,
        steps: Sequence[Any],
        readout: Readout,
        bias: Tensor | None,
        limit: int,
    ) -> tuple[Tensor, Exits]:
        """:meth:`_mixture` keeping the states alone."""

        def decide(h: Tensor) -> tuple[Tensor, Tensor, Tensor]:
            decision = self._decide(h, adj, False)
            return decision.units, decision.score, self._step_sizes(decision.tau, adj)

        look = self._reader()

        def glance(h: Tensor) -> tuple[Tensor, Tensor, Tensor]:
            units, delta, inverse = look(h, adj)
            scaled = delta * inverse
            return units, leaky(scaled, self._leak), self._step_sizes(scaled.sigmoid(), adj)

        layers = Layers(
            decide=decide,
            glance=glance,
            units=lambda h: self._units(h, adj),
            spread=lambda tau: spread(tau, adj) if self.level == "graph" else tau,
            readout=readout,
            bias=bias,
            steps=steps,
            adj=adj,
            limit=limit,
            freeze=self.level == "node" and self.after_exit == "freeze",
            mixture=MIXTURES[self.task],
        )
        modules = (self.confidence, self.temperature, readout)
        return streamed_mixture(layers, h, modules, self.num_layers)

    def _decisions(
        self, h: Tensor, adj: Adjacency, steps: Sequence[Step], limit: int
    ) -> tuple[list[Tensor], Tensor, Tensor]:
        """What is decoded at each layer, and for each step ``[steps, U]`` the scores and τ."""
        freezing = self.level == "node" and self.after_exit == "freeze"
        log_stay = h.new_zeros(self._num_units(h, adj))
        units, scores, taus = [], [], []
        for layer in range(limit):
            decision = self._keep(self._decide, h, adj, False)
            units.append(decision.units)
            scores.append(decision.score)
            tau = self._step_sizes(decision.tau, adj)
            if freezing:
                log_stay = log_stay + logsigmoid(decision.score.detach())
                tau = tau.masked_fill(log_stay <= math.log(0.5), 0.0)
            taus.append(tau)
            h = self._advance(h, adj, steps, layer, tau)
        units.append(self._units(h, adj))
        return units, _stack(scores, log_stay), _stack(taus, log_stay)

    def _can_wait(self, h: Tensor) -> bool:
        """Whether no decision changes a state, and all of them can be made together."""
        return (
            self.level == "node"
            and self.after_exit == "evolve"
            and not isinstance(self.step_size, str)
            and not self.recompute
            and _small(h)
            and all(getattr(head, "stacks", False) for head in (self.confidence, self.temperature))
        )

    def _decisions_at_once(
        self, h: Tensor, adj: Adjacency, steps: Sequence[Step], limit: int
    ) -> tuple[list[Tensor], Tensor, Tensor]:
        """:meth:`_decisions` where they can wait: a quarter less time for a small graph."""
        tau = h.new_full((h.size(0),), float(self.step_size))
        units = [h]
        for layer in range(limit):
            h = self._advance(h, adj, steps, layer, tau)
            units.append(h)
        decision = self._decide(torch.stack(units[:-1]), adj, noisy=False)
        return units, decision.score, tau.expand(limit, -1)

    def _walk(
        self,
        h: Tensor,
        adj: Adjacency,
        steps: Sequence[Step],
        answer: StateAnswer,
        limit: int,
        log_stay_limit: float | None,
        noisy: bool,
    ) -> tuple[Tensor, Exits]:
        """Each unit walks until it leaves: training with ``"sampled"``, and evaluation with noise
        or gradients."""
        ledger = Ledger(self._num_units(h, adj), limit, h)
        survival: list[Tensor] = []
        if self.watch is not None:
            self.watch(h)
        for layer in range(limit):
            decision = self._keep(self._decide, h, adj, noisy)
            offer = answer.offer(decision.units, ledger.log_stay)
            log_stay = ledger.survive(decision.score)
            leave = decision.leave if log_stay_limit is None else log_stay <= log_stay_limit
            ledger.decide(layer, leave, offer)
            if self.training:
                survival.append(log_stay.exp())
            elif ledger.left.all():
                break
            answer.pass_by(log_stay)
            h = self._advance(h, adj, steps, layer, self._tau(decision.tau, adj, ledger))
            if self.watch is not None:
                self.watch(h)
        taken = ledger.close(answer.offer(self._units(h, adj), ledger.log_stay))
        expected = _stack(survival, ledger.time) if self.training else None
        return answer.finish(taken, ledger.layer), ledger.exits(self.num_layers, expected)

    def _may_skip(self, h: Tensor, noisy: bool) -> bool:
        """Whether to leave out what nobody needs."""
        return (
            self.watch is None
            and not (self.training or noisy or torch.is_grad_enabled())
            and not torch.is_autocast_enabled(h.device.type)
        )

    def _plan(self, steps: Sequence[Step], limit: int, log_stay_limit: float | None) -> Plan:
        """What evaluation follows."""
        seen = [hops(head) for head in (self.confidence, self.temperature)]
        reach = None if None in seen else max(hop for hop in seen if hop is not None)
        rules = Rules(
            limit,
            log_stay_limit,
            sampled=self.objective == "sampled",
            freeze=self.level == "graph" or self.after_exit == "freeze",
            local=self.step_size != "mean"
            and reach is not None
            and reach <= 1
            and all(isinstance(step, SASStep) for step in steps),
            leak=self._leak,
        )
        return Plan(steps, self._reader(), self._step_sizes, rules, reach)

    def _reader(self) -> Look:
        """What the heads say where no gradients are needed."""
        scale = _unit_scale if self.head_norm else None
        if self.level == "graph":
            return graph_reader(self.confidence, self.temperature, self.pool, scale)
        return reader(self.confidence, self.temperature, scale)

    def _keep(self, function: Callable[..., Any], *given: Any) -> Any:
        """Call a function; with ``recompute`` keep for the backward pass only what it is given."""
        if self.recompute and torch.is_grad_enabled():
            return checkpoint(function, *given, use_reentrant=False)
        return function(*given)

    def _decide(self, h: Tensor, adj: Adjacency, noisy: bool) -> Decision:
        units = self._units(h, adj)
        seen_nodes, seen_units = h, units
        if self.head_norm:
            seen_units = _unit_scale(units)
            seen_nodes = seen_units if self.level == "node" else _unit_scale(h)
        confidence = self._look(self.confidence, seen_nodes, seen_units, adj)
        inverse = self._look(self.temperature, seen_nodes, seen_units, adj)
        # In the precision of the states, also under autocast: a product of many τ needs it.
        confidence, inverse = confidence.to(h.dtype), inverse.to(h.dtype)
        delta = confidence[..., 0] - confidence[..., 1]
        drawn = delta + logistic_noise(delta) if noisy else delta
        tau = continue_score(drawn, inverse, self.hard and self.training)
        # The argmax does not depend on ν: the sampled exit continues with probability σ(δ). The
        # others are defined by τ itself.
        score = delta if self.objective == "sampled" else leaky(delta * inverse, self._leak)
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

    def _step_sizes(self, tau: Tensor, adj: Adjacency) -> Tensor:
        """Step sizes ``[U]``: those of the heads, or what replaces them."""
        if self.step_size == "adaptive":
            return tau
        if self.step_size == "mean":
            return spread(POOLS["mean"](tau.unsqueeze(-1), adj), adj).squeeze(-1)
        return torch.full_like(tau, float(self.step_size))

    def _tau(self, tau: Tensor, adj: Adjacency, ledger: Ledger) -> Tensor:
        """Step sizes actually used, ``[U]``; 0 for who left and is not to move any more."""
        tau = self._step_sizes(tau, adj)
        if self.level == "graph" or self.after_exit == "freeze":
            tau = tau.masked_fill(ledger.left, 0.0)
        ledger.advance(tau)
        return tau

    def _advance(
        self, h: Tensor, adj: Adjacency, steps: Sequence[Step], layer: int, tau: Tensor
    ) -> Tensor:
        """H + τ ΔH."""
        step = steps[layer] if len(steps) > 1 else steps[0]
        if self.level == "graph":
            tau = spread(tau, adj)
        if self.recompute and torch.is_grad_enabled():
            return advance_again(step, h, adj, tau)
        return torch.addcmul(h, tau.unsqueeze(-1), step(h, adj).to(h.dtype))

    def _steps(self) -> Iterable[Any]:
        return self.step if isinstance(self.step, nn.ModuleList) else (self.step,)

    def _units(self, h: Tensor, adj: Adjacency) -> Tensor:
        return h if self.level == "node" else POOLS[self.pool](h, adj)

    def _num_units(self, h: Tensor, adj: Adjacency) -> int:
        return h.size(0) if self.level == "node" else adj.num_graphs

    def _limit(self, max_layers: int | None) -> int:
        if max_layers is None:
            return self.num_layers
        return min(_check.integer("max_layers", max_layers, at_least=0), self.num_layers)

    def _log_stay_limit(self, exit_threshold: float | None) -> float | None:
        if exit_threshold is None:
            return math.log(0.5) if self.objective != "sampled" else None
        if self.training:
            raise ValueError("exit_threshold is for evaluation: call model.eval() first")
        _check.number("exit_threshold", exit_threshold, 0, 1)
        return math.log1p(-exit_threshold) if exit_threshold < 1 else -math.inf

    def __repr__(self) -> str:
        return (
            f"{type(self).__name__}({self.step!r}, num_layers={self.num_layers}, "
            f"level={self.level!r}, objective={self.objective!r})"
        )


def _states(units: Tensor) -> Tensor:
    return units


def _decoded(readout: Readout, units: list[Tensor]) -> Tensor:
    """Decode ``[U, m']`` of every layer: small ones together, large ones while in the cache."""
    if _small(units[0]):
        return readout(torch.stack(units))
    return torch.stack([readout(states) for states in units])


def _small(states: Tensor) -> bool:
    """Whether the states of all layers are better treated together: they fit into the cache."""
    return states.numel() <= 2**16


def _shifted(outputs: Tensor, bias: Tensor | None) -> Tensor:
    """Outputs ``[layers, U, C]``, each with the bias of its layer."""
    return outputs if bias is None else outputs + bias[: outputs.size(0)].unsqueeze(1)


def _stack(rows: list[Tensor], like: Tensor) -> Tensor:
    """``[steps, U]``, also when no step was taken; ``like`` is ``[U]``."""
    return torch.stack(rows) if rows else like.new_zeros(0, like.numel())


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
