from __future__ import annotations

from eegnn.experiments.robustness import PAPER, cells
from eegnn.studies.experiment import Scope


def test_the_quick_version_has_all_widths_and_budgets_on_a_share_of_the_graphs() -> None:
    configs = [config for cell in cells(Scope(quick=True)) for config in cell.configs]
    found = {(config.hidden_channels, config.num_layers - 1) for config in configs}
    assert found == PAPER.keys()
    assert {config.dataset for config in configs} == {"peptides-struct@0.05"}
    assert {config.epochs for config in configs} == {1}


def test_the_full_version_has_all_graphs_and_the_batches_of_the_recipe() -> None:
    configs = [config for cell in cells(Scope()) for config in cell.configs]
    assert {(config.dataset, config.batch_size) for config in configs} == {("peptides-struct", 200)}
