"""Constant and dynamic conditional correlations."""
