"""Exits: when each unit left, and the record from which the loop makes them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.nn.functional import logsigmoid
from torch.utils._pytree import register_pytree_node, tree_map

from eegnn.nn.exit_states import ExitStates
from eegnn.typing import Readout

_TENSORS = ("layer", "time", "tau", "cost", "truncated")


class Touched(NamedTuple):
    """How much of a graph was read: nodes, and entries of neighbour lists."""

    nodes: int
    edges: int


@dataclass(eq=False, repr=False)
class Exits:
    r"""When each unit (node or graph) left.

    A plain container of tensors, which the tree functions of PyTorch, and so DDP, take apart.

    Attributes:
        layer: ``int64 [U]``, steps taken, ``1 … num_layers``, as in the paper's tables. A unit that
            wants to leave takes one more step, damped by its :math:`\tau`, and leaves with the
            state after it; one that never wants to has ``num_layers``.
        time: ``[U]``, :math:`\sum_l \tau^l` over those steps: the paper's continuous exit.
        tau: ``[steps run, U]``, every step size; 0 where a unit that had left was not updated.
        cost: scalar, the share of the budget used. In training it is differentiable and the
            expectation over exits: ``loss + 0.02 * exits.cost`` rewards earlier ones.
        num_layers: the budget.
        backend: what ran the loop, a name in :data:`eegnn.engine.BACKENDS`, or ``"on_demand"``.
        touched: for a few nodes of a graph, how many nodes and edges were read.
        truncated: ``bool [U]``, with ``max_nodes`` which units it stopped, after ``layer`` steps
            (perhaps 0) and with the state that they had; else ``None``.
    """

    layer: Tensor
    time: Tensor
    tau: Tensor
    cost: Tensor
    num_layers: int
    backend: str = "reference"
    touched: Touched | None = None
    truncated: Tensor | None = None

    @classmethod
    def all_at(
        cls,
        layer: int,
        num_layers: int,
        units: Tensor,
        step_size: float = 1.0,
        backend: str = "reference",
    ) -> Exits:
        """Return the exits of a model of fixed depth: all units leave after the same layer.

        Args:
            layer: steps taken.
            num_layers: the budget.
            units: states ``[U, m']``, for their number, dtype and device.
            step_size: of each step.
            backend: what ran the loop.
        """
        tau = units.new_full((layer, units.size(0)), step_size)
        return cls(
            layer=torch.full(units.shape[:1], layer, device=units.device),
            time=tau.sum(dim=0),
            tau=tau,
            cost=units.new_full((), layer / num_layers),
            num_layers=num_layers,
            backend=backend,
        )

    def to(self, device: torch.device | str) -> Exits:
        """Return a copy on another device."""
        return tree_map(lambda tensor: tensor.to(device), self)

    def cpu(self) -> Exits:
        """Return a copy on the CPU."""
        return self.to("cpu")

    def detach(self) -> Exits:
        """Return a copy without gradients."""
        return tree_map(Tensor.detach, self)

    def select(self, units: Tensor) -> Exits:
        """Return the exits of some units, ``int64``, perhaps repeated; ``cost`` is theirs."""
        found: dict[str, Any] = {
            name: value[..., units] for name, value in self._tensors().items() if name != "cost"
        }
        steps = found["layer"].to(self.time.dtype).sum()
        return replace(self, **found, cost=steps / max(units.numel() * self.num_layers, 1))

    def _tensors(self) -> dict[str, Tensor]:
        """Return the tensors by name, without those that are ``None``."""
        return {name: getattr(self, name) for name in _TENSORS if getattr(self, name) is not None}

    @property
    def histogram(self) -> Tensor:
        """``int64 [num_layers + 1]``, how many units left at each layer, of which 0 has none."""
        return torch.bincount(self.layer, minlength=self.num_layers + 1)

    @property
    def collapsed(self) -> bool:
        """Whether all units left after the first step, with little more than their own features."""
        return self.layer.numel() > 0 and bool((self.layer == 1).all())

    def summary(self) -> dict[str, Any]:
        """Return minimum, median, mean and maximum of ``layer``, and the histogram."""
        n, found = self.layer.numel(), dict.fromkeys(("min", "median", "mean", "max"))
        if n:
            layer = self.layer.sort().values.double()
            median = layer[[(n - 1) // 2, n // 2]].mean()
            found |= {"min": int(layer[0]), "median": float(median)}
            found |= {"mean": float(layer.mean()), "max": int(layer[-1])}
        return {**found, "histogram": self.histogram.tolist()}

    def __repr__(self) -> str:
        s = self.summary()
        return (
            f"Exits(units={self.layer.numel()}, num_layers={self.num_layers}, "
            f"min={s['min']}, median={s['median']}, max={s['max']})"
        )


register_pytree_node(
    Exits,
    lambda exits: ([*exits._tensors().values()], (exits.num_layers, exits.backend, exits.touched)),
    lambda tensors, context: Exits(*list(tensors)[:4], *context, *list(tensors)[4:]),
    serialized_type_name="eegnn.Exits",
)


class ExitRecorder:
    """Records which units have left, after how many steps, and with which state.

    A backend that drops units on the way calls :meth:`narrow`; ``left``, ``log_stay`` and what
    :meth:`step` takes are then of the units that remain.

    Args:
        num_units: how many units there are.
        max_layers: steps after which all units leave.
        num_layers: the budget, of which the cost is a share.
        like: a tensor whose dtype and device the records take.
        readout: decodes the states of the units that leave, so that outputs are kept instead of
            states; without gradients only.

    Attributes:
        num_active: how many units have not left; counted without gradients only.
        left: ``bool [U]``, which units have left.
        layer: ``int64 [num_units]``, as in :class:`Exits`.
        log_stay: ``[U]``, the log-probability of going on after all decisions so far.
        tau: the step sizes of each step, ``[num_units]``.
    """

    def __init__(
        self,
        num_units: int,
        max_layers: int,
        num_layers: int,
        like: Tensor,
        readout: Readout | None = None,
    ) -> None:
        self.max_layers, self.num_layers = max_layers, num_layers
        self.num_active = self._num_units = num_units
        self.left = torch.zeros(num_units, dtype=torch.bool, device=like.device)
        self.layer = torch.full((num_units,), max_layers, device=like.device)
        self.log_stay = like.new_zeros(num_units)
        self.tau: list[Tensor] = []
        self._states = ExitStates(num_units, readout)
        self._expected_steps = like.new_zeros(num_units)
        self._units: Tensor | None = None  # the units that remain; None: all

    def decide(self, delta: Tensor) -> Tensor:
        """Count a decision with log-odds ``delta`` ``[U]`` of continuing; return ``log_stay``."""
        if torch.is_grad_enabled():
            # The step that follows is taken by the units that decided to continue before it.
            self._expected_steps = self._expected_steps + self.log_stay.exp()
        self.log_stay = self.log_stay + logsigmoid(delta)
        return self.log_stay

    def step(self, tau: Tensor, leave: Tensor, state: Tensor) -> None:
        """Record a step, and which units leave after it.

        Args:
            tau: ``[U]``, the step sizes.
            leave: ``bool [U]``, which units wanted to leave before the step.
            state: ``[U, m']``, the states after the step.
        """
        tau = tau.detach()
        if self._units is not None:
            tau = tau.new_zeros(self._num_units).index_copy_(0, self._units, tau)
        self.tau.append(tau)
        last = len(self.tau) == self.max_layers
        now = ~self.left if last else leave & ~self.left
        if self._states.keeps_all:
            self._states.append(state)
            self.layer = self.layer.masked_fill(now, len(self.tau))
        else:
            self._keep(now.nonzero().view(-1), state)
        self.left = self.left | now

    def _keep(self, rows: Tensor, state: Tensor) -> None:
        """Record when and with which states these of the units that remain leave."""
        self.num_active -= rows.numel()
        to = rows if self._units is None else self._units.index_select(0, rows)
        self._states.write(to, state, rows)
        self.layer.index_fill_(0, to, len(self.tau))

    def stop(self, rows: Tensor, state: Tensor) -> None:
        """Let some units leave with the state that they have, without a step.

        Args:
            rows: ``int64``, these units.
            state: ``[U, m']``, the states of all.
        """
        self._keep(rows, state)
        self.left = self.left.index_fill(0, rows, True)

    def narrow(self, rows: Tensor) -> None:
        """Go on with these units alone, ``int64``; the records of the others are final."""
        self._units = rows if self._units is None else self._units[rows]
        self.left, self.log_stay = self.left[rows], self.log_stay[rows]

    def finish(self, expected: bool, backend: str = "reference") -> tuple[Tensor, Exits]:
        """Return the states ``[num_units, m']`` with which units left, and their exits.

        Args:
            expected: ``cost`` is the expectation over exits, with gradient.
            backend: what ran the loop.
        """
        none = self._expected_steps.new_zeros(0, self._num_units)
        tau = torch.stack(self.tau) if self.tau else none
        steps = self._expected_steps if expected else self.layer.to(tau.dtype)
        cost = steps.sum() / max(steps.numel() * self.num_layers, 1)
        before = torch.arange(len(tau), device=tau.device).unsqueeze(-1) < self.layer
        time = torch.where(before, tau, 0.0).sum(dim=0)
        exits = Exits(self.layer, time, tau, cost, self.num_layers, backend)
        return self._states.gather(self.layer), exits
