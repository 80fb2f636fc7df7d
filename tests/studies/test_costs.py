from __future__ import annotations

from eegnn.studies.costs import Cost, cost
from tests.studies.tiny import config


def test_runs_take_as_long_as_finished_ones_of_the_same_data_set_and_model() -> None:
    records = [
        {"seconds": seconds, "config": config("gcn", split).model_dump()}
        for split, seconds in enumerate((60.0, 180.0))
    ]
    wanted = [config("gcn", split) for split in range(4)]
    assert cost(wanted, records) == Cost(minutes=8.0, timed=4, runs=4)
    assert cost([*wanted, config("adgn")], records) == Cost(minutes=8.0, timed=4, runs=5)
    assert cost([config("adgn")], records) == Cost(minutes=0.0, timed=0, runs=1)


def test_an_estimate_is_marked_as_one() -> None:
    assert Cost(1234.56, 4, 4).describe(9) == "1,234.6"
    assert Cost(8.0, 4, 5).describe(9) == "8+"
    assert Cost(0.0, 0, 5).describe(9_000) == "~9,000"
    assert Cost(0.0, 0, 5).describe(11_378) == "~11,000"
    assert Cost(0.0, 0, 0).describe(9) == "0"
