import json
from pathlib import Path

import pytest

from eegnn.train.config import make_config
from eegnn.train.results import append_result, find_result, read_results
from eegnn.train.run import RunFolder
from tests.train.records import SUMMARY


def finished(path: Path, seed: int) -> RunFolder:
    folder = RunFolder(path)
    folder.start(make_config({"dataset": "texas", "seed": seed}), "classification")
    folder.write_summary({**SUMMARY, "test": 0.5 + seed})
    return folder


def test_a_result_carries_what_is_needed_to_get_it_again(tmp_path: Path) -> None:
    results = tmp_path / "new" / "results.jsonl"
    append_result(results, finished(tmp_path / "run", 3), "eegnn train texas --seed 3")
    (line,) = read_results(results)
    assert line["command"] == "eegnn train texas --seed 3"
    assert line["test"] == 3.5
    assert line["config"]["seed"] == 3
    assert {"eegnn", "torch", "torch_geometric"} <= line["versions"].keys()
    assert "commit" in line


def test_results_are_found_by_their_whole_configuration(tmp_path: Path) -> None:
    results = tmp_path / "results.jsonl"
    assert read_results(results) == []
    for seed in (0, 1):
        append_result(results, finished(tmp_path / str(seed), seed), "")
    found = find_result(results, make_config({"dataset": "texas", "seed": 1}))
    assert found is not None
    assert found["test"] == 1.5
    assert find_result(results, make_config({"dataset": "texas", "seed": 1, "lr": 0.5})) is None


def test_an_unfinished_run_is_no_result(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path / "run")
    folder.start(make_config({"dataset": "texas"}), "classification")
    with pytest.raises(ValueError, match="not finished"):
        append_result(tmp_path / "results.jsonl", folder, "")
    assert not (tmp_path / "results.jsonl").exists()


def test_lines_are_json(tmp_path: Path) -> None:
    results = tmp_path / "results.jsonl"
    append_result(results, finished(tmp_path / "run", 0), "a 'quoted' command")
    assert json.loads(results.read_text())["command"] == "a 'quoted' command"


def test_a_younger_setting_had_its_default(tmp_path: Path) -> None:
    folder, path = finished(tmp_path / "run", 0), tmp_path / "results.jsonl"
    append_result(path, folder, "")
    (line,) = read_results(path)
    del line["config"]["clip_norm"]
    path.write_text(json.dumps(line) + "\n")
    config = folder.config()
    assert find_result(path, config) == line
    assert find_result(path, config.model_copy(update={"clip_norm": 1.0})) is None
