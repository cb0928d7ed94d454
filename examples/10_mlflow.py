"""
A forecaster in MLflow
======================

MLflow keeps models beside the runs that made them and serves them by name. Its generic python
model holds a forecaster without a plug-in: the artifact is the file that `save` writes, and the
code is the file `_mlflow_model.py` beside this one, which MLflow runs when it loads the model.
Nothing is pickled.

This example needs MLflow: ``pip install mlflow``, or ``pip install mlflow-skinny sqlalchemy
alembic``, which is the part of it that is used here.
"""

import logging
import os
import tempfile
import warnings
from importlib.util import find_spec
from pathlib import Path

os.environ["MLFLOW_DISABLE_TELEMETRY"] = "true"  # read when MLflow is imported
os.environ["MLFLOW_ENABLE_ARTIFACTS_PROGRESS_BAR"] = "false"

import mlflow
import pandas as pd
from mlflow.models import infer_signature

from tsrnn import ARMA, datasets

logging.getLogger("mlflow").setLevel(logging.WARNING)
warnings.filterwarnings("ignore", category=UserWarning, module="mlflow")
CODE = find_spec("_mlflow_model").origin

# %%
# The forecaster
# --------------
# The sea surface temperature of El Niño, in long format, up to 2000.

frame = datasets.load_elnino().reset_index().rename(columns={"temperature": "y"})
frame.insert(0, "unique_id", "El Niño")
train, later = frame[frame["ds"] < "2001"], frame
forecaster = ARMA(order=(2, 1)).fit(train)

# %%
# Logged
# ------
# The store is a SQLite file and a folder, both temporary. The signature says what the model is
# given and what it answers: rows to forecast after, and as `params` the steps and the levels.

temporary = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
folder = Path(temporary.name)
forecaster.save(folder / "forecaster.tsrnn")
mlflow.set_tracking_uri(f"sqlite:///{folder / 'mlflow.db'}")
experiment = mlflow.create_experiment("El Niño", artifact_location=(folder / "store").as_uri())
with mlflow.start_run(experiment_id=experiment):
    mlflow.log_params({"model": "ARMA", "order": forecaster.order})
    mlflow.log_metric("log-likelihood", forecaster.loglik_.item())
    logged = mlflow.pyfunc.log_model(
        name="forecaster",
        python_model=CODE,
        artifacts={"forecaster": str(folder / "forecaster.tsrnn")},
        signature=infer_signature(
            train, forecaster.predict(12, level=80), params={"h": 12, "level": [80]}
        ),
        pip_requirements=["tsrnn"],
    )

# %%
# Loaded
# ------
# A frame without rows asks for forecasts after the data fitted to, one with rows for forecasts
# after these; the parameters are as they were estimated.

loaded = mlflow.pyfunc.load_model(logged.model_uri)
questions = {
    "after the data fitted to": (train[:0], {"h": 24, "level": [80, 95]}),
    "after ten more years": (later, {"h": 12, "level": [80]}),
}
for said, (rows, params) in questions.items():
    answer = loaded.predict(rows, params=params)
    expected = forecaster.predict(rows if len(rows) else None, **params)
    pd.testing.assert_frame_equal(answer, expected, check_exact=True)
    print(f"{said}: {len(answer)} steps, the same as without MLflow")
print(answer.head(3).to_string(index=False, float_format="{:.2f}".format))
temporary.cleanup()
