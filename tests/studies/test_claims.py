from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from eegnn.studies import runner
from eegnn.studies.claims import ClaimLost, SharedClaims
from eegnn.studies.locks import Locks
from eegnn.studies.runner import do_runs
from eegnn.studies.store import Book, key_of
from eegnn.train import storage
from eegnn.train.config import Config
from eegnn.train.loop import TrainingError
from eegnn.train.results import read_results
from tests.postgres import postgres
from tests.studies.tiny import config

pytest.importorskip("optuna", reason="needs eegnn[tune]")


@pytest.fixture(params=["study.db", "study.journal", "postgres"], scope="module")
def where(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[str]:
    if request.param == "postgres":
        with postgres() as url:
            yield url
    else:
        yield str(tmp_path_factory.mktemp("storage") / request.param)


@pytest.fixture
def file(tmp_path: Path) -> str:
    return str(tmp_path / "study.db")


def claims(folder: Path, where: str, name: str = "test") -> SharedClaims:
    """Of a process on a machine of its own: locks of one process never stop itself."""
    return SharedClaims(Locks(folder / ".locks"), where, name)


def test_of_those_who_claim_a_run_together_one_has_it(where: str, tmp_path: Path) -> None:
    together, all_asked = threading.Barrier(4), threading.Barrier(4)

    def claim(worker: int) -> list[bool]:
        own, won = claims(tmp_path / str(worker), where, "together"), []
        for turn in range(5):
            together.wait()
            with own.hold(f"{turn:016x}") as mine:
                won.append(mine)
                all_asked.wait()
        return won

    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(claim, range(4)))
    assert [sum(turn) for turn in zip(*found, strict=True)] == [1] * 5


def test_a_result_is_final_and_everyone_gets_it(where: str, tmp_path: Path) -> None:
    first, second = (claims(tmp_path / name, where, "final") for name in ("a", "b"))
    with first.hold("aa") as mine:
        assert mine
        assert first.finish("aa", {"test": 0.5, "exits": {"min": None}})
    with second.hold("aa") as mine:
        assert not mine
    assert second.results() == [{"test": 0.5, "exits": {"min": None}}]


def test_a_run_that_was_not_finished_is_free_again(file: str, tmp_path: Path) -> None:
    own = claims(tmp_path, file)
    with pytest.raises(KeyError), own.hold("aa"):
        raise KeyError
    with claims(tmp_path, file).hold("aa") as mine:
        assert mine


def test_the_claim_of_a_dead_worker_expires_and_that_of_a_live_one_does_not(
    where: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(storage, "SILENCE", 1.0)
    dead, live, other = (claims(tmp_path / name, where, "expiry") for name in ("a", "b", "c"))
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
    monkeypatch.setattr(storage, "SILENCE", 0.4)
    own = claims(tmp_path, file)
    with own.hold("aa") as mine:
        assert mine
        own.check("aa")
        trial_id, lost = own._held["aa"]
        storage.finish(own._storage, trial_id, own._states.FAIL)
        assert lost.wait(30)
        with pytest.raises(ClaimLost):
            own.check("aa")
        assert not own.finish("aa", {"test": 1.0})
    assert own.results() == []


def test_results_come_to_who_asks_without_training(
    where: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def work(machine: str, *splits: int) -> list[Config]:
        wanted = [config(split=split) for split in splits]
        book = Book(tmp_path / machine / "results", "tiny")
        return do_runs(wanted, book, tmp_path / machine / "runs", storage=where)

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
    old = Book(tmp_path / "a", "tiny")
    old.add({"test": 0.5, "config": config().model_dump()})
    monkeypatch.setattr(runner, "train", None)
    for machine in ("a", "a", "b"):
        do_runs([config()], Book(tmp_path / machine, "tiny"), tmp_path / "runs", storage=file)
    assert read_results(tmp_path / "b" / "tiny.jsonl") == read_results(
        tmp_path / "a" / "tiny.jsonl"
    )


def test_failures_are_shared_too(
    file: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def diverge(wanted: Config, folder: Path, *others: object) -> None:
        folder.mkdir(parents=True)
        raise TrainingError("the loss is nan")

    monkeypatch.setattr(runner, "train", diverge)
    do_runs([config()], Book(tmp_path / "a", "tiny"), tmp_path / "runs", storage=file)
    monkeypatch.setattr(runner, "train", None)
    book = Book(tmp_path / "b", "tiny")
    do_runs([config()], book, tmp_path / "runs", storage=file)
    assert book.failed(config())
    assert book.find(config()) is None
    assert key_of(config()) in book._failed
