"""Forecasts by direct calls of statsmodels and arch, to compare with."""

import warnings

import numpy as np
from arch import arch_model
from statsmodels.tsa.exponential_smoothing.ets import ETSModel
from statsmodels.tsa.forecasting.theta import ThetaModel
from statsmodels.tsa.statespace.sarimax import SARIMAX
from statsmodels.tsa.statespace.structural import UnobservedComponents
from statsmodels.tsa.statespace.varmax import VARMAX
from statsmodels.tsa.vector_ar.var_model import VAR
from statsmodels.tsa.vector_ar.vecm import VECM

ALPHA = 0.2  # of intervals of 80 percent


def scaled(call, y, new=None, less=None):
    """Mean and ends that `call` gives of rows in units of their spread, in the unit of `y`.

    Rows are given less the first value of a diffuse level, or the mean beside an intercept.
    """
    scale = np.nanstd(y, axis=0)
    own = y / scale
    origin = 0.0 if less is None else own[0] if less == "first" else np.nanmean(own)
    mean, ends = call(y / scale - origin, None if new is None else new / scale - origin)
    return (mean + origin) * scale, (ends + origin) * np.reshape(scale, (-1, 1))


def statespace(model, h, new=None, exog=None, new_exog=None, **fit):
    """Mean (h, C) and ends (h, C, 2) of a state-space model, after rows appended."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        results = model.fit(disp=False, **fit)
        if new is not None:
            given = {} if new_exog is None else {"exog": new_exog}
            results = results.append(new, **given)
    forecast = results.get_forecast(h, **({} if exog is None else {"exog": exog}))
    mean = np.asarray(forecast.predicted_mean).reshape(h, -1)
    ends = np.asarray(forecast.conf_int(alpha=ALPHA))
    c = mean.shape[1]
    return mean, np.stack([ends[:, :c], ends[:, c:]], -1)


def ets(y, h, new=None, **settings):
    """Ends are those at the variance of the rows fitted to."""
    results = ETSModel(y, **settings).fit(disp=False)
    fitted_mse = results.mse
    if new is not None:
        results = ETSModel(np.r_[y, new], **settings).smooth(results.params)
    mean = results.forecast(h)
    half = 1.2815515655446004 * np.sqrt(
        fitted_mse * results._relative_forecast_variance(np.arange(1, h + 1))
    )
    return mean[:, None], np.stack([mean - half, mean + half], -1)[:, None]


def theta(y, h, **settings):
    results = ThetaModel(y, **settings).fit()
    ends = results.prediction_intervals(h, alpha=ALPHA).to_numpy()
    return np.asarray(results.forecast(h))[:, None], ends[:, None]


def var(y, h, lags, exog=None, future=None, **settings):
    results = VAR(y, exog).fit(lags, **settings)
    mean, low, high = results.forecast_interval(
        y[len(y) - lags :], h, alpha=ALPHA, exog_future=future
    )
    return mean, np.stack([low, high], -1)


def vecm(y, h, **settings):
    mean, low, high = VECM(y, **settings).fit().predict(h, alpha=ALPHA)
    return mean, np.stack([low, high], -1)


def arch(y, h, x=None, future=None, new=None, **settings):
    """Mean, ends and the variance of the residuals."""
    model = arch_model(y, x, **settings)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        results = model.fit(disp="off")
    if new is not None:
        model = arch_model(np.r_[y, new], **settings)
        results = model.fix(results.params)
    ahead = {} if future is None else {"x": future.T[:, None]}
    forecast = results.forecast(horizon=h, **ahead)
    mean, error = forecast.mean.to_numpy()[0], np.sqrt(forecast.variance.to_numpy()[0])
    n_shape = model.distribution.num_params
    shape = np.asarray(results.params)[len(results.params) - n_shape :]
    low, high = model.distribution.ppf([ALPHA / 2, 1 - ALPHA / 2], shape)
    ends = np.stack([mean + low * error, mean + high * error], -1)
    return mean[:, None], ends[:, None], forecast.residual_variance.to_numpy()[0]


__all__ = ["SARIMAX", "VARMAX", "UnobservedComponents", "arch", "ets", "scaled", "statespace",
           "theta", "var", "vecm"]  # fmt: skip
