"""Whole graphs, with exits of the graph (Algorithm 2) or of its nodes (Algorithm 1, then a mean).

`python docs/examples/node_exits.py enzymes 0` trains on one fold both ways, with the recipe of
EEGNN for the data set, and prints scores at the best validation epoch and the mean number of steps.
"""

import json
import sys

import torch
from torch import nn
from torch.nn.functional import cross_entropy
from torch_geometric.loader import DataLoader

from eegnn import EEGNN
from eegnn.nn.pooling import POOLS
from eegnn.train.prepare import prepare
from eegnn.train.start import configure


class NodeExits(EEGNN):
    """Nodes leave one by one, and the graph answers by the mean of the states they left with."""

    def evolve(self, h, adj, edge_attr=None, **options):
        states, exits = self.loop(h, adj, edge_attr, readout=nn.Identity(), **options)
        return self.decoder(POOLS["mean"](states, adj)), exits


MODELS = {"graph": (EEGNN, "graph"), "node": (NodeExits, "node")}


def evaluate(model, graphs):
    right = steps = units = 0
    for data in DataLoader(graphs, 256):
        out, exits = model.predict(data.x, data.edge_index, batch=data.batch)
        right += int((out.argmax(dim=1) == data.y).sum())
        steps, units = steps + int(exits.layer.sum()), units + exits.layer.numel()
    return right / len(graphs), steps / units


def train(unit, dataset, fold, seed=0, epochs=None):
    config = configure(dataset, "eegnn", None, {"split": fold, "seed": seed})
    problem = prepare(config)
    split = (problem.train, problem.val, problem.test)
    parts = [[problem.graphs[i] for i in part] for part in split]
    torch.manual_seed(seed)
    kind, level = MODELS[unit]
    sizes = (problem.in_channels, config.hidden_channels, problem.out_channels, config.num_layers)
    model = kind(*sizes, level, **config.options)
    optimizer = torch.optim.Adam(model.parameters(), lr=config.lr)
    best = (0.0, 0, 0.0, 0.0)
    for epoch in range(1, (epochs or config.epochs) + 1):
        model.train()
        for data in DataLoader(parts[0], config.batch_size, shuffle=True):
            optimizer.zero_grad()
            out = model(data.x, data.edge_index, batch=data.batch)
            cross_entropy(out, data.y).backward()
            nn.utils.clip_grad_norm_(model.parameters(), config.clip_norm)
            optimizer.step()
        val = evaluate(model, parts[1])[0]
        if val > best[0]:
            best = (val, epoch, *evaluate(model, parts[2]))
        if epoch - best[1] >= config.patience:
            break
    return {"unit": unit, "dataset": dataset, "fold": fold, "epoch": best[1], "val": best[0],
            "test": best[2], "steps": best[3]}  # fmt: skip


if __name__ == "__main__":
    for unit in MODELS:
        print(json.dumps(train(unit, sys.argv[1], int(sys.argv[2]))), flush=True)
