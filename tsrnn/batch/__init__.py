"""Forecasts of many series from frames and files, partition by partition, safely restarted.

`forecast_batches` divides a source into partitions of whole series, forecasts each, here or on
workers of joblib, and puts the result of each into a folder in one step. `forecast_frame` is the
pure function that it runs on a partition, for other engines to run.
"""

from tsrnn.batch._forecast_batches import BatchRun, forecast_batches
from tsrnn.batch._forecast_frame import Answer, forecast_frame

__all__ = ["Answer", "BatchRun", "forecast_batches", "forecast_frame"]
