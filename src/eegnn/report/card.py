"""Model cards: what a model is, how it scored and how to load it.

A card is Markdown behind a head of YAML, which the Hugging Face Hub reads. The values of the head
are written as JSON, which YAML contains.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from eegnn._json import to_json
from eegnn.data.registry import DATASETS
from eegnn.io import write_atomically
from eegnn.nn.model import GraphModel
from eegnn.train.run import RunFolder

#: Where the Hub looks for the card of a model.
FILE = "README.md"
_TEXT = """\
---
{head}
---

# {name}

A model of EEGNN, graph neural networks whose nodes and graphs decide when they have seen enough.

| | |
|---|---|
{table}

## How to load it

`pip install eegnn`, and with `model.safetensors` and `model.json` in one folder:

```python
from eegnn import load

model = load("model.safetensors")
out, exits = model.predict({arguments})
```

The files hold numbers and settings, and nothing that is executed.{preparation}

## Licence

The weights: {licence}. EEGNN: MIT.
"""
_PREPARATION = """ `x` has to be prepared as in
training: `eegnn predict RUN --input PATH` does that, where `RUN` is the folder of the run."""


def model_card(model: GraphModel, licence: str = "mit") -> str:
    """Return the card of a model, of which no run is known.

    Args:
        model: the model.
        licence: of its weights, by the name that the Hub has for it.
    """
    return _card(model, type(model).__name__, licence, {}, {})


def run_card(run: Path, licence: str = "mit") -> str:
    """Return the card of a finished run, with its data set, scores and exits.

    Args:
        run: the folder of the run.
        licence: of its weights, by the name that the Hub has for it.
    """
    folder, name = RunFolder(run), run.resolve().name
    config, summary = folder.config(), folder.summary()
    if summary is None:
        raise ValueError(f"{run} is not finished: there is no summary.json")
    known = DATASETS.get(config.dataset.partition("@")[0])
    dataset, exits, metric = Path(config.dataset).name, summary["exits"], summary["metric"]
    about = {
        "data set": f"{dataset}, split {config.split}",
        "its source": f"{known.url}, licence {known.licence}" if known else "not known",
        f"test {metric}": f"{summary['test']:.4f}",
        f"validation {metric}": f"{summary['val']:.4f}",
        "exits": f"{exits['mean']:.1f} layers on average, from {exits['min']} to {exits['max']}",
        "training": f"{summary['epochs']} epochs, of which {summary['best_epoch']} was the best; "
        f"seed {config.seed}",
    }
    result = {
        "task": {"type": "graph-ml"},
        "dataset": {"name": dataset, "type": dataset},
        "metrics": [{"type": metric, "name": f"test {metric}", "value": summary["test"]}],
    }
    index = {"model-index": [{"name": name, "results": [result]}]}
    return _card(folder.model(), name, licence, about, index)


def write_card(run: Path, licence: str = "mit") -> Path:
    """Write the card of a run into its folder, and return its path; see :func:`run_card`."""
    path = run / FILE
    write_atomically(path, run_card(run, licence).encode())
    return path


def _card(
    model: GraphModel, name: str, licence: str, about: dict[str, str], index: dict[str, Any]
) -> str:
    head = {
        "library_name": "eegnn",
        "license": licence,
        "pipeline_tag": "graph-ml",
        "tags": ["graph-neural-networks", "early-exit"],
        **index,
    }
    given = {
        "edge_attr": model.edge_dim is not None,
        "batch": model.level == "graph",
        "edge_label_index": model.level == "edge",
    }
    rows = {
        "model": f"`{model!r}`",
        "parameters": f"{sum(p.numel() for p in model.parameters()):,}",
        **about,
    }
    return _TEXT.format(
        head="\n".join(f"{key}: {to_json(value)}" for key, value in head.items()),
        name=name,
        table="\n".join(f"| {key} | {value} |" for key, value in rows.items()),
        arguments=", ".join(
            ["x", "edge_index", *[f"{k}={k}" for k, used in given.items() if used]]
        ),
        preparation=_PREPARATION if about else "",
        licence=licence,
    )
