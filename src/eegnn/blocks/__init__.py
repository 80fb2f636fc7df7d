"""One huge graph, block by block."""

from eegnn.blocks.block import Block, Blocks
from eegnn.blocks.inference import infer
from eegnn.blocks.partition import partition

__all__ = ["Block", "Blocks", "infer", "partition"]
