"""EEGNN: graph neural networks whose nodes and graphs decide when they have seen enough."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from eegnn.graph import Adjacency
    from eegnn.io import load, save
    from eegnn.nn.early_exit import EarlyExit
    from eegnn.nn.eegnn import EEGNN
    from eegnn.nn.exits import Exits
    from eegnn.nn.sas_conv import SASConv
    from eegnn.nn.sas_gnn import SASGNN

__version__ = "0.2.0.dev0"

__all__ = ["EEGNN", "SASGNN", "Adjacency", "EarlyExit", "Exits", "SASConv", "load", "save"]

_HOME = {
    "Adjacency": "eegnn.graph",
    "EEGNN": "eegnn.nn.eegnn",
    "EarlyExit": "eegnn.nn.early_exit",
    "Exits": "eegnn.nn.exits",
    "SASConv": "eegnn.nn.sas_conv",
    "SASGNN": "eegnn.nn.sas_gnn",
    "load": "eegnn.io",
    "save": "eegnn.io",
}


def __getattr__(name: str) -> Any:
    """Import on first use: torch and PyG take seconds, which `eegnn --help` need not wait for."""
    if name not in _HOME:
        raise AttributeError(f"module 'eegnn' has no attribute {name!r}")
    return getattr(import_module(_HOME[name]), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
