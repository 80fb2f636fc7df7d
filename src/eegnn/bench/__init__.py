"""Benchmarks: speed and memory, always compared within one run."""
