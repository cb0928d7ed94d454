"""The summary of a fitted linear model, put together from its parts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from tsrnn.linear._covariance import DESCRIPTIONS, check_kind, no_covariance
from tsrnn.linear._estimates import Estimates
from tsrnn.linear._frames import sample_text
from tsrnn.linear._inference import confidence_intervals, criteria, standard_errors, z_values
from tsrnn.linear._summary import COLUMNS, LinearSummary, message_counts

if TYPE_CHECKING:
    from tsrnn.linear._base import LinearForecaster

NO_COVARIANCE = "The covariance matrix is singular or not positive definite: no standard errors."


def summarise(forecaster: LinearForecaster, unit: Any, cov_type: str | None) -> LinearSummary:
    """Build the summary of one unit, or of all."""
    if unit is None and len(forecaster.units_) > 1:
        kind = forecaster.arguments_.cov_type if cov_type is None else cov_type
        check_kind(kind, forecaster._fitted())
        return _of_all(forecaster)
    return _of_one(forecaster, forecaster._unit_number(unit), cov_type)


def _of_one(forecaster: LinearForecaster, i: int, cov_type: str | None) -> LinearSummary:
    cov_type = forecaster.arguments_.cov_type if cov_type is None else cov_type
    estimates = forecaster._fitted().select(np.array([i]))
    cov = forecaster._covariance(cov_type)[i : i + 1]
    notes = list(estimates.messages[0])
    if estimates.fitted[0] and not estimates.fixed.all():
        lacking = [NO_COVARIANCE] if no_covariance(estimates, cov)[0] else []
        kind = f"Standard errors: {DESCRIPTIONS[cov_type]}."
        notes = [kind, *lacking, *notes]
    if estimates.fitted[0]:
        notes += forecaster._notes(i)
    model = {
        "Series": forecaster.units_[i],
        "Model": forecaster._model_name(),
        **_sample(forecaster, i),
        "Covariance Type": cov_type,
        **forecaster._conventions(),
        **forecaster._facts(i),
    }
    return LinearSummary(
        title=f"{type(forecaster).__name__} Results",
        model=model,
        fit=_fit_facts(estimates),
        params=_table(estimates, standard_errors(cov)),
        tests=_tests(forecaster, i),
        notes=notes,
    )


def _table(estimates: Estimates, errors: np.ndarray) -> pd.DataFrame:
    z, p = z_values(estimates.params, errors)
    ends = confidence_intervals(estimates.params, errors, 95)
    values = (estimates.params, errors, z, p, *ends)
    columns = {key: value[0] for key, value in zip(COLUMNS, values, strict=True)}
    return pd.DataFrame(columns, index=pd.Index(estimates.names, name="parameter"))


def _fit_facts(estimates: Estimates) -> dict[str, object]:
    best = criteria(estimates)
    facts: dict[str, object] = {
        "No. Observations": int(estimates.n_obs[0]),
        "Log Likelihood": f"{estimates.loglik[0]:.3f}",
        "AIC": f"{best.aic[0]:.3f}",
        "BIC": f"{best.bic[0]:.3f}",
        "HQIC": f"{best.hqic[0]:.3f}",
    }
    if estimates.fixed.all():  # given: nothing was searched for
        return facts
    slope = np.linalg.norm(np.where(estimates.fixed, 0.0, estimates.gradient))
    facts |= {
        "Iterations": int(estimates.iterations[0]),
        "Gradient norm": f"{slope:.1e}",
        "Converged": "yes" if estimates.converged[0] else "no",
    }
    if estimates.starts is not None and estimates.agreement is not None and estimates.starts[0]:
        facts["Starts that agree"] = f"{estimates.agreement[0]} of {estimates.starts[0]}"
    return facts


def _of_all(forecaster: LinearForecaster) -> LinearSummary:
    estimates = forecaster._fitted()
    table = forecaster.params_.assign(
        loglik=forecaster.loglik_, nobs=forecaster.nobs_, converged=forecaster.converged_
    )
    n, fitted = len(table), int(estimates.fitted.sum())
    model = {
        "Model": forecaster._model_name(),
        "Units": n,
        **forecaster._conventions(),
    }
    fit: dict[str, object] = {
        "Fitted": f"{fitted} of {n}",
        "Converged": f"{int((estimates.converged & estimates.fitted).sum())} of {n}",
        "With warnings": sum(bool(own) for own in estimates.messages),
        "Log Likelihood": f"{np.nansum(estimates.loglik):.3f}",
    }
    notes = message_counts(estimates.messages)
    return LinearSummary(f"{type(forecaster).__name__} Results", model, fit, table, None, notes)


def _sample(forecaster: LinearForecaster, unit: int) -> dict[str, object]:
    i = _series(forecaster, unit)
    ids = forecaster.memory_.ids[i : i + 1]
    first, last = (ends[i] for ends in forecaster._sample)
    begin, end = sample_text(forecaster._panel_shape[0], ids, first, last)
    return {"Sample": begin, "": f"- {end}"}


def _tests(forecaster: LinearForecaster, unit: int) -> pd.DataFrame | None:
    """Tests at one lag, as statsmodels prints them; None without the data."""
    if forecaster._panel is None:
        return None
    i, layout = _series(forecaster, unit), forecaster._panel_shape[0]
    mask = np.arange(len(forecaster.memory_.ids)) == i
    target = None if forecaster.multivariate else unit % len(layout.target_names)
    return forecaster._tests_of(forecaster._panel.select(mask), 1, 0, target)


def _series(forecaster: LinearForecaster, unit: int) -> int:
    """Number of the series of a unit."""
    n_targets = len(forecaster._panel_shape[0].target_names)
    return unit if forecaster.multivariate else unit // n_targets
