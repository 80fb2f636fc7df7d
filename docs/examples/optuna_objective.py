"""An Optuna objective with two aims: a high accuracy and early exits."""

import optuna
import torch
from torch.nn.functional import cross_entropy
from torch_geometric import seed_everything
from torch_geometric.datasets import FakeDataset
from torch_geometric.transforms import RandomNodeSplit

from eegnn import EEGNN

seed_everything(0)
fake = FakeDataset(num_graphs=1, avg_num_nodes=300, num_channels=8, num_classes=3)
data = RandomNodeSplit(num_val=100, num_test=0)(fake[0])


def objective(trial):
    torch.manual_seed(0)
    lr = trial.suggest_float("lr", 1e-3, 3e-2, log=True)
    cost_weight = trial.suggest_float("cost_weight", 1e-2, 1.0, log=True)
    model = EEGNN(8, 32, 3, num_layers=10)
    optimizer = torch.optim.Adam(model.parameters(), lr=lr)
    for _ in range(30):
        optimizer.zero_grad()
        out, exits = model(data.x, data.edge_index, return_exits=True)
        loss = cross_entropy(out[data.train_mask], data.y[data.train_mask])
        (loss + cost_weight * exits.cost).backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
    out, exits = model.predict(data.x, data.edge_index)
    right = out.argmax(dim=1) == data.y
    return right[data.val_mask].float().mean().item(), exits.cost.item()


sampler = optuna.samplers.TPESampler(seed=0)
study = optuna.create_study(directions=["maximize", "minimize"], sampler=sampler)
study.optimize(objective, n_trials=5)
for trial in study.best_trials:
    print("accuracy {:.2f}, cost {:.2f}".format(*trial.values), trial.params)
