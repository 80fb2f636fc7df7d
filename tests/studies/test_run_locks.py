from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from eegnn.compute import Compute
from eegnn.studies import runner
from eegnn.studies.run_locks import LockLost, RunLocks, SharedRunLocks
from eegnn.studies.runner import Runner
from eegnn.studies.store import ResultStore
from eegnn.train import storage
from eegnn.train.config import Config
from eegnn.train.loop import TrainingError
from eegnn.train.results import read_results
from tests.postgres import postgres
from tests.studies.tiny import config
from tests.train.records import SUMMARY

needs_fork = pytest.mark.skipif(sys.platform == "win32", reason="needs fork")
KEY = "0123456789abcdef" * 4


def process_that_holds(path: Path, key: str) -> int:
    """Start a process that takes a lock and waits; return its id once it has it."""
    seen, tell = os.pipe()
    child = os.fork()
    if child == 0:
        with RunLocks(path).hold(key) as mine:
            os.write(tell, b"1" if mine else b"0")
            signal.pause()
    assert os.read(seen, 1) == b"1"
    os.close(seen)
    os.close(tell)
    return child


@needs_fork
def test_a_lock_is_held_by_one_process_and_dies_with_it(tmp_path: Path) -> None:
    child = process_that_holds(tmp_path / "locks", KEY)
    locks = RunLocks(tmp_path / "locks")
    try:
        with locks.hold(KEY) as mine:
            assert not mine
        with locks.hold("f" + KEY) as mine:
            assert mine
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
    with locks.hold(KEY) as mine:
        assert mine
    locks.close()


@needs_fork
def test_a_lock_is_free_again_when_the_work_is_done_or_fails(tmp_path: Path) -> None:
    locks = RunLocks(tmp_path / "new" / "locks")
    with pytest.raises(KeyError), locks.hold(KEY):
        raise KeyError
    child = process_that_holds(tmp_path / "new" / "locks", KEY)  # would fail
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    locks.close()


@pytest.fixture(params=["study.db", "study.journal", "postgres"], scope="module")
def where(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[str]:
    pytest.importorskip("optuna", reason="needs eegnn[tune]")
    if request.param == "postgres":
        with postgres() as url:
            yield url
    else:
        yield str(tmp_path_factory.mktemp("storage") / request.param)


@pytest.fixture
def file(tmp_path: Path) -> str:
    pytest.importorskip("optuna", reason="needs eegnn[tune]")
    return str(tmp_path / "study.db")


def shared_locks(folder: Path, where: str, name: str = "test") -> SharedRunLocks:
    """Locks as another machine has them; file locks never stop the process that holds them."""
    return SharedRunLocks(folder / ".locks", where, name)


def test_of_those_who_want_a_run_together_one_has_it(where: str, tmp_path: Path) -> None:
    together, all_asked = threading.Barrier(4), threading.Barrier(4)

    def lock(worker: int) -> list[bool]:
        own, won = shared_locks(tmp_path / str(worker), where, "together"), []
        for turn in range(5):
            together.wait()
            with own.hold(f"{turn:016x}") as mine:
                won.append(mine)
                all_asked.wait()
        return won

    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lock, range(4)))
    assert [sum(turn) for turn in zip(*found, strict=True)] == [1] * 5


def test_a_result_is_final_and_everyone_gets_it(where: str, tmp_path: Path) -> None:
    first, second = (shared_locks(tmp_path / name, where, "final") for name in ("a", "b"))
    with first.hold("aa") as mine:
        assert mine
        assert first.finish("aa", {"test": 0.5, "exits": {"min": None}})
    with second.hold("aa") as mine:
        assert not mine
    assert second.new_results() == [{"test": 0.5, "exits": {"min": None}}]


def test_a_run_that_was_not_finished_is_free_again(file: str, tmp_path: Path) -> None:
    own = shared_locks(tmp_path, file)
    with pytest.raises(KeyError), own.hold("aa"):
        raise KeyError
    with shared_locks(tmp_path, file).hold("aa") as mine:
        assert mine


def test_the_lock_of_a_dead_worker_expires_and_that_of_a_live_one_does_not(
    where: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(storage, "HEARTBEAT_TIMEOUT", 1.0)
    dead, live, other = (shared_locks(tmp_path / name, where, "expiry") for name in ("a", "b", "c"))
    dead._new_trial("aa", dead._states.RUNNING)  # and was killed before it gave a sign
    with live.hold("bb") as mine:
        assert mine
        with other.hold("aa") as early:
            assert not early
        end, late = time.monotonic() + 60, False
        while not late and time.monotonic() < end:
            other.wait()
            with other.hold("aa") as late, other.hold("bb") as second:
                assert not second
        assert late
        live.check("bb")


def test_who_was_given_up_notices(
    file: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(storage, "HEARTBEAT_TIMEOUT", 0.4)
    own = shared_locks(tmp_path, file)
    with own.hold("aa") as mine:
        assert mine
        own.check("aa")
        trial_id, lost = own._held["aa"]
        storage.finish(own._storage, trial_id, own._states.FAIL)
        assert lost.wait(30)
        with pytest.raises(LockLost):
            own.check("aa")
        assert not own.finish("aa", {"test": 1.0})
    assert own.new_results() == []


def test_results_come_to_who_asks_without_training(
    where: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def work(machine: str, *splits: int) -> list[Config]:
        wanted = [config(split=split) for split in splits]
        store = ResultStore(tmp_path / machine / "results", "tiny")
        return Runner(store, tmp_path / machine / "runs").run(wanted, where)

    assert work("a", 0) == []

    def no(*given: object) -> None:
        raise AssertionError("trained again")

    monkeypatch.setattr(runner, "train", no)
    assert work("b", 0) == []
    here, there = (read_results(tmp_path / name / "results" / "tiny.jsonl") for name in "ab")
    assert here == there
    assert len(here) == 1


def test_what_was_known_before_is_shared(
    file: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    old = ResultStore(tmp_path / "a", "tiny")
    old.add({**SUMMARY, "config": config().model_dump()})
    monkeypatch.setattr(runner, "train", None)
    for machine in ("a", "a", "b"):
        store = ResultStore(tmp_path / machine, "tiny")
        Runner(store, tmp_path / "runs").run([config()], file)
    assert read_results(tmp_path / "b" / "tiny.jsonl") == read_results(
        tmp_path / "a" / "tiny.jsonl"
    )


def test_failures_are_shared_too(
    file: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def diverge(wanted: Config, folder: Path, *others: object, compute: Compute) -> None:
        folder.mkdir(parents=True)
        raise TrainingError("the loss is nan")

    monkeypatch.setattr(runner, "train", diverge)
    Runner(ResultStore(tmp_path / "a", "tiny"), tmp_path / "runs").run([config()], file)
    monkeypatch.setattr(runner, "train", None)
    store = ResultStore(tmp_path / "b", "tiny")
    Runner(store, tmp_path / "runs").run([config()], file)
    record = store.find(config())
    assert record is not None
    assert record["failed"] == "the loss is nan"
