"""What the JSON files of a run hold, as types that are checked when they are read."""

from __future__ import annotations

import math
from typing import Annotated, Any, NotRequired

from pydantic import BeforeValidator, ConfigDict, Discriminator, Field, Tag, with_config
from torch import Tensor
from typing_extensions import TypedDict

from eegnn.typing import Task

#: The model of a record that is not of a run, but of a data set.
NO_MODEL = "none"
_OPEN = ConfigDict(extra="allow", strict=True, arbitrary_types_allowed=True)
#: A float that may be NaN, for which a JSON file has ``null``.
Number = Annotated[float, BeforeValidator(lambda value: math.nan if value is None else value)]
Count = Annotated[int, Field(ge=0)]


@with_config(_OPEN)
class Labels(TypedDict):
    """The task of the labels, and the scale of targets: a reported error is multiplied by it."""

    task: Task
    scale: Annotated[float, Field(allow_inf_nan=False)]


@with_config(_OPEN)
class About(TypedDict):
    """``config.json``: its ``config`` is checked by :func:`eegnn.train.config.make_config`."""

    config: dict[str, Any]
    options: NotRequired[dict[str, Any]]
    labels: Labels


@with_config(_OPEN)
class Epoch(TypedDict):
    """A line of ``metrics.jsonl``."""

    epoch: Count
    loss: Number
    val: Number
    test: float | None
    exit_mean: Number
    exit_quantiles: Annotated[list[Number], Field(min_length=3, max_length=3)]
    grad: NotRequired[dict[str, Number]]
    lr: float
    seconds: float


@with_config(_OPEN)
class StateProgress(TypedDict):
    """The epochs so far, in a state; older ones have more entries."""

    epoch: Count
    best_epoch: Count
    best_val: float | None
    seconds: float


@with_config(_OPEN)
class State(TypedDict):
    """``state.pt``: all that training depends on."""

    model: dict[str, Tensor]
    optimizer: dict[str, Any]
    scheduler: dict[str, Any]
    scaler: NotRequired[dict[str, Any]]
    order: Tensor
    random: Tensor  #: of all ranks, one after the other
    device_random: NotRequired[tuple[str, list[Tensor]]]
    progress: StateProgress
    config: str
    metrics: str  #: checksum of ``metrics.jsonl`` so far


@with_config(_OPEN)
class ExitLayers(TypedDict):
    """Statistics of exits, see :meth:`eegnn.Exits.summary`; no unit has no mean."""

    min: Count | None
    median: Number
    mean: Number
    max: Count | None
    histogram: list[Count]


@with_config(_OPEN)
class Summary(TypedDict):
    """The fields of ``summary.json``, which a finished run has."""

    dataset: str
    model: str
    split: Count
    seed: Count
    epochs: Count
    best_epoch: Count
    metric: str
    val: Number
    test: Number
    params: Count
    exits: ExitLayers
    seconds: float
    notes: NotRequired[dict[str, str]]


@with_config(_OPEN)
class RecordConfig(TypedDict):
    """The configuration of a run of this version or of an older one."""

    dataset: str
    model: NotRequired[str]
    options: NotRequired[dict[str, Any]]
    encoding: NotRequired[str]
    encoding_dim: NotRequired[int]


@with_config(_OPEN)
class Failure(TypedDict):
    """The record of a run that could not be trained."""

    config: RecordConfig
    failed: str


@with_config(_OPEN)
class Measured(TypedDict):
    """The record of what was measured of a data set."""

    config: RecordConfig


@with_config(_OPEN)
class Finished(Summary):
    """The record of a finished run."""

    config: RecordConfig
    options: NotRequired[dict[str, Any]]


def _kind(record: Any) -> str:
    if not isinstance(record, dict) or "failed" in record:
        return "failed"
    config = record.get("config")
    is_run = not isinstance(config, dict) or config.get("model") != NO_MODEL
    return "finished" if is_run else "measured"


#: A line of a file of results.
Record = Annotated[
    Annotated[Failure, Tag("failed")]
    | Annotated[Measured, Tag("measured")]
    | Annotated[Finished, Tag("finished")],
    Discriminator(_kind),
]
