import io
from pathlib import Path

import torch
from rich.console import Console

from eegnn.nn.exits import Exits
from eegnn.report.terminal import calibration_table, exit_histogram, run_report
from tests.report.test_calibration import HIGHER


def test_bars_are_proportional_and_nobody_is_lost() -> None:
    layer = torch.tensor([1] * 10 + [3] * 20 + [4])
    exits = Exits(layer, torch.zeros(31), torch.zeros(4, 31), torch.tensor(0.0), num_layers=5)
    printed = io.StringIO()
    Console(width=80, file=printed).print(exit_histogram(exits, width=20))
    lines = [line.split() for line in printed.getvalue().splitlines()[1:]]
    assert [int(line[0]) for line in lines] == [1, 2, 3, 4]
    assert [int(line[1]) for line in lines] == [10, 0, 20, 1]
    assert [line[2].count("█") if len(line) > 2 else 0 for line in lines] == [10, 0, 20, 1]


def test_a_table_of_rules_says_where_none_is_cheap_enough() -> None:
    printed = io.StringIO()
    Console(width=120, file=printed).print(calibration_table(HIGHER, [0.05, 0.5]))
    *_, low, half = printed.getvalue().splitlines()
    assert low.strip() == "best for 5%: no rule costs so little"
    assert half.split() == ["best", "for", "50%", "0.1", "20", "40%", "0.7950", "45%", "0.6900"]


def test_the_report_of_a_run_says_what_was_reached_and_where_it_is() -> None:
    summary = {
        "metric": "roc_auc",
        "test": 0.91234,
        "val": 0.9,
        "best_epoch": 57,
        "epochs": 300,
        "params": 12_345,
        "seconds": 61.4,
        "exits": {"min": 2, "median": 7.5, "max": 19, "histogram": [0] * 21},
    }
    said = [line.split(maxsplit=2) for line in run_report(summary, Path("runs/a")).splitlines()]
    assert said == [
        ["test", "roc_auc", "0.9123   (validation 0.9000, epoch 57 of 300)"],
        ["exit", "layers", "2 to 19, median 7.5, of 20"],
        ["size", "and", "time     12,345 parameters, 61 s on cpu"],
        ["learning", "curves", "runs/a/curves.png"],
    ]
