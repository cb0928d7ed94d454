"""A forecaster as a model of MLflow's python flavour; MLflow runs this file when it loads one."""

import mlflow
import pandas as pd

import tsrnn


class ForecasterModel(mlflow.pyfunc.PythonModel):
    """Forecasts after the rows of a frame, or after the data fitted to where it has no rows."""

    def load_context(self, context):
        """Read the forecaster; nothing is unpickled."""
        self.forecaster = tsrnn.load(context.artifacts["forecaster"])

    def predict(self, context, model_input: pd.DataFrame, params=None):
        """`params` may hold h and a list of levels."""
        params = params or {}
        history = None if model_input is None or len(model_input) == 0 else model_input
        level = [int(one) for one in params.get("level", [])]
        return self.forecaster.predict(history, h=params.get("h"), level=level or None)


mlflow.models.set_model(ForecasterModel())
