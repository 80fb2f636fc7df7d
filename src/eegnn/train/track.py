"""The lines of ``metrics.jsonl`` in an experiment tracker."""

from __future__ import annotations

import hashlib
import os
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any

from eegnn.train.run import RunFolder

Line = dict[str, Any]
#: Takes the line of an epoch.
Write = Callable[[Line], None]


class Tracker(ExitStack):
    """Shows a run in an experiment tracker.

    ``metrics.jsonl`` is the record and a tracker is a view of it: the epochs that it does not have
    yet are written when the first one is finished, or when the run turns out to be finished. So
    each epoch is shown once, however often the run was stopped, and also if a tracker was asked
    for late. Everything stays in the folder of the run, unless ``WANDB_MODE`` or
    ``MLFLOW_TRACKING_URI`` is set.

    Used as a context around training, and called after each epoch with its line.

    Args:
        name: a key of :data:`TRACKERS`.
        folder: of the run. Nothing is written before the first epoch is finished.

    Raises:
        ImportError: the package of the tracker is not installed.
    """

    def __init__(self, name: str, folder: Path) -> None:
        super().__init__()
        module, requirement, self._open = TRACKERS[name]
        try:
            self._package = import_module(module)
        except ImportError as error:
            raise ImportError(f"--track {name} needs {name}: pip install {requirement}") from error
        self._run = RunFolder(folder)
        self._write: Write | None = None

    def __call__(self, line: Line) -> None:
        """Show the line of an epoch that has just been added to ``metrics.jsonl``."""
        if self._write is None:
            self._begin()
        else:
            self._write(line)

    def _begin(self) -> None:
        self._write = self.enter_context(self._open(self._package, self._run))
        for line in self._run.metrics():
            self._write(line)

    def __exit__(self, *error: Any) -> bool:
        if self._write is None and error[0] is None:  # the run was finished before
            self._begin()
        return bool(super().__exit__(*error))


def scalars(line: Line) -> dict[str, float | None]:
    """Return the numbers of an epoch by name; trackers group names by their prefix.

    Args:
        line: of ``metrics.jsonl``. Its test score may be ``None``.
    """
    quantiles = dict(zip(("exit/q10", "exit/q50", "exit/q90"), line["exit_quantiles"], strict=True))
    return {
        "loss": line["loss"],
        "score/val": line["val"],
        "score/test": line["test"],
        "exit/mean": line["exit_mean"],
        **quantiles,
        **{f"grad/{part}": norm for part, norm in line.get("grad", {}).items()},
        "lr": line["lr"],
    }


def _known(line: Line) -> dict[str, float]:
    return {name: value for name, value in scalars(line).items() if value is not None}


@contextmanager
def _tensorboard(package: Any, run: RunFolder) -> Iterator[Write]:
    """Event files, which are purged and written again."""
    path = str(run.path / "tensorboard")
    with package.SummaryWriter(path, purge_step=1, flush_secs=10) as writer:

        def write(line: Line) -> None:
            for name, value in _known(line).items():
                writer.add_scalar(name, value, line["epoch"])

        yield write


@contextmanager
def _csv(package: Any, run: RunFolder) -> Iterator[Write]:
    """A table, which is written again."""
    columns = ["epoch", *scalars(run.metrics()[-1])]
    with (run.path / "metrics.csv").open("w", newline="", encoding="utf-8") as file:
        table = package.DictWriter(file, columns)
        table.writeheader()

        def write(line: Line) -> None:
            table.writerow({"epoch": line["epoch"], **scalars(line)})
            file.flush()

        yield write


@contextmanager
def _wandb(package: Any, run: RunFolder) -> Iterator[Write]:
    """A run of Weights & Biases: without the network, all of it in one folder, written again."""
    identity = _identity(run)
    for former in (run.path / "wandb").glob(f"offline-run-*-{identity}"):
        shutil.rmtree(former)
    with package.init(
        project=os.environ.get("WANDB_PROJECT", "eegnn"),
        name=run.path.name,
        id=identity,
        resume="allow",
        dir=run.path,
        mode=os.environ.get("WANDB_MODE", "offline"),
        config=run.config().model_dump(),
        settings={"silent": True, "console": "off"},
    ) as log:
        first = log.step

        def write(line: Line) -> None:
            if line["epoch"] >= first:
                log.log(_known(line), step=line["epoch"])

        yield write


@contextmanager
def _mlflow(package: Any, run: RunFolder) -> Iterator[Write]:
    """A run of MLflow, in a database in the folder or where ``MLFLOW_TRACKING_URI`` says."""
    entities = package.entities
    own = run.path / "mlflow" / "mlflow.db"
    own.parent.mkdir(exist_ok=True)
    client = package.MlflowClient(os.environ.get("MLFLOW_TRACKING_URI", f"sqlite:///{own}"))
    title, identity = os.environ.get("MLFLOW_EXPERIMENT_NAME", "eegnn"), _identity(run)
    experiment = client.get_experiment_by_name(title)
    number = experiment.experiment_id if experiment else client.create_experiment(title)
    found = client.search_runs([number], f"tags.eegnn_id = '{identity}'")
    if found:
        name = found[0].info.run_id
    else:
        made = client.create_run(number, tags={"eegnn_id": identity}, run_name=run.path.name)
        name = made.info.run_id
        settings = run.config().model_dump().items()
        client.log_batch(name, params=[entities.Param(key, str(value)) for key, value in settings])
    last = max((known.step for known in client.get_metric_history(name, "lr")), default=0)

    def write(line: Line) -> None:
        if line["epoch"] > last:
            when, epoch = int(1000 * time.time()), line["epoch"]
            known = _known(line).items()
            client.log_batch(name, [entities.Metric(*item, when, epoch) for item in known])

    client.update_run(name, status="RUNNING")
    try:
        yield write
    except BaseException:
        client.set_terminated(name, "KILLED")
        raise
    client.set_terminated(name)


def _identity(run: RunFolder) -> str:
    """Return a name by which a tracker knows the run again when it is resumed."""
    content = (run.path / "config.json").read_bytes()
    return hashlib.sha256(str(run.path.resolve()).encode() + content).hexdigest()[:16]


Open = Callable[[Any, RunFolder], AbstractContextManager[Write]]
#: By name: the module that it needs, what to install for it, and what writes.
TRACKERS: dict[str, tuple[str, str, Open]] = {
    "tensorboard": ("torch.utils.tensorboard", "'eegnn[tensorboard]'", _tensorboard),
    "wandb": ("wandb", "wandb", _wandb),
    "mlflow": ("mlflow", "mlflow", _mlflow),
    "csv": ("csv", "", _csv),
}
