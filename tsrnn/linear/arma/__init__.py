"""Autoregressive moving average models."""
