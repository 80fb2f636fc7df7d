"""A classifier with `fit` and `predict`, as in scikit-learn: ten lines around EEGNN."""

import torch
from torch.nn.functional import cross_entropy as loss
from torch_geometric import seed_everything
from torch_geometric.datasets import FakeDataset
from torch_geometric.transforms import RandomNodeSplit

from eegnn import EEGNN


class EEGNNClassifier(EEGNN):
    def fit(self, data, epochs=100, lr=0.01):
        optimizer = torch.optim.Adam(self.train().parameters(), lr=lr)
        for _ in range(epochs):
            optimizer.zero_grad()
            out, exits = self(data.x, data.edge_index, return_exits=True)
            (loss(out[data.train_mask], data.y[data.train_mask]) + 0.05 * exits.cost).backward()
            torch.nn.utils.clip_grad_norm_(self.parameters(), 1.0)
            optimizer.step()
        return self.eval()


seed_everything(0)
data = FakeDataset(1, avg_num_nodes=500, num_channels=8, num_classes=3, task="node")[0]
data = RandomNodeSplit(num_val=0.1, num_test=0.3)(data)
model = EEGNNClassifier(8, 32, 3, num_layers=10).fit(data)
out, exits = model.predict(data.x, data.edge_index)
accuracy = (out.argmax(dim=1) == data.y)[data.test_mask].float().mean().item()
print(f"accuracy {accuracy:.2f} at {exits.cost:.0%} of the layers")
