"""A loop with Lightning Fabric, whose loss asks for early exits."""

import torch
from lightning.fabric import Fabric, seed_everything
from torch.nn.functional import cross_entropy
from torch_geometric.datasets import FakeDataset
from torch_geometric.loader import DataLoader

from eegnn import EEGNN

seed_everything(0)
graphs = FakeDataset(num_graphs=120, avg_num_nodes=20, num_channels=8, num_classes=3)
fabric = Fabric()
fabric.launch()
model = EEGNN(8, 32, 3, num_layers=10, level="graph")
model, optimizer = fabric.setup(model, torch.optim.Adam(model.parameters(), lr=0.01))
model.mark_forward_method("predict")
train, val = fabric.setup_dataloaders(
    DataLoader(graphs[:80], batch_size=20, shuffle=True), DataLoader(graphs[80:], batch_size=40)
)

for _ in range(20):
    for data in train:
        optimizer.zero_grad()
        out, exits = model(data.x, data.edge_index, batch=data.batch, return_exits=True)
        fabric.backward(cross_entropy(out, data.y) + 0.2 * exits.cost)
        fabric.clip_gradients(model, optimizer, max_norm=1.0)
        optimizer.step()

for data in val:
    out, exits = model.predict(data.x, data.edge_index, batch=data.batch)
    accuracy = (out.argmax(dim=1) == data.y).float().mean().item()
    fabric.print(f"accuracy {accuracy:.2f} at {exits.cost:.0%} of the layers")
