"""Who does which run: by locks on one machine, by trials of an Optuna study on several."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from typing import Any

from eegnn.studies.locks import Locks
from eegnn.studies.study import Line
from eegnn.train.storage import Silence, alive, finish, import_optuna, open_storage, poll


class ClaimLost(Exception):
    """Nobody heard of this process for so long that its run was given to another."""


class Claims:
    """Runs of the processes of one machine: who holds the lock of a run does it.

    Args:
        locks: of the folder of runs.
    """

    def __init__(self, locks: Locks) -> None:
        self._locks = locks

    def hold(self, key: str) -> AbstractContextManager[bool]:
        """Try to be the one who does a run; yield whether it worked."""
        return self._locks.hold(key)

    def check(self, key: str) -> None:
        """Raise :class:`ClaimLost` if a run that is held was given to another."""

    def finish(self, key: str, line: Line) -> bool:
        """Share the result of a run that is held; return whether it counts."""
        return True

    def publish(self, known: Mapping[str, Line]) -> None:
        """Share results that were there before."""

    def results(self) -> list[Line]:
        """Return what was shared since the last call."""
        return []

    def wait(self) -> bool:
        """Wait a moment for others, if their results will come here."""
        return False


class SharedClaims(Claims):
    """Runs of all who share a storage.

    A claim is a running trial that names the run. The storage numbers trials as they are made, each
    number once: of those who claim the same run at the same time, the lowest number has it. A
    finished trial holds the line of results. A claim whose owner is silent is failed by whoever
    notices, and the run is free again.

    Within a machine the lock is held too, so that never two processes are in one folder.

    Args:
        locks: of the folder of runs.
        storage: see :func:`~eegnn.train.storage.open_storage`.
        name: of the study.
    """

    def __init__(self, locks: Locks, storage: str, name: str) -> None:
        super().__init__(locks)
        self._optuna = import_optuna()
        self._states = self._optuna.trial.TrialState
        self._storage = open_storage(storage)
        self._study = self._optuna.create_study(
            study_name=name, storage=self._storage, load_if_exists=True
        )
        self._silence = Silence(self._storage, self._study)
        self._held: dict[str, tuple[int, threading.Event]] = {}
        self._given: set[int] = set()

    @contextmanager
    def hold(self, key: str) -> Iterator[bool]:
        """Try to be the one who does a run; yield whether it worked."""
        self._silence.fail()
        with super().hold(key) as free:
            if not free or self._claims(key):
                yield False
                return
            trial_id = self._new_trial(key, self._states.RUNNING)
            with alive(self._storage, trial_id) as lost:
                number = self._storage.get_trial(trial_id).number
                first = number == min(self._claims(key), default=None)
                if first:
                    self._held[key] = trial_id, lost
                try:
                    yield first
                finally:
                    self._held.pop(key, None)
                    finish(self._storage, trial_id, self._states.FAIL)  # unless it is finished

    def check(self, key: str) -> None:
        """Raise :class:`ClaimLost` if a run that is held was given to another."""
        if self._held[key][1].is_set():
            raise ClaimLost

    def finish(self, key: str, line: Line) -> bool:
        """Share the result of a run that is held; return whether it counts."""
        trial_id, _ = self._held[key]
        try:
            self._storage.set_trial_user_attr(trial_id, "line", line)
        except self._optuna.exceptions.UpdateFinishedTrialError:
            return False
        return finish(self._storage, trial_id, self._states.COMPLETE, [0.0])  # it wants a value

    def publish(self, known: Mapping[str, Line]) -> None:
        """Share results that were there before."""
        shared = {trial.user_attrs["run"] for trial in self._trials(self._states.COMPLETE)}
        for key in known.keys() - shared:
            self._new_trial(key, self._states.COMPLETE, known[key])

    def results(self) -> list[Line]:
        """Return what was shared since the last call."""
        trials = self._trials(self._states.COMPLETE)
        new = [trial for trial in trials if trial.number not in self._given]
        self._given.update(trial.number for trial in new)
        return [trial.user_attrs["line"] for trial in new]

    def wait(self) -> bool:
        """Wait a moment for others, if their results will come here."""
        poll()
        return True

    def _claims(self, key: str) -> list[int]:
        """The numbers of trials that do a run, or have done it."""
        trials = self._trials(self._states.RUNNING, self._states.COMPLETE)
        return [trial.number for trial in trials if trial.user_attrs["run"] == key]

    def _trials(self, *states: Any) -> list[Any]:
        return self._study.get_trials(deepcopy=False, states=states)

    def _new_trial(self, key: str, state: Any, line: Line | None = None) -> int:
        study_id = self._storage.get_study_id_from_name(self._study.study_name)
        template = self._optuna.trial.create_trial(
            state=state,
            value=None if line is None else 0.0,
            user_attrs={"run": key} if line is None else {"run": key, "line": line},
        )
        return int(self._storage.create_new_trial(study_id, template))
