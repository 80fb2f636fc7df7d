"""The exit loop of Algorithms 1 and 2, over any step."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor

from eegnn import _check
from eegnn.graph import Adjacency
from eegnn.nn.again import can_stream
from eegnn.nn.answers import MixtureAnswer, Readout, Record, StateAnswer, states_alone
from eegnn.nn.exit_layer import ExitLayer
from eegnn.nn.exits import Exits
from eegnn.nn.fused_walk import fused_walk
from eegnn.nn.graph_inference import GraphWalk
from eegnn.nn.inference import NodeWalk, Plan, Rules, hops, wants_to_leave
from eegnn.nn.ledger import Ledger
from eegnn.nn.mixed import Mixed, shifted, stacked
from eegnn.nn.sas import SASStep
from eegnn.nn.steps import Step, bound
from eegnn.nn.streamed_walk import sampled_walk


class EarlyExit(ExitLayer):
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
      of having left reaches one half, or by ``exit_threshold``.
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
        exit_threshold: the rule of evaluation where :meth:`forward` is given none; see there.
            ``None``: the objective's own. Training goes by the objective's either way: it is what
            ``exits.layer`` shows there, and when ``"freeze"`` freezes.
        task: what the output means, and so how outputs of several exits mix:
            ``"classification"`` (one of several classes), ``"multilabel"`` (independent yes/no
            labels), ``"regression"``.
        recompute: keep as many numbers for the backward pass as there are states, and compute
            the rest again there: less memory, up to a third more time. With ``"expected"`` the
            exits then have the last output alone.
    """

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
        r"""Run the loop.

        Args:
            h: initial states ``[n, m']``.
            adj: the graph.
            edge_attr: edge features for a step that uses them.
            readout: decoder ``[U, m'] → [U, C]``; by default the states at the exit come back.
            bias: ``[L + 1, C]``, added to what the decoder says at each layer.
            max_layers: stop everyone after so many steps.
            exit_threshold: :math:`\theta`; a unit leaves once
                :math:`u_l \prod_{k\le l} p_k \le 1 - \theta`, where :math:`u_l` is the doubt left
                in what it would answer: 1 where classes are equally probable, 0 where one is
                certain, and always 1 for values. ``None``: that of the constructor, or else the
                objective's own rule, which knows no doubt. Evaluation only.
            sample: draw Gumbel noise. ``None``: in training, for ``"sampled"``.

        Returns:
            Output ``[U, C]`` and :class:`~eegnn.nn.exits.Exits`.
        """
        limit = self._limit(max_layers)
        log_stay_limit, doubting = self._leaving(exit_threshold)
        steps = [bound(step, adj, edge_attr) for step in self.steps()]
        if sample and self.objective != "sampled":
            raise ValueError("sample=True needs objective='sampled': nothing else is drawn")
        if self.training and self.objective != "sampled":
            return Mixed(self, adj, steps, readout or states_alone, bias, limit).run(h)
        noisy = self.training if sample is None else sample
        answer = StateAnswer(readout or states_alone, None if readout is None else self.task, bias)
        if readout is not None and self.answer == "mixture":
            answer = MixtureAnswer(readout, self.task, bias)
        if self._may_skip(h, noisy):
            plan = self._plan(steps, limit, log_stay_limit, doubting)
            return self.follow(plan, h, adj, answer)
        if self._may_stream(steps, h):
            taken, exits = sampled_walk(self, h, adj, steps, limit, noisy)  # type: ignore[arg-type]
            return answer.finish(taken, exits.layer), exits
        return self._walk(h, adj, steps, answer, limit, log_stay_limit, doubting, noisy)

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
        steps = [bound(step, adj, edge_attr) for step in self.steps()]
        return self._plan(steps, self._limit(max_layers), *self._leaving(exit_threshold))

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
        readout = readout or states_alone
        steps = [bound(step, adj, edge_attr) for step in self.steps()]
        if self._may_skip(h, noisy=False):  # to the bit what evaluation computes
            record = Record(readout, self.task, bias)
            plan = self._plan(steps, self.num_layers, -math.inf, doubting=False)
            self.follow(plan, h, adj, record)
            return torch.stack(record.outputs), torch.stack(record.log_here[1:])
        ledger = Ledger(self.num_units(h, adj), self.num_layers, h)
        outputs, log_stay = [], []
        for layer in range(self.num_layers):
            decision = self.decide(h, adj, noisy=False)
            outputs.append(readout(decision.units))
            log_stay.append(ledger.survive(decision.score))
            tau = self.moving(decision.tau, adj, ledger.left)
            h = self.advance(h, adj, steps, layer, tau)
        outputs.append(readout(self.units(h, adj)))
        return shifted(torch.stack(outputs), bias), torch.stack(log_stay)

    def _walk(
        self,
        h: Tensor,
        adj: Adjacency,
        steps: Sequence[Step],
        answer: StateAnswer,
        limit: int,
        log_stay_limit: float | None,
        doubting: bool,
        noisy: bool,
    ) -> tuple[Tensor, Exits]:
        """Each unit walks until it leaves: training with ``"sampled"``, and evaluation with noise
        or gradients."""
        ledger = Ledger(self.num_units(h, adj), limit, h)
        survival: list[Tensor] = []
        if self.watch is not None:
            self.watch(h)
        for layer in range(limit):
            decision = self.keep(self.decide, h, adj, noisy)
            offer = answer.offer(decision.units, ledger.log_stay)
            log_stay = ledger.survive(decision.score)
            leave = decision.leave
            if log_stay_limit is not None:
                doubt = answer.doubt() if doubting else None
                leave = wants_to_leave(log_stay, log_stay_limit, doubt)
            ledger.decide(layer, leave, offer)
            if self.training:
                survival.append(log_stay.exp())
            elif ledger.left.all():
                break
            answer.pass_by(log_stay)
            tau = self.moving(decision.tau, adj, ledger.left)
            ledger.advance(tau)
            h = self.advance(h, adj, steps, layer, tau)
            if self.watch is not None:
                self.watch(h)
        taken = ledger.close(answer.offer(self.units(h, adj), ledger.log_stay))
        expected = stacked(survival, ledger.time) if self.training else None
        return answer.finish(taken, ledger.layer), ledger.exits(self.num_layers, expected)

    def _may_skip(self, h: Tensor, noisy: bool) -> bool:
        """Whether to leave out what nobody needs."""
        return (
            self.watch is None
            and not (self.training or noisy or torch.is_grad_enabled())
            and not torch.is_autocast_enabled(h.device.type)
        )

    def _may_stream(self, steps: Sequence[Step], h: Tensor) -> bool:
        """Whether moves alone are kept. A hard τ of 0 would leave none of what it stands for."""
        return (
            self.training
            and self.recompute
            and not self.hard
            and self.watch is None
            and can_stream(steps, (self.confidence, self.temperature), h)
        )

    def _plan(
        self, steps: Sequence[Step], limit: int, log_stay_limit: float | None, doubting: bool
    ) -> Plan:
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
            leak=self.leak_by_layer,
            doubting=doubting,
        )
        return Plan(steps, self.reader(), self.step_sizes, rules, reach)

    def _limit(self, max_layers: int | None) -> int:
        if max_layers is None:
            return self.num_layers
        return min(_check.integer("max_layers", max_layers, at_least=0), self.num_layers)

    def _leaving(self, exit_threshold: float | None) -> tuple[float | None, bool]:
        """The log-probability of going on at which units leave, and whether doubt counts."""
        if exit_threshold is None:
            exit_threshold = None if self.training else self.exit_threshold
        elif self.training:
            raise ValueError("exit_threshold is for evaluation: call model.eval() first")
        else:
            _check.number("exit_threshold", exit_threshold, 0, 1)
        if exit_threshold is None:
            return (math.log(0.5) if self.objective != "sampled" else None), False
        log_stay_limit = math.log1p(-exit_threshold) if exit_threshold < 1 else -math.inf
        return log_stay_limit, 0 < exit_threshold < 1  # at 0 all leave, at 1 nobody does

    def __repr__(self) -> str:
        return (
            f"{type(self).__name__}({self.step!r}, num_layers={self.num_layers}, "
            f"level={self.level!r}, objective={self.objective!r})"
        )
