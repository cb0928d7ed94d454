"""Tests of the linear models."""
