"""The framework of experiments: runs, their results, tables, figures and pages."""
