"""Answers for nodes of one graph over HTTP: `eegnn serve`."""
