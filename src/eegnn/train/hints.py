"""Hints for a run whose exits have gone wrong: what happened, and what to change."""

from __future__ import annotations

import math

from eegnn.nn.exit_model import ExitModel
from eegnn.nn.exits import Exits
from eegnn.nn.model import GraphModel
from eegnn.train.config import Config

#: Share of units at layer 1, and number of epochs in a row, that make a collapse.
COLLAPSED_SHARE, COLLAPSED_EPOCHS = 0.95, 10
#: How long nobody may leave: this share of all epochs, and at least so many.
PATIENT_SHARE, PATIENT_EPOCHS = 0.2, 20


class ExitHints:
    """Looks at the exits after each epoch; each kind of hint is given once.

    * *Collapse*: everyone left at layer 1, or nearly everyone for ten epochs in a row.
    * *Nobody leaves*: everyone went to the full depth for a fifth of the epochs in a row. Nothing
      is lost, but nothing is saved either.

    Args:
        config: of the run.
        model: what is trained; there are no hints for a model without exits.
    """

    def __init__(self, config: Config, model: GraphModel) -> None:
        self._has_exits = isinstance(model, ExitModel) and model.num_layers > 1
        self._cost_weight = config.cost_weight
        self._patience = max(PATIENT_EPOCHS, math.ceil(PATIENT_SHARE * config.epochs))
        self._at_once, self._nobody = 0, 0  # epochs in a row
        self._collapse_told, self._nobody_told = False, False

    def after(self, epoch: int, exits: Exits) -> str | None:
        """Return the hint that is due, if any.

        Args:
            epoch: counted from 1.
            exits: of the validation part.
        """
        if not self._has_exits:
            return None
        at_once = (exits.layer == 1).double().mean() >= COLLAPSED_SHARE
        self._at_once = self._at_once + 1 if at_once else 0
        nobody = bool((exits.layer == exits.num_layers).all())
        self._nobody = self._nobody + 1 if nobody else 0

        if (exits.collapsed or self._at_once == COLLAPSED_EPOCHS) and not self._collapse_told:
            self._collapse_told = True
            return self._collapse(epoch, exits)
        if self._nobody == self._patience and not self._nobody_told:
            self._nobody_told = True
            return self._full_depth(exits)
        return None

    def _collapse(self, epoch: int, exits: Exits) -> str:
        changes = ["a larger options.continue_bias"]
        if self._cost_weight > 0:
            changes.append(f"a smaller cost_weight (now {self._cost_weight:g})")
        who = (
            f"everyone left at layer 1 at epoch {epoch}"
            if exits.collapsed
            else f"{COLLAPSED_SHARE:.0%} or more left at layer 1 in the {COLLAPSED_EPOCHS} epochs "
            f"up to {epoch}"
        )
        return f"{who}: if that lasts, train again with {' or '.join(changes)}"

    def _full_depth(self, exits: Exits) -> str:
        change = (
            f"a larger cost_weight (now {self._cost_weight:g})"
            if self._cost_weight > 0
            else "a small cost_weight such as 0.01"
        )
        return (
            f"nobody left before layer {exits.num_layers} in {self._patience} epochs in a row: to "
            f"make those leave who can, train again with {change}"
        )
