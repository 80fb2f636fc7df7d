"""The baselines.

All are :class:`~eegnn.nn.model.GraphModel`: one constructor and one forward. The docstring of a
model explains the arguments that it adds to those of its base class.
"""
