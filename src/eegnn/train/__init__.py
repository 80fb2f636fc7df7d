"""Training: configuration, loop, metrics, run folders."""
