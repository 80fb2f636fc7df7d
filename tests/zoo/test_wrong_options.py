"""Wrong arguments are refused by name, with what would be right."""

from __future__ import annotations

from typing import Any

import pytest

from eegnn.nn.model import GraphModel
from eegnn.zoo.adgn import ADGN
from eegnn.zoo.apgcn import APGCN
from eegnn.zoo.cognn import CoGNN
from eegnn.zoo.drew import DRew
from eegnn.zoo.gat import GAT
from eegnn.zoo.gcnii import GCNII
from eegnn.zoo.gine import GINE
from eegnn.zoo.gps import GPS
from eegnn.zoo.graff import GRAFF
from eegnn.zoo.graphcon import GraphCON
from eegnn.zoo.gt import GT
from eegnn.zoo.nodeformer import NodeFormer
from eegnn.zoo.phdgn import PHDGN
from eegnn.zoo.polynormer import Polynormer
from eegnn.zoo.separated import SeparatedGNN
from eegnn.zoo.sgformer import SGFormer
from eegnn.zoo.swan import SWAN
from eegnn.zoo.tuned import TunedGNN

NORMS = "conv_norm must be one of None, 'layer', 'batch', got 'group'"
DIVISOR = "heads must divide the width 4, got 3"
WRONG: list[tuple[type[GraphModel], str, Any, str]] = [
    (GINE, "residual", 1, "residual must be True or False, got 1"),
    (GINE, "shared", None, "shared must be True or False, got None"),
    (GINE, "conv_norm", "group", NORMS),
    (GINE, "conv_dropout", 2, "conv_dropout must be in [0, 1], got 2"),
    (GINE, "activation", "gelu", "activation must be one of 'relu_tanh', "),
    (GINE, "edge_dim", 0, "edge_dim must be at least 1, got 0"),
    (GCNII, "alpha", 1.5, "alpha must be in [0, 1], got 1.5"),
    (GCNII, "theta", -1, "theta must be at least 0, got -1"),
    (GAT, "heads", 3, DIVISOR),
    (GAT, "heads", 0, "heads must be at least 1, got 0"),
    (GAT, "heads", 1.5, "heads must be an integer, got 1.5"),
    (GT, "heads", 3, DIVISOR),
    (ADGN, "step_size", 0.0, "step_size must be above 0"),
    (ADGN, "shared", 1, "shared must be True or False, got 1"),
    (ADGN, "phi", "mean", "phi must be one of 'gcn', 'sum', got 'mean'"),
    (ADGN, "gamma", -0.1, "gamma must be at least 0, got -0.1"),
    (ADGN, "activation", "gelu", "activation must be one of 'relu_tanh', "),
    (GRAFF, "step_size", 0.0, "step_size must be above 0"),
    (GRAFF, "w_style", "prod", "w_style must be one of 'diag_dom', 'sum', got 'prod'"),
    (GRAFF, "omega_style", "full", "omega_style must be one of 'diag', 'zero', got 'full'"),
    (GRAFF, "source", 1, "source must be True or False, got 1"),
    (SWAN, "phi", "mean", "phi must be one of 'antisymmetric', 'gcn', 'sum', got 'mean'"),
    (GraphCON, "alpha", -1, "alpha must be at least 0, got -1"),
    (GraphCON, "gamma", -1, "gamma must be at least 0, got -1"),
    (GraphCON, "step_size", 0, "step_size must be above 0"),
    (PHDGN, "damping", "no", "damping must be one of None, 'param', 'param+', 'mlp', 'dgn'"),
    (PHDGN, "forcing", "no", "forcing must be one of None, 'mlp', 'dgn'"),
    (PHDGN, "readout", "qp", "readout must be one of 'p', 'q', 'pq', got 'qp'"),
    (PHDGN, "phi", "mean", "phi must be one of 'gcn', 'sum', got 'mean'"),
    (DRew, "nu", 0, "nu must be at least 1, got 0"),
    (DRew, "max_hops", 0, "max_hops must be at least 1, got 0"),
    (DRew, "norm", 1, "norm must be True or False, got 1"),
    (GPS, "conv", "gat", "conv must be one of 'gatedgcn', 'gine', 'gcn', got 'gat'"),
    (GPS, "conv_norm", None, "conv_norm must be one of 'layer', 'batch', got None"),
    (GPS, "heads", 3, DIVISOR),
    (GPS, "edge_dim", 0, "edge_dim must be at least 1, got 0"),
    (GPS, "conv_dropout", 2, "conv_dropout must be in [0, 1], got 2"),
    (GPS, "attn_dropout", -1, "attn_dropout must be in [0, 1], got -1"),
    (TunedGNN, "conv", "gin", "conv must be one of 'gcn', 'sage', 'gat', got 'gin'"),
    (TunedGNN, "linear_encoder", 1, "linear_encoder must be True or False, got 1"),
    (SeparatedGNN, "attention", "dot", "attention must be one of 'gat', 'gt', got 'dot'"),
    (SeparatedGNN, "heads", 3, DIVISOR),
    (NodeFormer, "random_features", 0, "random_features must be at least 1, got 0"),
    (NodeFormer, "temperature", 0, "temperature must be above 0, got 0"),
    (SGFormer, "attention_layers", 0, "attention_layers must be at least 1, got 0"),
    (SGFormer, "heads", 0, "heads must be at least 1, got 0"),
    (SGFormer, "graph_weight", 1.5, "graph_weight must be in [0, 1], got 1.5"),
    (SGFormer, "conv_dropout", 2, "conv_dropout must be in [0, 1], got 2"),
    (Polynormer, "global_layers", 0, "global_layers must be at least 1, got 0"),
    (Polynormer, "local_epochs", -1, "local_epochs must be at least 0, got -1"),
    (Polynormer, "heads", 3, DIVISOR),
    (Polynormer, "local_attn", 1, "local_attn must be True or False, got 1"),
    (Polynormer, "beta", -1.0, "beta must be in [0, 1], got -1"),
    (Polynormer, "conv_norm", "group", NORMS),
    (Polynormer, "conv_dropout", 2, "conv_dropout must be in [0, 1], got 2"),
    (Polynormer, "global_dropout", 2, "global_dropout must be in [0, 1], got 2"),
    (APGCN, "propagation_dropout", 1.5, "propagation_dropout must be in [0, 1], got 1.5"),
    (CoGNN, "environment", "max", "environment must be one of 'mean', 'sum', got 'max'"),
    (CoGNN, "action", "gcn", "action must be one of 'mean', 'sum', got 'gcn'"),
    (CoGNN, "action_layers", 0, "action_layers must be at least 1, got 0"),
    (CoGNN, "action_channels", 0, "action_channels must be at least 1, got 0"),
    (CoGNN, "temperature", 0, 'temperature must be above 0 or "learned", got 0'),
    (CoGNN, "temperature", -1.0, "temperature must be at least 0, got -1.0"),
    (CoGNN, "tau0", -1, "tau0 must be at least 0, got -1"),
    (CoGNN, "skip", 1, "skip must be True or False, got 1"),
    (CoGNN, "layer_norm", 1, "layer_norm must be True or False, got 1"),
    (CoGNN, "activation", "tanh", "activation must be one of 'relu', 'gelu', got 'tanh'"),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "option", "value", "message"), WRONG)
def test_wrong_options_are_named(
    kind: type[GraphModel], option: str, value: Any, message: str
) -> None:
    with pytest.raises((TypeError, ValueError)) as raised:
        kind(3, 4, 2, 3, **{option: value})
    assert message in str(raised.value)
