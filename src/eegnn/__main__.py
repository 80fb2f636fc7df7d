"""``python -m eegnn``."""

from eegnn.cli import main

main()
