"""The framework of studies: runs, their results, tables and figures."""
