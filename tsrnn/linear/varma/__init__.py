"""Vector autoregressive moving average models."""
