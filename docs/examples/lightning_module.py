"""A Lightning module whose loss asks for early exits."""

import lightning
import torch
from torch.nn.functional import cross_entropy
from torch_geometric.datasets import FakeDataset
from torch_geometric.loader import DataLoader
from torchmetrics.classification import MulticlassAccuracy

from eegnn import EEGNN


class Classifier(lightning.LightningModule):
    def __init__(self, in_channels, num_classes):
        super().__init__()
        self.model = EEGNN(in_channels, 32, num_classes, num_layers=10, level="graph")
        self.accuracy = MulticlassAccuracy(num_classes)

    def training_step(self, data):
        out, exits = self.model(data.x, data.edge_index, batch=data.batch, return_exits=True)
        self.log("cost", exits.cost, batch_size=data.num_graphs)
        return cross_entropy(out, data.y) + 0.2 * exits.cost

    def validation_step(self, data):
        self.accuracy(self.model(data.x, data.edge_index, batch=data.batch), data.y)
        self.log("accuracy", self.accuracy, batch_size=data.num_graphs)

    def predict_step(self, data):
        return self.model.predict(data.x, data.edge_index, batch=data.batch)

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), lr=0.01)


lightning.seed_everything(0)
graphs = FakeDataset(num_graphs=120, avg_num_nodes=20, num_channels=8, num_classes=3)
train, val = (DataLoader(part, batch_size=20) for part in (graphs[:80], graphs[80:]))
trainer = lightning.Trainer(max_epochs=20, gradient_clip_val=1.0)
trainer.fit(Classifier(8, 3), train, val)
