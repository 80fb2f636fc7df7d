"""The command line: parses, calls, prints. Each module adds its commands to the application."""

# The order is that of `eegnn --help`.
# ruff: noqa: F401
# isort: off
import eegnn.cli.demo
import eegnn.cli.train
import eegnn.cli.tune
import eegnn.cli.use
import eegnn.cli.serve
import eegnn.cli.report
import eegnn.cli.reproduce
import eegnn.cli.datasets
import eegnn.cli.bench
from eegnn.cli.app import app, main

__all__ = ["app", "main"]
