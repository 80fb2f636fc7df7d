"""What a person reads in the terminal."""

from __future__ import annotations

from rich.table import Table

from eegnn.nn.exits import Exits


def exit_histogram(exits: Exits, width: int = 40) -> Table:
    """Make a bar for each layer up to the last at which someone left."""
    table = Table(box=None, pad_edge=False)
    table.add_column("layer", justify="right")
    table.add_column("left", justify="right")
    table.add_column("")
    histogram = exits.histogram[: int(exits.layer.max()) + 1].tolist() if len(exits.layer) else []
    highest = max(histogram, default=0)
    for layer, count in enumerate(histogram):
        bar = "█" * round(width * count / highest) if highest else ""
        table.add_row(str(layer), f"{count:,}", bar or ("▏" if count else ""))
    return table
