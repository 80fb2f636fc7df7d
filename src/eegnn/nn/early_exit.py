"""Early exit over any step, as a module."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any, Literal, get_args

import torch
from torch import Tensor, nn

from eegnn import _check
from eegnn._graph_cache import adjacency_for
from eegnn.graph import Adjacency
from eegnn.nn.edge_mask import Hop, convolutions, with_mask_of
from eegnn.nn.exits import Exits
from eegnn.nn.hooks import is_hooked
from eegnn.nn.inputs import with_pairs_for
from eegnn.nn.pooling import POOLS
from eegnn.nn.program import Observer, Program, execute
from eegnn.nn.steps import as_steps
from eegnn.typing import AfterExit, Head, Level, Readout, Step


class EarlyExit(nn.Module):
    r"""Repeat a step until each unit has decided to leave (Algorithms 1 and 2).

    Before each step two heads look at the states. The Gumbel-softmax score of *continue* becomes
    the step size (the Neural Adaptive Step):

    .. math::
        \tau^l = \sigma\bigl((C^l_0 - C^l_1 + g_0 - g_1)/\nu^l\bigr), \qquad
        \mathbf{H}^{l+1} = \mathbf{H}^l + \tau^l\,\Delta\mathbf{H}^l

    A unit (a node, a graph, or a pair of nodes, see :mod:`eegnn.nn.pair_loop`) for which
    *exit* has the larger score leaves with the state *after* this step, which contains
    :math:`\tau^l`: so every decision that mattered gets a gradient from the task loss alone. Those
    that remain leave after the last step. Noise is drawn in training and not in evaluation.

    Args:
        step: a callable ``(h, adj) → Δh``, for instance a :class:`~eegnn.SASConv`, any PyG
            convolution that keeps the width, or a module called as ``module(h, edge_index)``, such
            as PyG's ``Sequential`` of a convolution and a ReLU: the loop adds no activation, and
            is linear in the states without one. Or a list of ``num_layers`` of them. A step with a
            method ``bind(adj, edge_attr)`` is bound once for each forward pass.
        confidence: a callable ``(h, adj) → C [U, 2]``, logits of *continue* and *exit*.
        temperature: a callable ``(h, adj) → 1/ν [U]``.
        num_layers: the budget. The paper's loop :math:`l = 0 \dots L` takes :math:`L + 1` steps.
        level: what leaves, ``"node"``, ``"graph"`` or ``"edge"``, a pair of nodes.
        pool: how the nodes of a graph become its state: ``"mean"``, ``"add"``, ``"max"``, or
            ``"concat"`` for add ‖ max ‖ mean, ``[graphs, 3m']``.
        after_exit: a node that left goes on evolving for the sake of its neighbours
            (``"evolve"``, Algorithm 1 to the letter), or keeps the state it left with
            (``"freeze"``, which saves work). A graph or pair that left is done with either way.
        step_size: ``"adaptive"`` for :math:`\tau` of each unit, ``"mean"`` for its mean over the
            nodes of a graph, or a number, for the ablation. With ``level="edge"`` a number is the
            step size of the nodes, which is 1 by default.
        recompute: compute each layer again in the backward pass instead of keeping what autograd
            needs of it: less memory, more time.

    Shapes:
        - **h**: ``[n, m']``
        - **returns**: ``[U, C]``, and :class:`~eegnn.Exits`
    """

    def __init__(
        self,
        step: Step | Sequence[Step],
        confidence: Head,
        temperature: Head,
        num_layers: int,
        level: Level = "node",
        *,
        pool: str = "mean",
        after_exit: AfterExit = "evolve",
        step_size: float | Literal["adaptive", "mean"] = "adaptive",
        recompute: bool = False,
    ) -> None:
        super().__init__()
        self.num_layers = _check.integer("num_layers", num_layers, at_least=1)
        self.level = _check.choice("level", level, get_args(Level))
        self.pool = pool if level == "edge" else _check.choice("pool", pool, tuple(POOLS))
        for head in (confidence, temperature):
            if level == "edge" and getattr(head, "uses_graph", False):
                raise ValueError("heads must not read neighbors with level='edge', such as 'mlp'")
        self.after_exit = _check.choice("after_exit", after_exit, ("evolve", "freeze"))
        self.step_size = _check_step_size(step_size, level)
        self.recompute = _check.boolean("recompute", recompute)
        self.step = as_steps(step, num_layers)
        self.confidence = confidence
        self.temperature = temperature
        # One for each hop, for explainers, which already know those that a step has in it.
        known = len(convolutions(self.step))
        hops = max(
            num_layers, known if isinstance(self.step, nn.ModuleList) else known * num_layers
        )
        self._hops = nn.ModuleList(Hop() for _ in range(max(hops - known, 1)))

    def reset_parameters(self) -> None:
        """Draw all weights anew."""
        for part in (*self.steps(), self.confidence, self.temperature):
            if hasattr(part, "reset_parameters"):
                part.reset_parameters()

    def steps(self) -> Iterable[Any]:
        """Return the step, or the steps of all layers."""
        return self.step if isinstance(self.step, nn.ModuleList) else (self.step,)

    def program(
        self,
        adj: Adjacency,
        edge_attr: Tensor | None = None,
        readout: Readout | None = None,
        *,
        max_layers: int | None = None,
        exit_threshold: float | None = None,
        sample: bool | None = None,
        observe: Observer | None = None,
    ) -> Program:
        """Return what a forward pass on this graph runs.

        Args:
            adj: the graph.
            edge_attr: edge features for a step that uses them.
            readout: decoder ``[U, m'] → [U, C]``; by default the states at the exit come back.
            max_layers: stop every unit after so many steps.
            exit_threshold: a unit leaves once its probability of having left reaches this value,
                see :func:`~eegnn.nn.exit_rule.wants_to_leave`. ``None``: the paper's rule.
                Evaluation only.
            sample: draw Gumbel noise. ``None``: in training.
            observe: called with the states ``[n, m']`` and the log-probability ``[U]`` of having
                continued, before the first step and after each.
        """
        if max_layers is not None:
            _check.integer("max_layers", max_layers, at_least=1)
        if exit_threshold is not None:
            if self.training:
                raise ValueError("exit_threshold is for evaluation: call model.eval() first")
            _check.number("exit_threshold", exit_threshold, 0, 1)
        return Program(
            steps=[_bound(step, adj, edge_attr) for step in self.steps()],
            confidence=self.confidence,
            temperature=self.temperature,
            readout=readout or _states,
            num_layers=self.num_layers,
            max_layers=min(max_layers or self.num_layers, self.num_layers),
            level=self.level,
            pool=self.pool,
            after_exit=self.after_exit,
            step_size=self.step_size,
            exit_threshold=exit_threshold,
            noisy=self.training if sample is None else sample,
            training=self.training,
            hooked=is_hooked(self.step, self.confidence, self.temperature),
            recompute=self.recompute,
            observe=observe,
        )

    def forward(
        self,
        h: Tensor,
        edge_index: Tensor | Adjacency,
        edge_attr: Tensor | None = None,
        batch: Tensor | None = None,
        *,
        edge_weight: Tensor | None = None,
        batch_size: int | None = None,
        edge_label_index: Tensor | None = None,
        **options: Any,
    ) -> tuple[Tensor, Exits]:
        r"""Run the loop.

        Args:
            h: initial states ``[n, m']``.
            edge_index: ``[2, E]`` as in PyG, a sparse ``adj_t``, or an :class:`~eegnn.Adjacency`.
            edge_attr: edge features ``[E, d]``, a row for each column of ``edge_index``, for a
                step that uses them.
            batch: the graph of each node ``[n]``.
            edge_weight, batch_size, edge_label_index: see :class:`~eegnn.nn.inputs.GraphInputs`.
            **options: as in :meth:`program`.

        Returns:
            Output ``[U, C]`` and :class:`~eegnn.nn.exits.Exits`.
        """
        name = type(self).__name__
        adj = adjacency_for(name, h, edge_index, batch, batch_size, edge_weight)
        adj = with_mask_of(self, with_pairs_for(self.level, adj, edge_label_index))
        return execute(self.program(adj, edge_attr, **options), h, adj)

    def trace(
        self,
        h: Tensor,
        adj: Adjacency,
        edge_attr: Tensor | None = None,
        readout: Readout | None = None,
    ) -> tuple[Tensor, Tensor]:
        r"""Let every unit take all steps, and decode after each of them; without noise.

        Args:
            h, adj, edge_attr, readout: as in :meth:`forward`.

        Returns:
            Outputs ``[num_layers, U, C]``, and ``[num_layers, U]``, the log-probability of going on
            after each decision, to which an exit threshold is compared.
        """
        outputs: list[Tensor] = []
        log_stay: list[Tensor] = []

        def observe(h: Tensor, log_probability: Tensor) -> None:
            # Pairs are observed as they are decoded.
            outputs.append(program.readout(h if self.level == "edge" else program.units(h, adj)))
            log_stay.append(log_probability)

        program = replace(
            self.program(adj, edge_attr, readout, sample=False),
            exit_threshold=1.0,
            observe=observe,
        )
        execute(program, h, adj)  # to the bit what evaluation computes
        return torch.stack(outputs[1:]), torch.stack(log_stay[1:])

    def __repr__(self) -> str:
        return (
            f"{type(self).__name__}({self.step!r}, num_layers={self.num_layers}, "
            f"level={self.level!r})"
        )


def _bound(step: Any, adj: Adjacency, edge_attr: Tensor | None) -> Step:
    """Return the step with all that it needs of this graph, if it can be bound."""
    if hasattr(step, "bind"):
        return step.bind(adj, edge_attr)
    if edge_attr is not None:
        raise ValueError(f"edge_attr was given, but {type(step).__name__} does not take it")
    return step


def _states(units: Tensor) -> Tensor:
    """No decoder: the states at the exit are the output."""
    return units


def _check_step_size(step_size: Any, level: Level) -> Any:
    if step_size == "mean" and level != "node":
        raise ValueError("step_size='mean' needs level='node': a graph, or pair, has a single τ")
    if isinstance(step_size, str):
        return _check.choice("step_size", step_size, ("adaptive", "mean"))
    return _check.number("step_size", step_size, 0)
