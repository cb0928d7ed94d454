"""A comparison as one HTML page."""

from tsrnn.reporting._report import report

__all__ = ["report"]
