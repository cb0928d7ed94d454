"""Classical forecasts from rolling origins, in the shape of `ParaRNNForecaster.predict_rolling`.

Every model is estimated once, on `train`, and then takes in the rows of `test` one by one.
"""

import numpy as np
import pandas as pd
from scipy.stats import norm
from statsmodels.tsa.api import VAR
from statsmodels.tsa.arima.model import ARIMA
from utilsforecast.evaluation import evaluate
from utilsforecast.losses import coverage, mae, rmse

NO_SEASON = (0, 0, 0, 0)


def arima(train, test, h, level, orders, seasonal_order=NO_SEASON, exog=None):
    """ARIMA of each column by exact likelihood, the order the first by AIC among `orders`.

    `exog` are regressors for the rows of `train` and `test`; the errors are then ARIMA.
    """
    columns, chosen = {}, {}
    for name in train:
        fits = [
            ARIMA(
                train[name], _rows(exog, train.index), order=order, seasonal_order=seasonal_order
            ).fit()
            for order in orders
        ]
        best = min(fits, key=lambda fit: fit.aic)
        chosen[name] = best.model.order
        columns |= _roll_arima(best, test[name], h, level, exog)
    frame = _frame(columns, train, test, h)
    frame.attrs["orders"] = chosen
    return frame


def _roll_arima(fit, test, h, level, exog):
    point, bounds = [], {L: [] for L in level}
    for origin in range(len(test) - h + 1):
        ahead = fit.get_forecast(h, exog=_rows(exog, test.index[origin : origin + h]))
        point.append(ahead.predicted_mean)
        for L in level:
            bounds[L].append(ahead.conf_int(alpha=1 - L / 100))
        row = test.iloc[origin : origin + 1]
        fit = fit.extend(row, exog=_rows(exog, row.index))
    columns = {test.name: np.concatenate(point)}
    for L in level:
        low, high = np.concatenate(bounds[L]).T
        columns |= {f"{test.name}-lo-{L}": low, f"{test.name}-hi-{L}": high}
    return columns


def var(train, test, h, level, maxlags=4):
    """Vector autoregression of all columns, the number of lags by BIC."""
    fit = VAR(train).fit(maxlags, ic="bic")
    rows = pd.concat([train, test]).to_numpy()
    columns = {}
    for L in level:
        blocks = [
            fit.forecast_interval(rows[: len(train) + origin], h, alpha=1 - L / 100)
            for origin in range(len(test) - h + 1)
        ]
        point, low, high = (np.concatenate(part) for part in zip(*blocks, strict=True))
        for i, name in enumerate(train):
            bounds = {f"{name}-lo-{L}": low[:, i], f"{name}-hi-{L}": high[:, i]}
            columns |= {name: point[:, i], **bounds}
    frame = _frame(columns, train, test, h)
    frame.attrs["lags"] = fit.k_ar
    return frame


def seasonal_naive(train, test, h, level, season):
    """The value a season before; normal intervals from the seasonal differences of `train`."""
    columns = {}
    step = np.arange(h)
    cycles = 1 + step // season
    for name in train:
        known = pd.concat([train[name], test[name]]).to_numpy()
        origins = np.arange(len(train), len(known) - h + 1)[:, None]
        point = known[origins + step % season - season]
        sd = np.sqrt(np.nanmean(train[name].diff(season) ** 2) * cycles)
        columns[name] = point.ravel()
        for L in level:
            half = norm.ppf(0.5 + L / 200) * sd
            columns[f"{name}-lo-{L}"] = (point - half).ravel()
            columns[f"{name}-hi-{L}"] = (point + half).ravel()
    return _frame(columns, train, test, h)


def accuracy(actual, forecasts, level):
    """Table of RMSE, MAE and interval coverage over all origins and steps, by column and model.

    Rows whose actual value is missing are left out.
    """
    long = []
    for name in actual:
        table = pd.DataFrame({"unique_id": name, "y": actual[name]})
        table = table.loc[next(iter(forecasts.values())).index]
        for model, frame in forecasts.items():
            for column in (c for c in frame if c == name or str(c).startswith(f"{name}-")):
                table[str(column).replace(name, model, 1)] = frame[column].to_numpy()
        long.append(table.rename_axis("ds").reset_index().dropna(subset="y"))
    losses = evaluate(pd.concat(long), [rmse, mae, coverage], level=list(level))
    names = {"rmse": "RMSE", "mae": "MAE"} | {
        f"coverage_level{L}": f"covered by {L}%" for L in level
    }
    table = losses.melt(["unique_id", "metric"], var_name="model")
    table = table.pivot(index=["unique_id", "model"], columns="metric", values="value")
    order = pd.MultiIndex.from_product([actual.columns, forecasts], names=["series", "model"])
    return table.reindex(order)[list(names)].rename(columns=names).rename_axis(columns=None)


def _frame(columns, train, test, h):
    """Columns of all origins and steps under the times they are for, the last time known beside."""
    n = len(test) - h + 1
    cutoffs = train.index[-1:].append(test.index)[:n]
    steps = np.arange(n)[:, None] + np.arange(h)
    index = test.index[steps.ravel()]
    return pd.DataFrame({"cutoff": np.repeat(cutoffs, h), **columns}, index=index)


def _rows(exog, index):
    return None if exog is None else exog.loc[index]
