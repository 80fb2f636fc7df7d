"""Figures and terminal output."""
