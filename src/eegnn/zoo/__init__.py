"""The baselines, all with the constructor and forward of :class:`eegnn.nn.model.GraphModel`."""
