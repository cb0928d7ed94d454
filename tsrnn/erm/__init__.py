"""Nonparametric regression by empirical risk minimisation with recurrent networks."""
