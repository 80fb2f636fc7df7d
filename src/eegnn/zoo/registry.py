"""The names and places of the models; a model is imported when it is used."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from importlib import import_module
from typing import Any, NamedTuple

from eegnn.nn.model import GraphModel


class Entry(NamedTuple):
    """A model: where its class is (``module:Class``), and the options that its name stands for."""

    home: str
    options: Mapping[str, Any]

    @property
    def kind(self) -> str:
        """The name of the class."""
        return self.home.partition(":")[2]


def find(home: str) -> Any:
    """Import what ``module:Name`` names."""
    module, _, name = home.partition(":")
    return getattr(import_module(module), name)


#: Models whose ``step`` :class:`~eegnn.zoo.early.EEModel` can repeat.
STEPS = ("gcn", "sage", "gat", "gin", "adgn", "graff", "swan")

#: Convolutions of :class:`~eegnn.zoo.tuned.TunedGNN`.
TUNED = ("gcn", "sage", "gat")

_SEPARATED = "eegnn.zoo.separated:SeparatedGNN"
_MODELS = {
    "eegnn": "eegnn.nn.eegnn:EEGNN",
    "sasgnn": "eegnn.nn.sas_gnn:SASGNN",
    "gcn": "eegnn.zoo.gcn:GCN",
    "sage": "eegnn.zoo.sage:GraphSAGE",
    "gat": "eegnn.zoo.gat:GAT",
    "gin": "eegnn.zoo.gin:GIN",
    "gine": "eegnn.zoo.gine:GINE",
    "gcnii": "eegnn.zoo.gcnii:GCNII",
    "gatedgcn": "eegnn.zoo.gatedgcn:GatedGCN",
    "gt": "eegnn.zoo.gt:GT",
    "adgn": "eegnn.zoo.adgn:ADGN",
    "graff": "eegnn.zoo.graff:GRAFF",
    "swan": "eegnn.zoo.swan:SWAN",
    "graphcon": "eegnn.zoo.graphcon:GraphCON",
    "phdgn": "eegnn.zoo.phdgn:PHDGN",
    "apgcn": "eegnn.zoo.apgcn:APGCN",
    "cognn": "eegnn.zoo.cognn:CoGNN",
    "gps": "eegnn.zoo.gps:GPS",
    "polynormer": "eegnn.zoo.polynormer:Polynormer",
    "sgformer": "eegnn.zoo.sgformer:SGFormer",
    "nodeformer": "eegnn.zoo.nodeformer:NodeFormer",
    "drew": "eegnn.zoo.drew:DRew",
}

#: Every model by its name on the command line.
ENTRIES: dict[str, Entry] = {
    **{name: Entry(home, {}) for name, home in _MODELS.items()},
    **{f"tuned-{name}": Entry("eegnn.zoo.tuned:TunedGNN", {"conv": name}) for name in TUNED},
    **{f"{name}-sep": Entry(_SEPARATED, {"attention": name}) for name in ("gat", "gt")},
    **{f"ee-{name}": Entry("eegnn.zoo.early:EEModel", {"backbone": name}) for name in STEPS},
}


class Classes(Mapping[str, type[GraphModel]]):
    """The models of :data:`ENTRIES` by the name of their class.

    Only what stands there can be had: a name from a file never imports anything else.
    """

    def __init__(self) -> None:
        self._homes = {entry.kind: entry.home for entry in ENTRIES.values()}

    def __getitem__(self, kind: str) -> type[GraphModel]:
        return find(self._homes[kind])

    def __iter__(self) -> Iterator[str]:
        return iter(self._homes)

    def __len__(self) -> int:
        return len(self._homes)
