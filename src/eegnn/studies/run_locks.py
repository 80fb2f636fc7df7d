"""Which process does which run: by file locks on one machine, by an Optuna study on several."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from eegnn.studies.quantities import RunRecord
from eegnn.train.storage import StaleTrials, finish, heartbeat, import_optuna, open_storage, poll

try:
    import fcntl
except ImportError:  # pragma: no cover - Windows: nothing is shared there
    fcntl = None  # type: ignore[assignment]


class LockLost(Exception):
    """No sign of life of this process was seen for so long that its run was given to another."""


class RunLocks:
    """Locks on runs that the processes of one machine see: who holds the lock does the run.

    Each lock is one byte of a file. The system releases a lock when its process ends, however it
    ends: nothing has to be renewed, nothing expires, and nothing is left behind. Where the system
    has no such locks, all runs are free.

    Args:
        path: the file, which stays empty.
    """

    def __init__(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self._file = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)

    @contextmanager
    def hold(self, key: str) -> Iterator[bool]:
        """Try to lock the run with this key, hexadecimal digits; yield whether it worked."""
        if fcntl is None:
            yield True
            return
        offset = int(key[:15], 16)  # offsets have 63 bits
        try:
            fcntl.lockf(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, offset)
        except OSError:
            yield False
            return
        try:
            yield True
        finally:
            fcntl.lockf(self._file, fcntl.LOCK_UN, 1, offset)

    def close(self) -> None:
        """Release all locks that this object holds."""
        os.close(self._file)

    def check(self, key: str) -> None:
        """Raise :class:`LockLost` if a run that is held was given to another process."""

    def finish(self, key: str, record: RunRecord) -> bool:
        """Share the result of a run that is held; return whether it counts."""
        return True

    def publish(self, known: Mapping[str, RunRecord]) -> None:
        """Share results that were there before."""

    def new_results(self) -> list[RunRecord]:
        """Return what was shared since the last call."""
        return []

    def wait(self) -> bool:
        """Wait a moment for others; return whether their results will come here."""
        return False


class SharedRunLocks(RunLocks):
    """Locks on runs that all who share a storage see.

    A lock is a running trial that names the run. The storage numbers trials as they are made, each
    number once: of the processes that want the same run at the same time, the one with the lowest
    number has it. A finished trial holds the record of the run. A trial whose process gives no sign
    of life is failed by the process that notices, and the run is free again.

    Within a machine the file lock is held too, so that two processes never use the same folder.

    Args:
        path: the file of the locks within this machine.
        storage: see :func:`~eegnn.train.storage.open_storage`.
        name: of the study.
    """

    def __init__(self, path: Path, storage: str, name: str) -> None:
        super().__init__(path)
        self._optuna = import_optuna()
        self._states = self._optuna.trial.TrialState
        self._storage = open_storage(storage)
        self._study = self._optuna.create_study(
            study_name=name, storage=self._storage, load_if_exists=True
        )
        self._stale_trials = StaleTrials(self._storage, self._study)
        self._held: dict[str, tuple[int, threading.Event]] = {}
        self._returned: set[int] = set()

    @contextmanager
    def hold(self, key: str) -> Iterator[bool]:
        """Try to lock the run with this key; yield whether it worked."""
        self._stale_trials.fail()
        with super().hold(key) as free:
            if not free or self._numbers(key):
                yield False
                return
            trial_id = self._new_trial(key, self._states.RUNNING)
            with heartbeat(self._storage, trial_id) as lost:
                number = self._storage.get_trial(trial_id).number
                first = number == min(self._numbers(key), default=None)
                if first:
                    self._held[key] = trial_id, lost
                try:
                    yield first
                finally:
                    self._held.pop(key, None)
                    finish(self._storage, trial_id, self._states.FAIL)  # unless it is finished

    def check(self, key: str) -> None:
        """Raise :class:`LockLost` if the lock is held by another process now."""
        if self._held[key][1].is_set():
            raise LockLost

    def finish(self, key: str, record: RunRecord) -> bool:
        """Share the result of a run that is held; return whether it counts."""
        trial_id, _ = self._held[key]
        try:
            self._storage.set_trial_user_attr(trial_id, "line", record)
        except self._optuna.exceptions.UpdateFinishedTrialError:
            return False
        # Optuna wants a value of every completed trial.
        return finish(self._storage, trial_id, self._states.COMPLETE, [0.0])

    def publish(self, known: Mapping[str, RunRecord]) -> None:
        """Share results that were there before."""
        shared = {trial.user_attrs["run"] for trial in self._trials(self._states.COMPLETE)}
        for key in known.keys() - shared:
            self._new_trial(key, self._states.COMPLETE, known[key])

    def new_results(self) -> list[RunRecord]:
        """Return what was shared since the last call."""
        trials = self._trials(self._states.COMPLETE)
        new = [trial for trial in trials if trial.number not in self._returned]
        self._returned.update(trial.number for trial in new)
        return [trial.user_attrs["line"] for trial in new]

    def wait(self) -> bool:
        """Wait a moment for others; return whether their results will come here."""
        poll()
        return True

    def _numbers(self, key: str) -> list[int]:
        """Return the numbers of trials that do a run, or have done it."""
        trials = self._trials(self._states.RUNNING, self._states.COMPLETE)
        return [trial.number for trial in trials if trial.user_attrs["run"] == key]

    def _trials(self, *states: Any) -> list[Any]:
        return self._study.get_trials(deepcopy=False, states=states)

    def _new_trial(self, key: str, state: Any, record: RunRecord | None = None) -> int:
        study_id = self._storage.get_study_id_from_name(self._study.study_name)
        template = self._optuna.trial.create_trial(
            state=state,
            value=None if record is None else 0.0,
            user_attrs={"run": key} if record is None else {"run": key, "line": record},
        )
        return int(self._storage.create_new_trial(study_id, template))


@contextmanager
def exclusive(path: Path) -> Iterator[None]:
    """Wait until no other process holds this file, which is made if needed, and hold it."""
    with path.open("ab") as file:
        if fcntl is not None:
            # Unlike the locks of runs: `lockf` releases as soon as the file is read and closed.
            fcntl.flock(file, fcntl.LOCK_EX)
        yield
