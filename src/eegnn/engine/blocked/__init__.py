"""One huge graph, block by block."""

from eegnn.engine.blocked.block import Block, Blocks
from eegnn.engine.blocked.inference import infer
from eegnn.engine.blocked.partition import cut_in_order, partition

__all__ = ["Block", "Blocks", "cut_in_order", "infer", "partition"]
