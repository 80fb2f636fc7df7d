"""An Optuna storage through which processes and machines share work, with a heartbeat."""

from __future__ import annotations

import threading
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import Any

#: A worker without a heartbeat for this many seconds is dead, and its work is done again. Others
#: look every two seconds and may be slow: so the work is taken over within two minutes.
HEARTBEAT_TIMEOUT = 100.0
#: The attribute of a running trial that its worker counts up.
HEARTBEAT = "heartbeat"
_JOURNALS, _DATABASES = (".log", ".journal"), (".db", ".sqlite", ".sqlite3")


def import_optuna() -> Any:
    """Return the module optuna, of which only errors are shown."""
    try:
        import optuna
    except ImportError as error:
        raise ImportError("sharing work needs optuna: pip install 'eegnn[tune]'") from error
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    # Retries, journals and pictures have been "experimental" for years.
    warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
    return optuna


def open_storage(where: str) -> Any:
    """Open an Optuna storage, or create it.

    Args:
        where: ``sqlite:///study.db`` or just ``study.db``, for processes of one machine;
            ``postgresql://user@host/name``, for several machines; ``study.log`` or
            ``study.journal``, a file on a disk that they share.

    Raises:
        ValueError: it is none of these, or cannot be opened.
        ImportError: Optuna, or the driver of PostgreSQL, is missing.
    """
    optuna = import_optuna()
    if "://" not in where:
        kind = Path(where).suffix
        if kind in _JOURNALS:
            return _open_journal(optuna, where)
        if kind not in _DATABASES:
            raise ValueError(
                f"storage must be a URL such as postgresql://host/name, or a file ending in "
                f"{', '.join(_DATABASES + _JOURNALS)}, got {where!r}"
            )
        where = f"sqlite:///{where}"
    if where.startswith("postgresql://"):
        where = where.replace("postgresql://", "postgresql+psycopg://", 1)
    return _open_database(optuna, where)


def _open_journal(optuna: Any, path: str) -> Any:
    from optuna.storages.journal import JournalFileBackend

    try:
        return optuna.storages.JournalStorage(JournalFileBackend(path))
    except Exception as error:  # its lines are replayed, and a damaged one may raise anything
        raise ValueError(f"storage {path} cannot be opened: {error}") from error


def _open_database(optuna: Any, url: str) -> Any:
    """Open a database. Of processes that create its tables at the same time all but one fail."""
    from sqlalchemy.engine import make_url
    from sqlalchemy.exc import ArgumentError, DBAPIError

    # A connection to a server that was restarted is opened again.
    options: dict[str, Any] = {"pool_pre_ping": True}
    if url.startswith("sqlite"):  # it lets one process write at a time, and waits 5 s for it
        options["connect_args"] = {"timeout": 60}
    name = url
    for attempt in range(10):
        try:
            name = make_url(url).render_as_string(hide_password=True)
            return optuna.storages.RDBStorage(url, options)
        except ArgumentError as error:
            raise ValueError(f"storage {name} is no URL that SQLAlchemy knows") from error
        except ImportError as error:
            raise ImportError(
                f"storage {name} needs a driver: pip install 'eegnn[postgres]'"
            ) from error
        except DBAPIError as error:
            reason = error
            time.sleep(0.1 * (attempt + 1))
    raise ValueError(f"storage {name} cannot be opened: {reason.orig}")


# Optuna's own heartbeat is not used: journals have none, and a worker that is killed between the
# start of a trial and its first beat would leave a trial that runs for ever.
@contextmanager
def heartbeat(storage: Any, trial_id: int) -> Iterator[threading.Event]:
    """Show to other processes that a running trial is worked on.

    Yields:
        An event that is set when another process has failed the trial, since it saw no heartbeat.
    """
    optuna = import_optuna()
    done, lost = threading.Event(), threading.Event()

    def beat() -> None:
        for number in count(1):
            try:
                storage.set_trial_user_attr(trial_id, HEARTBEAT, number)
            except optuna.exceptions.UpdateFinishedTrialError:
                lost.set()
            except Exception:  # the storage cannot be reached; it may be at the next beat
                storage.remove_session()
            if lost.is_set() or done.wait(HEARTBEAT_TIMEOUT / 8):
                storage.remove_session()
                return

    thread = threading.Thread(target=beat, daemon=True)
    thread.start()
    try:
        yield lost
    finally:
        done.set()
        thread.join()


class StaleTrials:
    """Finds running trials whose workers are dead.

    The clocks of machines differ: a trial is stale when its heartbeat has not changed for
    :data:`HEARTBEAT_TIMEOUT` seconds by the clock of this process.
    """

    def __init__(self, storage: Any, study: Any) -> None:
        self._storage = storage
        self._study = study
        self._last_beats: dict[int, tuple[Any, float]] = {}

    def fail(self) -> list[Any]:
        """Fail stale trials; each is returned to one process only."""
        optuna = import_optuna()
        states, now, failed = optuna.trial.TrialState, time.monotonic(), []
        for trial in self._study.get_trials(deepcopy=False, states=(states.RUNNING,)):
            beat = trial.user_attrs.get(HEARTBEAT)
            last, since = self._last_beats.setdefault(trial.number, (beat, now))
            if beat != last:
                self._last_beats[trial.number] = (beat, now)
            elif now - since > HEARTBEAT_TIMEOUT:
                trial_id = trial_id_of(self._storage, self._study, trial.number)
                if finish(self._storage, trial_id, states.FAIL):
                    failed.append(trial)
        return failed


def trial_id_of(storage: Any, study: Any, number: int) -> int:
    """Return what the storage calls the trial with this number in the study."""
    study_id = storage.get_study_id_from_name(study.study_name)
    return int(storage.get_trial_id_from_study_id_trial_number(study_id, number))


def finish(storage: Any, trial_id: int, state: Any, values: Any = None) -> bool:
    """End a running trial; return whether it was still running."""
    from optuna.exceptions import UpdateFinishedTrialError

    try:
        return bool(storage.set_trial_state_values(trial_id, state, values))
    except UpdateFinishedTrialError:
        return False


def poll() -> None:
    """Wait a moment before looking again at what other processes do."""
    time.sleep(min(HEARTBEAT_TIMEOUT / 8, 2.0))
