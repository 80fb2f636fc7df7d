from __future__ import annotations

import json
import multiprocessing
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import optuna
import pytest
from optuna.trial import TrialState

from eegnn.compute import CPU
from eegnn.data.minesweeper import minesweeper
from eegnn.data.npz import write_npz
from eegnn.train import tune as tune_module
from eegnn.train.config import Config, make_config
from eegnn.train.recipes import read_recipe
from eegnn.train.start import train
from eegnn.train.storage import open_storage
from eegnn.train.tune import tune


@pytest.fixture
def config(tmp_path: Path) -> Config:
    write_npz(tmp_path / "board.npz", minesweeper(10))
    return make_config({"dataset": str(tmp_path / "board.npz"), "model": "sasgnn", "epochs": 2})


def storage(folder: Path) -> str:
    return f"sqlite:///{folder / 'study.db'}"


def trials(config: Config, folder: Path) -> list[optuna.trial.FrozenTrial]:
    name = f"{config.dataset}-{config.model}"
    return optuna.load_study(study_name=name, storage=storage(folder)).trials


def work(config: Config, folder: Path) -> None:
    tune(config, 8, storage(folder), folder / "study")


def test_the_best_settings_become_a_recipe(config: Config, tmp_path: Path) -> None:
    seen: list[tuple[int, str]] = []
    best = tune(
        config,
        3,
        storage(tmp_path),
        tmp_path / "study",
        on_trial=lambda number, state, value: seen.append((number, state)),
    )
    assert seen == [(0, "complete"), (1, "complete"), (2, "complete")]
    values = [trial.value for trial in trials(config, tmp_path)]
    assert best["val"] == max(value for value in values if value is not None)
    recipe = read_recipe(Path(best["recipe"]))
    assert recipe["lr"] == best["params"]["lr"]
    summary = tmp_path / "study" / f"trial-{best['number']}" / "summary.json"
    assert json.loads(summary.read_text())["val"] == best["val"]
    assert (tmp_path / "study" / "history.png").exists()


def test_a_study_goes_on_where_it_was_left(config: Config, tmp_path: Path) -> None:
    tune(config, 2, storage(tmp_path), tmp_path / "study")
    again = tune(config, 4, storage(tmp_path), tmp_path / "study")
    assert again["finished"] == 4
    assert tune(config, 4, storage(tmp_path), tmp_path / "study")["finished"] == 4
    drawn = [tuple(sorted(trial.params.items())) for trial in trials(config, tmp_path)]
    assert len(set(drawn)) == 4


def test_those_who_start_together_draw_different_settings(config: Config, tmp_path: Path) -> None:
    """The study is empty for both when they open it."""
    given = (storage(tmp_path), tmp_path / "study", None, None, CPU)
    searches = [tune_module._Search(config, count, *given) for count in (2, 4)]
    for search in searches:
        search.run()
    assert len({str(trial.params) for trial in trials(config, tmp_path)}) == 4


@pytest.mark.slow
def test_two_processes_share_a_study(config: Config, tmp_path: Path) -> None:
    context = multiprocessing.get_context("spawn")
    workers = [context.Process(target=work, args=(config, tmp_path)) for _ in range(2)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
        assert worker.exitcode == 0
    done = [
        t for t in trials(config, tmp_path) if t.state in (TrialState.COMPLETE, TrialState.PRUNED)
    ]
    assert sorted(trial.number for trial in done) == list(range(8))


def test_processes_that_start_together_make_one_storage(tmp_path: Path) -> None:
    url, together = f"sqlite:///{tmp_path / 'new.db'}", threading.Barrier(8)

    def start() -> None:
        together.wait()
        open_storage(url)

    with ThreadPoolExecutor(8) as pool:
        for started in [pool.submit(start) for _ in range(8)]:
            started.result()
    assert optuna.get_all_study_names(url) == []


def test_a_storage_that_cannot_be_opened_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("time.sleep", lambda seconds: None)
    with pytest.raises(ValueError, match=r"storage sqlite:///.*missing/study.db cannot be opened"):
        open_storage(f"sqlite:///{tmp_path / 'missing' / 'study.db'}")


def study_in(folder: Path, config: Config) -> optuna.Study:
    name = f"{config.dataset}-{config.model}"
    return optuna.create_study(
        study_name=name, storage=storage(folder), direction="maximize", load_if_exists=True
    )


def finished(config: Config, folder: Path) -> int:
    ended = (TrialState.COMPLETE, TrialState.PRUNED)
    return sum(trial.state in ended for trial in trials(config, folder))


def test_the_trial_of_a_dead_worker_is_done_again(
    config: Config, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("eegnn.train.storage.HEARTBEAT_TIMEOUT", 1.0)
    dead = study_in(tmp_path, config).ask()  # and nobody runs it
    chosen = dead.suggest_float("lr", 1e-3, 1e-2, log=True)
    best = tune(config, 2, storage(tmp_path), tmp_path / "study")
    assert best["finished"] == finished(config, tmp_path) == 2
    states = [(trial.number, trial.state.name) for trial in trials(config, tmp_path)]
    assert states == [(0, "FAIL"), (1, "COMPLETE"), (2, "COMPLETE")]
    assert trials(config, tmp_path)[2].params["lr"] == chosen


def test_an_interrupted_trial_is_done_again(
    config: Config, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(*given: object, **named: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("eegnn.train.tune.train", interrupt)
        with pytest.raises(KeyboardInterrupt):
            tune(config, 2, storage(tmp_path), tmp_path / "study")
    assert tune(config, 2, storage(tmp_path), tmp_path / "study")["finished"] == 2
    assert [trial.state.name for trial in trials(config, tmp_path)].count("FAIL") == 1


def test_a_journal_on_a_shared_disk_holds_a_study_too(config: Config, tmp_path: Path) -> None:
    where = str(tmp_path / "study.journal")
    assert tune(config, 2, where, tmp_path / "study")["finished"] == 2
    assert tune(config, 3, where, tmp_path / "study")["finished"] == 3


def test_who_was_given_up_goes_on_with_another_trial(
    config: Config, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As if the process had been cut off from the storage, and its trial given to another."""
    study = study_in(tmp_path, config)

    def cut_off(*given: Any, **named: Any) -> dict[str, Any]:
        monkeypatch.setattr(tune_module, "train", train)
        study.tell(0, state=TrialState.FAIL)
        return train(*given, **named)

    monkeypatch.setattr(tune_module, "train", cut_off)
    assert tune(config, 3, storage(tmp_path), tmp_path / "study")["finished"] == 3
    assert [trial.state.name for trial in trials(config, tmp_path)] == ["FAIL"] + 3 * ["COMPLETE"]


def test_a_study_is_not_complete_while_a_failed_trial_waits_to_be_repeated(
    config: Config, tmp_path: Path
) -> None:
    """As if who failed it had died before it could be repeated."""
    study = study_in(tmp_path, config)
    study.tell(study.ask(), state=TrialState.FAIL)
    assert tune(config, 2, storage(tmp_path), tmp_path / "study")["finished"] == 2


def test_of_two_repetitions_of_a_trial_one_is_done(config: Config, tmp_path: Path) -> None:
    study = study_in(tmp_path, config)
    study.tell(study.ask(), state=TrialState.FAIL)
    retry = optuna.storages.RetryHeartbeatStaleTrialCallback()
    for _ in range(2):
        retry(study, study.trials[0])
    assert tune(config, 1, storage(tmp_path), tmp_path / "study")["finished"] == 1
    states = [trial.state.name for trial in trials(config, tmp_path)]
    assert states == ["FAIL", "COMPLETE", "FAIL"]


def test_a_trial_that_always_fails_is_given_up(config: Config, tmp_path: Path) -> None:
    study = study_in(tmp_path, config)
    retry = optuna.storages.RetryHeartbeatStaleTrialCallback()
    for number in range(4):
        study.tell(study.ask(), state=TrialState.FAIL)
        if number < 3:
            retry(study, study.trials[number])
    assert tune(config, 2, storage(tmp_path), tmp_path / "study")["finished"] == 1
