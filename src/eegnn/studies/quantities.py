"""What a table reads from a run, such as the test accuracy."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

#: A line of a file of results: the scores, the configuration and the versions of one run.
RunRecord = dict[str, Any]


@dataclass(frozen=True)
class Quantity:
    """A number that is read from the record of a run.

    Args:
        name: with its unit, as it stands above a table.
        read: returns the number.
        better: in which direction; ``"equal"`` for what can only be right or wrong.
        digits: after the point.
    """

    name: str
    read: Callable[[RunRecord], float]
    better: Literal["higher", "lower", "equal"]
    digits: int = 2


def percent(metric: str, digits: int = 2) -> Quantity:
    """Return the test score, of which more is better, as a percentage."""
    return Quantity(f"test {metric}, %", lambda run: 100 * run["test"], "higher", digits)


def log_at_layer(
    name: str, field: str, layer: int, log: Callable[[float], float] = math.log10
) -> Quantity:
    """Return the logarithm of the number of one layer, from a list with a number per layer."""
    return Quantity(name, lambda run: log(max(run[field][layer], 1e-30)), "equal")


ACCURACY = percent("accuracy", 1)
AUROC = percent("AUROC")
MAE = Quantity("test MAE", lambda run: run["test"], "lower", 3)
LOG10_MSE = Quantity("log₁₀ of the test MSE", lambda run: math.log10(run["test"]), "lower")
MEAN_EXIT = Quantity("mean exit layer", lambda run: run["exits"]["mean"], "equal", 1)
PARAMETERS = Quantity("parameters", lambda run: run["params"], "equal", 0)
