"""Search for settings, by any number of processes on one study."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from eegnn.io import write_atomically
from eegnn.train.config import Config, make_config
from eegnn.train.loop import TrainingError
from eegnn.train.metrics import ERRORS
from eegnn.train.prepare import prepare
from eegnn.train.spaces import find_space
from eegnn.train.start import train
from eegnn.train.storage import Silence, alive, import_optuna, open_storage, poll, trial_id_of


def tune(
    config: Config,
    trials: int,
    storage: str,
    folder: Path,
    root: Path | None = None,
    on_trial: Callable[[int, str, float | None], None] | None = None,
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

    Returns:
        The best trial: ``number``, ``val``, ``params``, ``finished`` and ``recipe``.
    """
    optuna = import_optuna()
    opened = open_storage(storage)
    study = _study(optuna, config, opened, prepare(config, root).metric)
    again = optuna.storages.RetryHeartbeatStaleTrialCallback(max_retry=3)
    silence, taken_away = Silence(opened, study), False

    def objective(trial: Any) -> float:
        nonlocal taken_away
        # Numbers are given out by the storage, each once, so the first ``trials`` that repeat none
        # are the study; another counts only if it repeats one whose worker died.
        before = sum(number < trial.number for number in _originals(optuna, study))
        if before >= trials and _repeats(optuna, trial) is None:
            raise _Surplus
        trial_id = trial_id_of(opened, study, trial.number)
        with alive(opened, trial_id) as lost:
            try:
                return _run(optuna, trial, config, folder / f"trial-{trial.number}", root)
            except optuna.TrialPruned:
                raise
            except BaseException as error:
                finished = optuna.exceptions.UpdateFinishedTrialError
                taken_away = lost.is_set() or isinstance(error, finished)
                if not taken_away:
                    again(study, opened.get_trial(trial_id))
                raise

    def told(study: Any, trial: Any) -> None:
        if on_trial is not None and trial.state != optuna.trial.TrialState.FAIL:
            on_trial(trial.number, trial.state.name.lower(), trial.value)

    while True:
        for trial in silence.fail():
            again(study, trial)
        if _has_work(optuna, study, trials):
            taken_away = False
            try:
                study.optimize(objective, n_trials=1, catch=(_Surplus,), callbacks=[told])
            except Exception:
                if not taken_away:
                    raise
        elif study.get_trials(states=(optuna.trial.TrialState.RUNNING,), deepcopy=False):
            poll()  # another process is at it, or was
        else:
            return _best(optuna, study, config, folder)


class _Surplus(Exception):
    """Another process was faster: the study needs no further trial."""


def _study(optuna: Any, config: Config, storage: Any, metric: str) -> Any:
    study = optuna.create_study(
        study_name=f"{config.dataset}-{config.model}",
        storage=storage,
        direction="minimize" if metric in ERRORS else "maximize",
        load_if_exists=True,
        pruner=optuna.pruners.MedianPruner(n_startup_trials=5, n_warmup_steps=30),
    )
    # A process that joins later must not repeat the draws of the first.
    study.sampler = optuna.samplers.TPESampler(
        seed=config.seed + len(study.trials), constant_liar=True
    )
    return study


def _has_work(optuna: Any, study: Any, trials: int) -> bool:
    """Whether a trial is left to start."""
    waiting = study.get_trials(states=(optuna.trial.TrialState.WAITING,), deepcopy=False)
    return len(_originals(optuna, study)) < trials or bool(waiting)


def _originals(optuna: Any, study: Any) -> list[int]:
    """The numbers of trials that repeat no other."""
    retried = optuna.storages.RetryHeartbeatStaleTrialCallback.retried_trial_number
    return [t.number for t in study.get_trials(deepcopy=False) if retried(t) is None]


def _repeats(optuna: Any, trial: Any) -> int | None:
    """The number of the trial that this one does again, if any."""
    frozen = next(t for t in trial.study.get_trials(deepcopy=False) if t.number == trial.number)
    return optuna.storages.RetryHeartbeatStaleTrialCallback.retried_trial_number(frozen)


def _run(optuna: Any, trial: Any, config: Config, folder: Path, root: Path | None) -> float:
    settings = find_space(config.dataset, config.model)(trial)
    chosen = make_config(config.model_dump(), settings)
    trial.set_user_attr("config", chosen.model_dump())

    def report(line: dict[str, Any]) -> None:
        trial.report(line["val"], line["epoch"])
        if trial.should_prune():
            raise optuna.TrialPruned

    try:
        summary = train(chosen, folder, root=root, on_epoch=report)
    except TrainingError as error:
        raise optuna.TrialPruned(str(error)) from error
    trial.set_user_attr("test", summary["test"])
    return float(summary["val"])


def _best(optuna: Any, study: Any, config: Config, folder: Path) -> dict[str, Any]:
    states = optuna.trial.TrialState
    done = study.get_trials(states=(states.COMPLETE, states.PRUNED))
    if not any(trial.state == states.COMPLETE for trial in done):
        raise TrainingError("no trial came to its end; widen the search or train longer")
    best, recipe = study.best_trial, folder / "best.json"
    content = {"config": {**best.user_attrs["config"], "seed": config.seed}}
    write_atomically(recipe, (json.dumps(content, indent=2) + "\n").encode())
    _draw(study, folder)
    return {
        "number": best.number,
        "val": best.value,
        "test": best.user_attrs["test"],
        "params": best.params,
        "finished": len(done),
        "recipe": str(recipe),
    }


def _draw(study: Any, folder: Path) -> None:
    """Write the history of the study, and which settings mattered."""
    import matplotlib

    matplotlib.use("agg")
    from matplotlib import pyplot as plt
    from optuna.visualization import matplotlib as draw

    draw.plot_optimization_history(study)
    plt.savefig(folder / "history.png", dpi=110, bbox_inches="tight")
    plt.close("all")
    if len({trial.value for trial in study.trials if trial.value is not None}) > 1:
        draw.plot_param_importances(study)  # needs scores that differ
        plt.savefig(folder / "importance.png", dpi=110, bbox_inches="tight")
        plt.close("all")
