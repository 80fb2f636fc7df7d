"""EEGNN: graph neural networks whose nodes and graphs decide when they have seen enough."""

from eegnn.graph import Adjacency
from eegnn.io import load, save
from eegnn.nn.early_exit import EarlyExit
from eegnn.nn.eegnn import EEGNN
from eegnn.nn.exits import Exits
from eegnn.nn.sas import SASConv
from eegnn.nn.sasgnn import SASGNN

__version__ = "0.1.0"

__all__ = ["EEGNN", "SASGNN", "Adjacency", "EarlyExit", "Exits", "SASConv", "load", "save"]
