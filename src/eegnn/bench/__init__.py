"""Speed, side by side in one run."""
