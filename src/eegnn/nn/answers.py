"""What a unit answers when it leaves: the decoded state, or the mixture of all it has passed."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from eegnn.nn.encoders import Decoder
from eegnn.nn.mixture import MIXTURES

Readout = Callable[[Tensor], Tensor]


def states_alone(units: Tensor) -> Tensor:
    """No decoder: the states are the answer."""
    return units


class StateAnswer:
    """The state at the exit, decoded: the paper's. Decoding waits until everyone has left, unless
    somebody asks for the doubt.

    Args:
        readout: the decoder, ``[U, m'] → [U, C]``.
        task: what its output means; ``None`` where it means nothing.
        bias: ``[L + 1, C]``, added to what is decoded at each layer.
    """

    def __init__(self, readout: Readout, task: str | None, bias: Tensor | None = None) -> None:
        self.readout = readout
        self.task = task
        self.bias = bias
        self._mixture = MIXTURES["regression" if task is None else task]
        self._layer = -1

    def see(self, units: Tensor, log_here: Tensor) -> None:
        """Look at the states ``[U, m']`` of the next layer.

        They were reached with log-probability ``log_here`` ``[U]``.
        """
        self._units = units
        self._layer += 1

    def take(self, rows: Tensor | None = None) -> Tensor:
        """What these units (``int64 [r]``; ``None``: all) take with them if they leave now."""
        return self._units if rows is None else self._units.index_select(0, rows)

    def offer(self, units: Tensor, log_here: Tensor) -> Tensor:
        """:meth:`see` and :meth:`take`: what every unit would take with it, ``[U, *]``."""
        self.see(units, log_here)
        return self.take()

    def doubt(self) -> Tensor | None:
        """How far what was seen last is from being sure, ``[U]``; ``None``: nothing tells."""
        if self._mixture.doubt is None:
            return None
        return self._mixture.doubt(self.shares(self.readout(self._units).T, self._layer))

    def pass_by(self, log_going: Tensor) -> None:
        """Go on; the next layer is reached with log-probability ``log_going`` ``[U]``."""

    def keep(self, units: Tensor) -> None:
        """Only these units (``bool [U]`` or ``int64 [u]``) are still here."""

    def forget(self) -> None:
        """Let go of what was seen last; the rest of what is known takes little memory."""
        del self._units

    def finish(self, taken: Tensor, layer: Tensor) -> Tensor:
        """From what all units took with them, at ``layer`` ``[U]``, to the output ``[U, C]``."""
        out = self.readout(taken)
        return out if self.bias is None else out + self.bias[layer]

    def shares(self, said: Tensor, layer: int) -> Tensor:
        """From what was decoded at this layer, ``[C, U]``, to what is mixed, ``[*, U]``."""
        if self.bias is not None:
            said = said + self.bias[layer].unsqueeze(-1)
        return self._mixture.share(said)

    def _decoded(self, units: Tensor) -> Tensor:
        """What states seen at this layer say."""
        out = self.readout(units)
        return out if self.bias is None else out + self.bias[self._layer]


class DecodedAnswer(StateAnswer):
    """The same, decoded at once: who left takes the prediction along, not the wider state."""

    def take(self, rows: Tensor | None = None) -> Tensor:
        """The prediction of these units."""
        return self._decoded(super().take(rows))

    def finish(self, taken: Tensor, layer: Tensor) -> Tensor:
        """All is decoded."""
        return taken


class Record(StateAnswer):
    """Notes what every unit would say at each layer, ``[U, C]``, and ``log_here`` ``[U]``."""

    def __init__(self, readout: Readout, task: str | None, bias: Tensor | None = None) -> None:
        super().__init__(readout, task, bias)
        self.outputs: list[Tensor] = []
        self.log_here: list[Tensor] = []

    def see(self, units: Tensor, log_here: Tensor) -> None:
        """Decode now."""
        super().see(units, log_here)
        self.outputs.append(self._decoded(units).clone())  # the states change in place
        self.log_here.append(log_here)


class MixtureAnswer(StateAnswer):
    r"""The mixture of the exits passed so far, the one that is taken counting for the rest.

    A unit that leaves at layer l answers

    .. math::
        \sum_{k<l} w_k\,p(y \mid h^k) + \Bigl(\prod_{k<l} \tau^k\Bigr)\,p(y \mid h^l),

    which for :math:`l = L` is the mixture that training minimises the loss of. Training never
    asks a single exit to be right by itself, so the state at the exit alone says less: on
    Minesweeper the mixture scored 1.1 AUROC higher (five splits), on Tolokers 0.6 (two). It costs
    a call of the decoder for each layer.
    """

    def __init__(self, readout: Readout, task: str, bias: Tensor | None = None) -> None:
        super().__init__(readout, task, bias)
        # Units along the rows of all that is kept: there are many of them, and few classes. Sums
        # over classes then run over long rows, and with two classes and 10,000 units softmax took
        # a twentieth of the time.
        self._passed: Tensor | None = None

    def see(self, units: Tensor, log_here: Tensor) -> None:
        """Decode the states."""
        super().see(units, log_here)
        if isinstance(self.readout, Decoder):
            said = self.readout(units, rows=True)
        else:
            said = self.readout(units).T.contiguous()
        self._said = self.shares(said.to(log_here.dtype), self._layer)
        self._here = log_here.exp()

    def take(self, rows: Tensor | None = None) -> Tensor:
        """The mixture with all that is left of the probability on this exit."""
        passed, said, here = self._passed, self._said, self._here
        if rows is not None:
            passed = None if passed is None else passed[:, rows]
            said, here = said[:, rows], here[rows]
        return (said * here if passed is None else torch.addcmul(passed, said, here)).T

    def doubt(self) -> Tensor | None:
        """That of the mixture that would be the answer."""
        return None if self._mixture.doubt is None else self._mixture.doubt(self.take().T)

    def pass_by(self, log_going: Tensor) -> None:
        """Let this exit count for the probability of being here and not going on."""
        weight = self._here - log_going.exp()
        passed = self._passed
        self._passed = self._said * weight if passed is None else passed + self._said * weight

    def keep(self, units: Tensor) -> None:
        """Drop the columns of the others."""
        if self._passed is not None:
            self._passed = self._passed[:, units]

    def forget(self) -> None:
        """Let go of the decoded states; what was passed stays."""
        super().forget()
        del self._said, self._here

    def finish(self, taken: Tensor, layer: Tensor) -> Tensor:
        """Back to logits, or to values."""
        return self._mixture.back(taken)
