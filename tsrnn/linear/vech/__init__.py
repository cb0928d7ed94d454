"""Multivariate GARCH in vech form."""
