"""Data sets and generators.

- :mod:`~eegnn.data.open`: open any data set, by name or file.
- :mod:`~eegnn.data.problem`: what every data set becomes: graphs, labels and a split.
- :mod:`~eegnn.data.registry`: the registered data sets; to add one, begin there.
- :mod:`~eegnn.data.download`: the data folder, the mirror and the downloads by PyG.
- :mod:`~eegnn.data.npz`: one's own data, from an ``.npz`` file or from PyG.
- :mod:`~eegnn.data.echo`, ``transfer``, ``powerlaw``, ``minesweeper``: generated data sets.
"""
