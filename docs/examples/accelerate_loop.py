"""A loop with Accelerate, whose loss asks for early exits."""

import torch
from accelerate import Accelerator
from accelerate.utils import set_seed
from torch.nn.functional import cross_entropy
from torch_geometric.datasets import FakeDataset
from torch_geometric.loader import DataLoader

from eegnn import EEGNN

set_seed(0)
graphs = FakeDataset(num_graphs=120, avg_num_nodes=20, num_channels=8, num_classes=3)
accelerator = Accelerator()
model = EEGNN(8, 32, 3, num_layers=10, level="graph")
model, optimizer, train, val = accelerator.prepare(
    model,
    torch.optim.Adam(model.parameters(), lr=0.01),
    DataLoader(graphs[:80], batch_size=20, shuffle=True),
    DataLoader(graphs[80:], batch_size=40),
)

for _ in range(20):
    for data in train:
        optimizer.zero_grad()
        out, exits = model(data.x, data.edge_index, batch=data.batch, return_exits=True)
        accelerator.backward(cross_entropy(out, data.y) + 0.2 * exits.cost)
        accelerator.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()

for data in val:
    inputs = data.x, data.edge_index
    out, exits = accelerator.unwrap_model(model).predict(*inputs, batch=data.batch)
    accuracy = (out.argmax(dim=1) == data.y).float().mean().item()
    accelerator.print(f"accuracy {accuracy:.2f} at {exits.cost:.0%} of the layers")
