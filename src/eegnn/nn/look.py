r"""What heads of one layer and a linear decoder make of the states of nodes in training.

By autograd alone these are seven operators for each exit, and as many on the way back, most of them
over all states; here it is one compiled kernel each way.
"""

from __future__ import annotations

from types import ModuleType
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import softplus

from eegnn.graph import Adjacency
from eegnn.nn.compiled import kernels_for
from eegnn.nn.encoders import Decoder
from eegnn.nn.inference import Linear


class Seen(NamedTuple):
    """What there is to see of states ``[n, m']``.

    ``said`` ``[C, n]`` is what nodes would say, ``delta``, ``inverse`` and ``cold`` ``[n]`` are δ,
    1/ν and what that is the softplus of, ``drawn`` are the numbers of dropout.
    """

    said: Tensor
    delta: Tensor
    inverse: Tensor
    cold: Tensor
    drawn: Tensor | None


class Eyes:
    """Heads and decoder for one pass: what their kernels read of weights is made once.

    Args:
        adj: the graph.
        heads: their weights.
        decoder: a linear one.
    """

    def __init__(self, adj: Adjacency, heads: Linear, decoder: Decoder) -> None:
        self.adj, self.heads, self.dropout = adj, heads, decoder.dropout
        self.decoder: Tensor = decoder.mlp.lins[0].weight  # type: ignore[assignment]
        self._panels: dict[bool, tuple[Any, Any]] = {}

    @property
    def tensors(self) -> tuple[Tensor, Tensor, Tensor]:
        """What gradients go to: the weights and the bias of the heads, those of the decoder."""
        return self.heads.weight, self.heads.bias, self.decoder

    def look(self, h: Tensor) -> Seen:
        """Look at states ``[n, m']``, for which there are kernels; each call draws its own dropout.

        Gradients go back to the states and to :attr:`tensors`.
        """
        drawn = self.dropout.draw(h)
        own, cold, said = _Look.apply(h, self.heads.weight, self.decoder, drawn, self)
        return Seen(said, own + self.heads.bias, softplus(cold) + self.heads.nu0, cold, drawn)

    def look_back(
        self, h: Tensor, seen: Seen, by_said: Tensor, by_delta: Tensor, by_inverse: Tensor
    ) -> tuple[Tensor, tuple[Tensor, Tensor, Tensor]]:
        """The gradients of the states and of :attr:`tensors`, without autograd."""
        by_cold = by_inverse * seen.cold.sigmoid()
        by_h, by_heads, by_decoder = self.back(h, seen.drawn, by_delta, by_cold, by_said)
        return by_h, (by_heads, by_delta.sum(), by_decoder)

    def see(self, h: Tensor, drawn: Tensor | None) -> tuple[Tensor, Tensor, Tensor]:
        """δ without its bias, 1/ν before its softplus, and what is said after dropout."""
        kernels = kernels_for(h)
        assert kernels is not None
        if (drawn is None) not in self._panels:
            first = self.heads.weight.detach()
            first = torch.cat([first, self.decoder.detach()]) if drawn is None else first
            weights = (first.T, self.decoder.detach().T)
            self._panels[drawn is None] = tuple(kernels.panels_of(w) for w in weights)
        facts, said = h.new_empty(3, h.size(0)), h.new_empty(self.decoder.size(0), h.size(0))
        panels, numbers = self._panels[drawn is None], self._numbers(drawn, h)
        kernels.look(h.numel(), h.numpy(), *panels, *numbers, facts.numpy(), said.numpy())
        own, others, cold = facts.unbind()
        if self.heads.reads:
            own += self._sums(kernels, others) / self.adj.degree.clamp(min=1)
        return own, cold, said

    def back(
        self, h: Tensor, drawn: Tensor | None, by_own: Tensor, by_cold: Tensor, by_said: Tensor
    ) -> tuple[Tensor, Tensor, Tensor]:
        """The gradients of states, heads and decoder from those of :meth:`see`."""
        kernels = kernels_for(h)
        assert kernels is not None
        by_others = torch.zeros_like(by_own)
        if self.heads.reads:  # (D⁻¹A)ᵀ = A D⁻¹
            by_others = self._sums(kernels, by_own / self.adj.degree.clamp(min=1))
        by_facts = torch.stack([by_own, by_others, by_cold])
        weights = (self.heads.weight.detach(), self.decoder.detach())
        found = torch.empty_like(h), torch.zeros_like(weights[0]), torch.zeros_like(weights[1])
        kernels.look_back(
            h.numel(),
            *(t.contiguous().numpy() for t in (h, *weights)),
            *self._numbers(drawn, h),
            *(t.contiguous().numpy() for t in (by_facts, by_said, *found)),
        )
        return found

    def _sums(self, kernels: ModuleType, values: Tensor) -> Tensor:
        """Over neighbours."""
        sums = torch.empty_like(values)
        given = (values, self.adj.rowptr, self.adj.col, sums)
        kernels.neighbour_sums(self.adj.col.numel(), *(t.numpy() for t in given))
        return sums

    def _numbers(self, drawn: Tensor | None, h: Tensor) -> tuple[Any, Any, Any]:
        """The numbers that were drawn, below which of them is kept, times what."""
        below, factor = self.dropout.below, self.dropout.factor
        drawn = torch.empty(0, h.size(1), dtype=torch.int16) if drawn is None else drawn
        return drawn.numpy(), np.int16(min(below, 2**15 - 1)), np.float32(factor)


def watched(*modules: nn.Module) -> bool:
    """Whether a hook waits for a call of any of these, or of what is in them."""
    kinds = ("_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks")
    inside = (m for module in modules for m in module.modules())
    return any(getattr(m, kind) for m in inside for kind in kinds)


class _Look(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, h: Tensor, heads: Tensor, decoder: Tensor, drawn: Tensor | None, eyes: Eyes
    ) -> tuple[Tensor, Tensor, Tensor]:
        h = h.contiguous()
        ctx.save_for_backward(h, heads, decoder, drawn)
        ctx.eyes = eyes
        return eyes.see(h, drawn)

    @staticmethod
    def backward(
        ctx: Any, by_own: Tensor, by_cold: Tensor, by_said: Tensor
    ) -> tuple[Tensor | None, ...]:
        h, heads, decoder, drawn = ctx.saved_tensors
        if torch.is_grad_enabled():  # gradients of gradients: by autograd
            eyes, by_others = ctx.eyes, torch.zeros_like(by_own)
            if eyes.heads.reads:
                scaled = by_own / eyes.adj.degree.clamp(min=1)
                by_others = eyes.adj.propagate(scaled.unsqueeze(-1), "sum").squeeze(-1)
            by_facts = torch.stack([by_own, by_others, by_cold])
            z, by_z = h, by_said.T @ decoder
            if drawn is not None:
                mask = (drawn < eyes.dropout.below) * eyes.dropout.factor
                z, by_z = h * mask, by_z * mask
            return by_facts.T @ heads + by_z, by_facts @ h, by_said @ z, None, None
        return *ctx.eyes.back(h, drawn, by_own, by_cold, by_said), None, None
