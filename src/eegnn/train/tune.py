"""Search for settings, by any number of processes on one study."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from eegnn._json import to_json
from eegnn.compute import CPU, Compute
from eegnn.io import write_atomically
from eegnn.train.config import Config, make_config
from eegnn.train.loop import TrainingError
from eegnn.train.metrics import ERRORS
from eegnn.train.prepare import prepare
from eegnn.train.spaces import suggest_settings
from eegnn.train.start import train
from eegnn.train.storage import (
    StaleTrials,
    heartbeat,
    import_optuna,
    open_storage,
    poll,
    trial_id_of,
)

#: A trial is repeated so many times at most.
MAX_RETRIES = 3


def tune(
    config: Config,
    trials: int,
    storage: str,
    folder: Path,
    root: Path | None = None,
    on_trial: Callable[[int, str, float | None], None] | None = None,
    compute: Compute = CPU,
) -> dict[str, Any]:
    """Work on a study until it has ``trials`` finished trials, and write out the best settings.

    Processes that share the storage share the study: each trial is run by one of them, and all
    stop when the study is complete. A study that was interrupted goes on. The trial of a process
    that died, or was interrupted, is done again, up to three times.

    Args:
        config: what is not searched for; names the data set and the model.
        trials: size of the study.
        storage: where the study is kept, see :func:`~eegnn.train.storage.open_storage`.
        folder: for the runs of the trials, ``best.json`` (a recipe) and two pictures.
        root: the data folder.
        on_trial: called after each trial with its number, state and validation score.
        compute: device and precision.

    Returns:
        The best trial: ``number``, ``val``, ``params``, ``finished`` and ``recipe``.
    """
    return _Search(config, trials, storage, folder, root, on_trial, compute).run()


class _Surplus(Exception):
    """Another process was faster: the study needs no further trial."""


@dataclass
class _Search:
    """The study, as one of the processes that share it; the fields are those of :func:`tune`."""

    config: Config
    trials: int
    storage: str
    folder: Path
    root: Path | None
    on_trial: Callable[[int, str, float | None], None] | None
    compute: Compute

    def __post_init__(self) -> None:
        self._optuna = optuna = import_optuna()
        self._states = optuna.trial.TrialState
        self._storage = open_storage(self.storage)
        metric = prepare(self.config, self.root).metric
        self._study = optuna.create_study(
            study_name=f"{self.config.dataset}-{self.config.model}",
            storage=self._storage,
            direction="minimize" if metric in ERRORS else "maximize",
            load_if_exists=True,
            pruner=optuna.pruners.MedianPruner(n_startup_trials=5, n_warmup_steps=30),
        )
        self._retry = optuna.storages.RetryHeartbeatStaleTrialCallback(max_retry=MAX_RETRIES)
        self._stale = StaleTrials(self._storage, self._study)
        self._lost_trial = False

    def run(self) -> dict[str, Any]:
        """Run trials until the study is complete, and return the best one."""
        while True:
            self._stale.fail()
            attempts = self._attempts()  # read once: others change them meanwhile
            states = {trial.state for of_one in attempts.values() for trial in of_one}
            if failed := self._failed(attempts):
                for trial in failed:
                    self._retry(self._study, trial)
            elif self._states.WAITING in states or len(attempts) < self.trials:
                self._run_trial()
            elif self._states.RUNNING in states:
                poll()  # another process is working, or has died
            else:
                return self._write_best()

    def _trials_in(self, *states: Any) -> list[Any]:
        return self._study.get_trials(states=states or None, deepcopy=False)

    def _run_trial(self) -> None:
        """Run one trial, unless another process has started the last one."""
        self._lost_trial = False
        try:
            self._study.optimize(
                self._objective, n_trials=1, catch=(_Surplus,), callbacks=[self._report]
            )
        except Exception:
            if not self._lost_trial:
                raise

    def _report(self, study: Any, trial: Any) -> None:
        if self.on_trial is not None and trial.state != self._states.FAIL:
            self.on_trial(trial.number, trial.state.name.lower(), trial.value)

    def _attempts(self) -> dict[int, list[Any]]:
        """Return each trial that is no repetition, by number, with its repetitions, latest last."""
        retried = self._optuna.storages.RetryHeartbeatStaleTrialCallback.retried_trial_number
        found: dict[int, list[Any]] = {}
        for trial in self._trials_in():
            original = retried(trial)
            found.setdefault(trial.number if original is None else original, []).append(trial)
        return found

    def _failed(self, attempts: dict[int, list[Any]]) -> list[Any]:
        """Return the latest attempts at trials that failed each time, but not too often.

        They are found from the states alone: whoever failed a trial may have died before it was
        repeated, or be about to repeat it. Of several repetitions the first counts.
        """
        history = self._optuna.storages.RetryHeartbeatStaleTrialCallback.retry_history
        return [
            of_one[-1]
            for of_one in islice(attempts.values(), self.trials)
            if all(trial.state == self._states.FAIL for trial in of_one)
            and len(history(of_one[-1])) < MAX_RETRIES
        ]

    def _is_surplus(self, number: int) -> bool:
        """Whether the study needs no trial with this number.

        The storage gives each number out once: the study is the first `trials` originals, and the
        repetitions of those whose process died.
        """
        for place, of_one in enumerate(self._attempts().values()):
            if number in [trial.number for trial in of_one]:
                before = [trial for trial in of_one if trial.number < number]
                repeated = any(trial.state != self._states.FAIL for trial in before)
                return place >= self.trials or repeated
        return False

    def _objective(self, trial: Any) -> float:
        if self._is_surplus(trial.number):
            raise _Surplus
        # Not one generator for each process: those that start together would draw the same.
        self._study.sampler = self._optuna.samplers.TPESampler(
            seed=self.config.seed + trial.number, constant_liar=True
        )
        trial_id = trial_id_of(self._storage, self._study, trial.number)
        with heartbeat(self._storage, trial_id) as lost:
            try:
                return self._train(trial)
            except self._optuna.TrialPruned:
                raise
            except BaseException as error:
                finished_by_other = self._optuna.exceptions.UpdateFinishedTrialError
                self._lost_trial = lost.is_set() or isinstance(error, finished_by_other)
                raise

    def _train(self, trial: Any) -> float:
        base = self.config
        settings = suggest_settings(trial, base.dataset, base.model)
        config = make_config(base.model_dump(), settings)
        trial.set_user_attr("config", config.model_dump())

        def report(line: dict[str, Any]) -> None:
            trial.report(line["val"], line["epoch"])
            if trial.should_prune():
                raise self._optuna.TrialPruned

        folder = self.folder / f"trial-{trial.number}"
        try:
            summary = train(config, folder, root=self.root, on_epoch=report, compute=self.compute)
        except TrainingError as error:
            raise self._optuna.TrialPruned(str(error)) from error
        trial.set_user_attr("test", summary["test"])
        return float(summary["val"])

    def _write_best(self) -> dict[str, Any]:
        """Write the best settings and the pictures of the study, and return the best trial."""
        if not self._trials_in(self._states.COMPLETE):
            raise TrainingError("no trial came to its end; widen the search or train longer")
        best, recipe = self._study.best_trial, self.folder / "best.json"
        content = {"config": {**best.user_attrs["config"], "seed": self.config.seed}}
        write_atomically(recipe, (to_json(content, indent=2) + "\n").encode())
        _draw(self._study, self.folder)
        return {
            "number": best.number,
            "val": best.value,
            "test": best.user_attrs["test"],
            "params": best.params,
            "finished": len(self._trials_in(self._states.COMPLETE, self._states.PRUNED)),
            "recipe": str(recipe),
        }


def _draw(study: Any, folder: Path) -> None:
    """Draw the history of the study, and which settings mattered."""
    import matplotlib

    matplotlib.use("agg")
    from matplotlib import pyplot as plt
    from optuna.visualization import matplotlib as draw

    pictures: dict[str, Callable[[Any], Any]] = {"history": draw.plot_optimization_history}
    if len({trial.value for trial in study.trials if trial.value is not None}) > 1:
        pictures["importance"] = draw.plot_param_importances  # needs scores that differ
    for name, plot in pictures.items():
        plot(study)
        plt.savefig(folder / f"{name}.png", dpi=110, bbox_inches="tight")
        plt.close("all")
