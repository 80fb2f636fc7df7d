"""The method of the paper, one idea a file."""
