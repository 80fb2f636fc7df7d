"""Texts and tables for the terminal."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rich.console import Group
from rich.table import Table

from eegnn.analysis.calibrate import KEPT, Calibration, Choice
from eegnn.nn.exits import Exits
from eegnn.train.demo import DemoResult


def exit_histogram(exits: Exits, width: int = 40) -> Table:
    """Make a bar for each layer from 1 to the last at which a unit left."""
    table = Table(box=None, pad_edge=False)
    table.add_column("layer", justify="right")
    table.add_column("left", justify="right")
    table.add_column("")
    histogram = exits.histogram[1 : int(exits.layer.max()) + 1].tolist() if len(exits.layer) else []
    highest = max(histogram, default=0)
    for layer, count in enumerate(histogram, start=1):
        bar = "█" * round(width * count / highest) if highest else ""
        table.add_row(str(layer), f"{count:,}", bar or ("▏" if count else ""))
    return table


def demo_report(result: DemoResult) -> Group:
    """Return the result of the demo: exit layers, scores and times."""
    exits = result.exits
    return Group(
        f"\nExit layers (of {exits.layer.numel():,} nodes, budget {exits.num_layers}):",
        exit_histogram(exits),
        f"\ntest ROC AUC      {result.test:.4f}   (validation {result.val:.4f}, "
        f"epoch {result.best_epoch})"
        f"\nat full depth     {result.test_full_depth:.4f}"
        f"\ntime with exits   {1e3 * result.seconds_with_exits:.1f} ms a pass, "
        f"{float(exits.cost):.0%} of the node updates"
        f"\ntime without      {1e3 * result.seconds_full_depth:.1f} ms a pass",
    )


def run_report(summary: dict[str, Any], folder: Path) -> str:
    """Return the result of a training run, and where it is."""
    exits, metric = summary["exits"], f"test {summary['metric']}"
    return (
        f"{metric:18}{summary['test']:.4f}   (validation {summary['val']:.4f}, "
        f"epoch {summary['best_epoch']} of {summary['epochs']})"
        f"\nexit layers       {exits['min']} to {exits['max']}, median {exits['median']:g}, "
        f"of {len(exits['histogram']) - 1}"
        f"\nsize and time     {summary['params']:,} parameters, {summary['seconds']:.0f} s on "
        f"{summary.get('device', 'cpu')}"
        f"\nlearning curves   {folder / 'curves.png'}"
    )


def calibration_table(found: Calibration, costs: Sequence[float]) -> Table:
    """Make a row for each exit rule: what it is, and what it costs and scores."""
    table = Table(box=None, pad_edge=False)
    for heading in ("", "threshold", "layers", "cost", found.metric, "test cost", "test"):
        table.add_column(heading, justify="left" if heading == "" else "right")

    def add(name: str, choice: Choice) -> None:
        val, test = choice.val, choice.test
        table.add_row(
            name,
            "own" if val.threshold is None else f"{val.threshold:.4g}",
            str(found.num_layers if val.max_layers is None else val.max_layers),
            f"{val.cost:.0%}",
            f"{val.score:.4f}",
            f"{test.cost:.0%}",
            f"{test.score:.4f}",
        )

    add("own rule", found.own)
    add("full depth", found.full)
    add("cheapest as good as own", found.for_score())
    add(f"cheapest to keep {KEPT:.0%}", found.keeping())
    for cost in costs:
        if cost >= found.lowest_cost:
            add(f"best for {cost:.0%}", found.for_cost(cost))
        else:
            table.add_row(f"best for {cost:.0%}: no rule costs so little")
    return table
