"""Stand-ins for wandb and mlflow, with what `eegnn.train.track` uses of them."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any, ClassVar


class _WandbRun:
    def __init__(self, id: str, dir: Path, mode: str, resume: str, **options: Any) -> None:
        assert (mode, resume) == ("offline", "allow")
        assert json.dumps(options["config"])
        self.step = 0  # what wandb has without the network
        count = len(list(Path(dir).glob("wandb/*")))
        self._file = Path(dir) / "wandb" / f"offline-run-{count}-{id}" / "log.jsonl"
        self._file.parent.mkdir(parents=True)

    def log(self, figures: dict[str, float], step: int) -> None:
        with self._file.open("a") as file:
            file.write(json.dumps([step, figures]) + "\n")

    def __enter__(self) -> _WandbRun:
        return self

    def __exit__(self, *_: object) -> None:
        pass


class _MlflowClient:
    """Keeps runs in memory, by the address of the database."""

    stores: ClassVar[dict[str, dict[str, Any]]] = {}

    def __init__(self, uri: str) -> None:
        self._runs = self.stores.setdefault(uri, {})

    def get_experiment_by_name(self, name: str) -> Any:
        return SimpleNamespace(experiment_id="1") if self._runs else None

    def create_experiment(self, name: str) -> str:
        return "1"

    def search_runs(self, experiments: list[str], query: str = "") -> list[Any]:
        found = [run for run in self._runs.values() if run.data.tags["eegnn_id"] in query]
        return found if query else list(self._runs.values())

    def create_run(self, experiment: str, tags: dict[str, str], run_name: str) -> Any:
        info = SimpleNamespace(run_id=str(len(self._runs)), run_name=run_name, status="RUNNING")
        data = SimpleNamespace(tags=tags, params={}, history=[])
        self._runs[info.run_id] = SimpleNamespace(info=info, data=data)
        return self._runs[info.run_id]

    def log_batch(self, run: str, metrics: Any = (), params: Any = ()) -> None:
        self._runs[run].data.history += metrics
        self._runs[run].data.params |= {param.key: param.value for param in params}

    def get_metric_history(self, run: str, key: str) -> list[Any]:
        return [metric for metric in self._runs[run].data.history if metric.key == key]

    def update_run(self, run: str, status: str) -> None:
        self._runs[run].info.status = status

    def set_terminated(self, run: str, status: str = "FINISHED") -> None:
        self.update_run(run, status)


def _metric(key: str, value: float, timestamp: int, step: int) -> Any:
    return SimpleNamespace(key=key, value=value, step=step)


def _param(key: str, value: str) -> Any:
    return SimpleNamespace(key=key, value=value)


def stand_ins() -> dict[str, Any]:
    """The packages by name."""
    entities = SimpleNamespace(Metric=_metric, Param=_param)
    mlflow = SimpleNamespace(MlflowClient=_MlflowClient, entities=entities)
    return {"wandb": SimpleNamespace(init=_WandbRun), "mlflow": mlflow}
