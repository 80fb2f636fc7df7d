import io

import torch
from rich.console import Console

from eegnn.nn.exits import Exits
from eegnn.report.terminal import exit_histogram


def test_bars_are_proportional_and_nobody_is_lost() -> None:
    layer = torch.tensor([0] * 10 + [2] * 20 + [3])
    exits = Exits(layer, torch.zeros(31), torch.zeros(3, 31), torch.tensor(0.0), num_layers=3)
    printed = io.StringIO()
    Console(width=80, file=printed).print(exit_histogram(exits, width=20))
    lines = [line.split() for line in printed.getvalue().splitlines()[1:]]
    assert [int(line[1]) for line in lines] == [10, 0, 20, 1]
    assert [line[2].count("█") if len(line) > 2 else 0 for line in lines] == [10, 0, 20, 1]
